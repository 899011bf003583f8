"""The job of a row-level operation, and its clean-up."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.spark.row_changes.row_commit import RowCommit
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.transforms import BucketTransform
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.row_level.change_task import (
    FILE,
    OP,
    POS,
    ChangeTask,
    Op,
    TaskChanges,
    _Positions,
    carry_out,
)
from iceberg_pyspark.table.row_level.touched_rows import TouchedRows, unite
from tests.support.commit_tables import SCHEMA, commit_table

Row = tuple[Op, str | None, int | None]


def batch(rows: Sequence[Row], values: bool = False) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {
        OP: pa.array([int(op) for op, _, _ in rows], pa.int32()),
        FILE: pa.array([f for _, f, _ in rows], pa.string()),
        POS: pa.array([p for _, _, p in rows], pa.int64()),
    }
    if values:
        columns["id"] = pa.array(range(len(rows)), pa.int64())
        columns["part"] = pa.array(["x"] * len(rows))
    return pa.RecordBatch.from_pydict(columns)


def task(*batches: Sequence[Row]) -> TaskChanges:
    outcome = carry_out(None, map(batch, batches), MemoryFileIO(), partition_id=0, task_id=0)
    changes: TaskChanges = pickle.loads(pickle.dumps(outcome))
    return changes


def test_rows_are_written_and_places_noted() -> None:
    io = MemoryFileIO()
    context = WriteContext(
        table="t",
        table_location="mem://t",
        schema=SCHEMA,
        spec=PartitionSpec(spec_id=0, fields=()),
        write_id="w",
    )
    rows = [
        (Op.INSERT, None, None),
        (Op.DELETE, "f", 3),
        (Op.UPDATE, "g", 0),
        (Op.KEEP_UNCHANGED, "g", 1),
        (Op.COPY, None, None),
    ]
    done = unite([carry_out(context, [batch(rows, values=True)], io, partition_id=1, task_id=2)])
    assert [f.record_count for f in done.data_files] == [3]
    assert {path: list(bitmap) for path, bitmap in done.removed_positions.items()} == {
        "f": [3],
        "g": [0],
    }
    assert done.counts == dict.fromkeys(Op, 1)
    done.check_single_matches("t")


def test_rows_that_are_all_written_are_not_copied() -> None:
    rows = batch([(Op.UPDATE, "f", 0), (Op.INSERT, None, None)], values=True)
    [written] = _Positions().rows_of([rows])
    name = written.schema.names[0]
    buffers = [b.column(name).buffers()[1] for b in (rows, written)]
    assert buffers[0].address == buffers[1].address
    assert written.num_rows == 2


@pytest.mark.parametrize(
    "tasks",
    [
        [[[(Op.UPDATE, "f", 1), (Op.UPDATE, "f", 1)]]],
        [[[(Op.UPDATE, "f", 1)], [(Op.DELETE, "f", 1)]]],
        [[[(Op.UPDATE, "f", 1)]], [[(Op.DELETE, "f", 1)]]],
        # Unchanged rows count too: it would be chance which source row decides.
        [[[(Op.KEEP_UNCHANGED, "f", 1), (Op.UPDATE, "f", 1)]]],
        [[[(Op.KEEP_UNCHANGED, "f", 1)]], [[(Op.KEEP_UNCHANGED, "f", 1)]]],
        [[[(Op.KEEP_UNCHANGED, "f", 1)]], [[(Op.UPDATE, "f", 1)]]],
    ],
)
def test_a_duplicate_match_is_refused(tasks: list[list[list[Row]]]) -> None:
    changes = unite(task(*batches) for batches in tasks)
    with pytest.raises(InvalidRequestError, match="several rows of the source"):
        changes.check_single_matches("db.t")


@given(
    places=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2**33)), unique=True, max_size=40
    ),
    cuts=st.lists(st.integers(0, 40), max_size=3),
)
def test_however_rows_are_cut_into_tasks(places: list[tuple[str, int]], cuts: list[int]) -> None:
    rows: list[Row] = [(Op.DELETE, f, p) for f, p in places]
    bounds = [0, *sorted(cuts), len(rows)]
    tasks = [task(rows[a:b]) for a, b in itertools.pairwise(bounds)]
    changes = unite(tasks)
    assert changes.duplicate_match is None
    assert {(f, p) for f, bitmap in changes.removed_positions.items() for p in bitmap} == set(
        places
    )
    assert changes.counts.get(Op.DELETE, 0) == len(rows)


OPS = st.sampled_from((Op.DELETE, Op.UPDATE, Op.KEEP_UNCHANGED))
ROWS = st.one_of(
    st.tuples(OPS, st.sampled_from("abc"), st.integers(0, 2**33)),
    st.just((Op.INSERT, None, None)),
)


@given(
    rows=st.lists(ROWS, max_size=40, unique_by=lambda r: r[1:] if r[1] else object()),
    start=st.integers(0, 40),
    count=st.integers(0, 40),
)
def test_a_slice_of_a_batch_is_taken_as_a_batch_of_its_own(
    rows: list[Row], start: int, count: int
) -> None:
    """With rows that have no place, at any offset in the buffers."""
    sliced = batch(rows).slice(start, count)
    outcome = carry_out(None, [sliced], MemoryFileIO(), partition_id=0, task_id=0)
    assert outcome == task(rows[start : start + count])
    expected = {(f, p) for op, f, p in rows[start : start + count] if op in (Op.DELETE, Op.UPDATE)}
    removed = unite([outcome]).removed_positions
    assert {(f, p) for f, bitmap in removed.items() for p in bitmap} == expected


_IN_A_NEW_WORKER = """
import pickle, sys
import pyarrow as pa
with open(sys.argv[1], "rb") as file:
    task = pickle.load(file)
