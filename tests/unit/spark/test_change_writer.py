"""What the driver holds of the tasks of changed rows is small."""

from __future__ import annotations

import pickle

from pyroaring import BitMap64

from iceberg_pyspark.spark.data_source.change_writer import ChangesOfTask
from iceberg_pyspark.table.row_level.change_task import Op, TaskChanges
from iceberg_pyspark.table.row_level.touched_rows import unite

FILES = [f"s3://bucket/warehouse/db/t/data/day={i % 28}/{i:05d}-0-1234.parquet" for i in range(500)]


def changes(task: int) -> TaskChanges:
    """Return the result of a task after a shuffle: two positions of each file."""
    positions = [BitMap64([2 * task, 2 * task + 1]).serialize() for _ in FILES]
    return TaskChanges(
        data_files=(),
        removed_positions=dict(zip(FILES, positions, strict=True)),
        unchanged_positions={},
        duplicate_match=None,
        counts={Op.DELETE: 2 * len(FILES)},
    )


def test_results_of_tasks_are_packed() -> None:
    messages = [ChangesOfTask.of(changes(task)) for task in range(10)]
    assert [m.changes for m in messages] == [changes(task) for task in range(10)]
    plain = sum(len(pickle.dumps(changes(task))) for task in range(10))
    assert sum(len(pickle.dumps(m)) for m in messages) < plain / 5
    rows = unite(m.changes for m in messages)
    assert rows.counts == {Op.DELETE: 20 * len(FILES)}
    assert all(list(rows.removed_positions[file]) == list(range(20)) for file in FILES)
