"""`remove-dangling-deletes` removes delete files that apply to no data file; no row comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.errors import CommitConflictError
from iceberg_pyspark.table.maintenance.rewrites import rewrite_data_files
from tests.support.deleted_rows import list_positions
from tests.support.frames import append_rows, create_path_table

OPTIONS = {"min-input-files": 2, "remove-dangling-deletes": True}


def a_table(folder: Path) -> Table:
    """Create a table of two data files, a delete file for both, and a newer data file.

    Without the newer file, rewritten files would be as old as the deletes, which might then apply
    to them.
    """
    table = create_path_table(folder, "id BIGINT", properties={"format-version": "2"})
    for first in (0, 4):
        append_rows(table, [{"id": first + i} for i in range(4)])
    paths = [t.file_path for t in table.scan().plan_files()]
    list_positions(table, pa.table({"file_path": paths, "pos": pa.array([1, 2], pa.int64())}), {})
    append_rows(table.refresh(), [{"id": 8}])
    return table


def rewrite(table: Table, **more: Any) -> Any:
    return table.maintenance().rewrite_data_files(options=OPTIONS, **more)


def delete_files(table: Table) -> int:
    snapshot = table.refresh().current_snapshot
    assert snapshot is not None
    return int(snapshot.summary["total-delete-files"])


def ids(table: Table) -> list[int]:
    result: list[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(result)


def test_delete_file_without_data_file_is_removed(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    before = ids(table)
    assert (len(before), delete_files(table)) == (7, 1)
    assert rewrite(table, dry_run=True).removed_delete_files_count == 0
    assert rewrite(table).removed_delete_files_count == 1
    assert (ids(table), delete_files(table)) == (before, 0)
    location = table.loaded.metadata_location
    assert rewrite(table).removed_delete_files_count == 0
    assert table.refresh().loaded.metadata_location == location


def test_the_table_is_of_the_commit_that_removed_them(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    rewrite(table)
    location = table.loaded.metadata_location
    assert table.refresh().loaded.metadata_location == location


def test_only_where_asked_for_and_later_too(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    table.maintenance().rewrite_data_files(options={"min-input-files": 2})
    assert delete_files(table) == 1
    assert rewrite(table, dry_run=True).removed_delete_files_count == 1
    done = rewrite(table)
    assert (done.rewritten_data_files_count, done.removed_delete_files_count) == (0, 1)
    assert (delete_files(table), len(ids(table))) == (0, 7)


def test_deletes_that_still_apply_are_kept(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    before = ids(table)
    assert rewrite(table, where="id < 2").removed_delete_files_count == 0
    assert (ids(table), delete_files(table)) == (before, 1)


def test_a_rewrite_that_is_done_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path / "t")

    def overtaken(*_: object, **__: object) -> None:
        raise CommitConflictError("overtaken")

    with monkeypatch.context() as patched:
        patched.setattr(rewrite_data_files, "remove_dangling_deletes", overtaken)
        done = rewrite(table)
    assert (done.rewritten_data_files_count, done.removed_delete_files_count) == (3, 0)
    assert "the commit succeeded, but a later step failed: removing deletes" in caplog.text
    assert rewrite(table.refresh()).removed_delete_files_count == 1