with pa.OSFile(sys.argv[2]) as file:
    batches = pa.ipc.open_stream(file).read_all().to_batches()
_, done = task(batches, 0, 0)
print(sum(f.record_count for f in done.data_files), "pandas" in sys.modules)
"""


def test_a_new_worker_changes_rows_without_importing_pandas(tmp_path: Path) -> None:
    """The import takes as long as all others of a worker together."""
    rows = batch([(Op.UPDATE, "f", 0), (Op.INSERT, None, None), (Op.DELETE, "f", 2)], values=True)
    by_bucket = PartitionField(
        source_ids=(1,), field_id=1001, name="b", transform=BucketTransform(num_buckets=2)
    )
    with pa.OSFile(str(tmp_path / "rows"), "wb") as file, pa.ipc.new_stream(file, rows.schema) as s:
        s.write_batch(rows)
    context = WriteContext(
        table="t",
        table_location=str(tmp_path / "t"),
        schema=SCHEMA,
        spec=PartitionSpec(spec_id=0, fields=(by_bucket,)),
        write_id="w",
    )
    (tmp_path / "task").write_bytes(pickle.dumps(ChangeTask(context=context, io=LocalFileIO())))
    program = [sys.executable, "-c", _IN_A_NEW_WORKER, str(tmp_path / "task")]
    done = subprocess.run(
        [*program, str(tmp_path / "rows")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["2", "False"]


def lost_files(paths: object) -> Any:
    raise StorageError("a manifest cannot be read")


@pytest.mark.parametrize(
    ("duplicate_match", "error"), [(None, StorageError), ("/t/a.parquet", InvalidRequestError)]
)
def test_new_files_are_removed(duplicate_match: str | None, error: type[Exception]) -> None:
    io = MemoryFileIO()
    io.write_bytes("/t/new.parquet", b"rows")
    write: Any = SimpleNamespace(table="t", io=io, metadata=commit_table().metadata)
    new_file: Any = SimpleNamespace(file_path="/t/new.parquet")
    commit = RowCommit(
        operation="merge",
        write=write,
        rows=TouchedRows(data_files=(new_file,), duplicate_match=duplicate_match),
        files=lost_files,
        read_predicate=AlwaysTrue,
        source_predicate=AlwaysTrue,
        requires_single_match=True,
        summary=lambda _: {},
    )
    with pytest.raises(error):
        commit.commit()
    assert not io.exists("/t/new.parquet")
