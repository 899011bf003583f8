"""Groups written elsewhere and committed later leave what a rewrite in one place leaves."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError, StorageError
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import RewrittenDataFiles
from iceberg_pyspark.table.maintenance.rewrites.written_groups import (
    GroupPart,
    WrittenGroups,
    parts_of,
    write_part,
)
from tests.support.deleted_rows import delete_rows
from tests.support.frames import append_rows, create_path_table, path_table

COLUMNS = ["id", "p", "_row_id", "_last_updated_sequence_number"]


def a_table(folder: Path) -> Table:
    """Return a table of two partitions with five files each, and with two deleted rows."""
    table = create_path_table(
        folder,
        "id BIGINT, p DECIMAL(4, 1)",
        partitioned_by=["p"],
        properties={"format-version": "3"},
    )
    for number in range(5):
        append_rows(
            table,
            [{"id": 10 * number + i, "p": Decimal("0.5") if i % 2 else None} for i in range(10)],
        )
    delete_rows(table, "id", [3, 14])
    return table


def rows(table: Table) -> list[Any]:
    return sorted(map(str, table.scan(columns=COLUMNS).to_arrow().to_pylist()))


def files_in(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*.parquet")}


def written(
    table: Table, fails: Callable[[GroupPart], bool] = lambda _: False, **arguments: Any
) -> WrittenGroups:
    """Write the groups, as tasks elsewhere do."""
    write_id = str(uuid.uuid4())
    rewrite = table.maintenance().planned_rewrite(**arguments)
    writer = replace(rewrite.writer, writes=replace(rewrite.writer.writes, write_id=write_id))
    texts = []
    for attempt, part in enumerate(parts_of(rewrite.plan(), writer)):
        if fails(part):
            lost = replace(part.group.tasks[0], file_path="/nowhere.parquet")
            done = write_part(
                writer,
                replace(part, group=replace(part.group, tasks=(lost,))),
                table.io,
                attempt=attempt,
            )
            assert done.error is not None
            done = replace(done, paths=tuple(t.file_path for t in part.group.tasks))
        else:
            done = write_part(writer, part, table.io, attempt=attempt)
        texts.append(done.text(writer.partition_type))
    return WrittenGroups(write_id=write_id, parts=texts)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"strategy": "sort", "sort_order": "id DESC"},
        {"where": "p = 0.5"},
        {"options": {"rewrite-all": "true", "target-file-size-bytes": "2000"}},
        {"options": {"rewrite-all": "true", "partial-progress.enabled": "true"}},
    ],
)
def test_the_result_is_that_of_one_place(tmp_path: Path, arguments: dict[str, Any]) -> None:
    results: list[RewrittenDataFiles] = []
    tables = [a_table(tmp_path / name) for name in ("here", "elsewhere")]
    for table in tables:
        before = rows(table)
        runner = written(table, **arguments) if table is tables[1] else None
        results.append(table.maintenance().rewrite_data_files(**arguments, runner=runner))
        assert rows(table) == before
    assert results[0] == replace(results[1], rewritten_bytes_count=results[0].rewritten_bytes_count)
    assert results[0].added_data_files_count > 0
    sizes = [
        sorted((str(t.partition), t.record_count) for t in table.scan().plan_files())
        for table in tables
    ]
    assert sizes[0] == sizes[1]


def test_a_failed_task_leaves_all_files(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    before, files = rows(table), files_in(tmp_path)
    runner = written(table, lambda part: part.number == 0)
    assert len(files_in(tmp_path)) == len(files) + 1
    with pytest.raises(StorageError, match="nowhere"):
        table.maintenance().rewrite_data_files(runner=runner)
    assert (rows(table), files_in(tmp_path)) == (before, files)


def test_with_partial_progress_the_others_are_committed(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    before = rows(table)
    options = {"partial-progress.enabled": "true"}
    runner = written(table, lambda part: part.number == 1, options=options)
    done = table.maintenance().rewrite_data_files(options=options, runner=runner)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (5, 5)
    assert rows(table) == before


def test_a_row_that_is_deleted_meanwhile_stays_deleted(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    runner = written(table)
    delete_rows(path_table(tmp_path / "t"), "id", [5])
    files = files_in(tmp_path)
    with pytest.raises(ConcurrentChangeError):
        table.maintenance().rewrite_data_files(runner=runner)
    assert len(files_in(tmp_path)) < len(files)
    assert len(rows(table.refresh())) == 47


def test_files_of_others_are_neither_committed_nor_removed(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    runner = written(table)
    other = next(t.file_path for t in table.scan().plan_files())
    part = json.loads(runner.parts[0])
    part["files"][0]["file_path"] = other
    runner.parts = [json.dumps(part), *runner.parts[1:]]
    with pytest.raises(InvalidRequestError, match="is no file of this rewrite"):
        table.maintenance().rewrite_data_files(runner=runner)
    assert len(rows(table)) == 48
    with pytest.raises(InvalidRequestError, match="is no id of a write"):
        WrittenGroups(write_id="", parts=())
