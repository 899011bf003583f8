"""Rows deleted by position: the written delete files, and the delete files they replace."""

from __future__ import annotations

import random
import tracemalloc
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.row_deletes import RowDeletes, deleted_before, write_row_deletes
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import commit_table
from tests.support.deleted_rows import list_positions

ROWS = 4


def a_table(version: int, **properties: str) -> Table:
    """Create a table with ids 0 to 11, four each in files of the partitions a, a and b."""
    t = commit_table(format_version=version, partitioned=True)
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    if properties:
        table_properties = {k.replace("_", "."): v for k, v in properties.items()}
        table.update_properties().set(table_properties).commit()
    for number, part in enumerate("aab"):
        ids = range(number * ROWS, number * ROWS + ROWS)
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "part": [part] * ROWS}))
    return table


def files(table: Table) -> list[ScanTask]:
    return sorted(table.refresh().scan().plan_files(), key=lambda t: t.data_sequence_number)


def delete(table: Table, removed: Mapping[str, Iterable[int]], write_id: str = "w") -> RowDeletes:
    tasks = {t.file_path: t for t in files(table)}
    bitmaps = {path: BitMap64(rows) for path, rows in removed.items()}
    written = write_row_deletes("db.t", table.metadata, table.io, bitmaps, tasks, write_id=write_id)
    commit(table, written)
    return written


def commit(table: Table, written: RowDeletes) -> None:
    checks = ConflictChecks(base_snapshot_id=table.metadata.current_snapshot_id)
    action = RowDelta(
        delete_files=written.delete_files,
        removed_data_paths=written.removed_data_paths,
        removed_deletes=written.removed_deletes,
        checks=checks,
    )
    commit_action(table.catalog, table.loaded, table.io, action)
    table.refresh()


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("id").to_pylist())


def live_deletes(table: Table) -> list[DataFile]:
    rows = table.metadata_table("delete_files").to_arrow().to_pylist()
    return [
        DataFile(
            file_path=r["file_path"],
            record_count=r["record_count"],
            file_size_in_bytes=r["file_size_in_bytes"],
            referenced_data_file=r["referenced_data_file"],
        )
        for r in rows
    ]


def test_vectors_replace_vectors_and_share_a_file() -> None:
    table = a_table(3)
    first, second, third = (t.file_path for t in files(table))
    written = delete(table, {first: {1}, third: {0, 2}}, "one")
    assert len({f.file_path for f in written.delete_files}) == 1
    assert [(f.record_count, f.referenced_data_file) for f in written.delete_files] == [
        (n, path) for path, n in sorted([(first, 1), (third, 2)])
    ]
    assert ids(table) == [0, 2, 3, 4, 5, 6, 7, 9, 11]
    written = delete(table, {first: {0}, second: {3}}, "two")
    # one deletion vector per data file, including all earlier deletes (docs/conformance.md 32, 33)
    assert {f.referenced_data_file: f.record_count for f in written.delete_files} == {
        first: 2,
        second: 1,
    }
    assert len(written.removed_deletes) == 1
    assert ids(table) == [2, 3, 4, 5, 6, 9, 11]
    assert sorted(f.record_count for f in live_deletes(table)) == [1, 2, 2]
    assert {t.file_path: deleted_before(table.io, t, "db.t") for t in files(table)} == {
        first: 2,
        second: 1,
        third: 2,
    }


def test_vectors_are_read_by_one_request_and_written_by_one() -> None:
    table = a_table(3)
    paths = [t.file_path for t in files(table)]
    delete(table, {path: {1} for path in paths}, str(uuid.uuid4()))
    requests: list[str] = []

    def note(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(io: MemoryFileIO, location: str, *rest: Any) -> Any:
            if location.endswith(".puffin"):
                requests.append(method.__name__)
            return method(io, location, *rest)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read_range", "open_input", "open_output"):
            patch.setattr(MemoryFileIO, name, note(getattr(MemoryFileIO, name)))
        written = delete(table, {path: {2} for path in paths}, str(uuid.uuid4()))
    assert sorted(requests) == ["open_output", "read_range"]
    assert [f.record_count for f in written.delete_files] == [2, 2, 2]
    assert ids(table) == [0, 3, 4, 7, 8, 11]


def test_vectors_and_new_rows_are_united_without_a_list_of_positions() -> None:
    """A list of the positions of this vector would take a gibibyte."""
    table = a_table(3)
    first, *_ = (t.file_path for t in files(table))
    delete(table, {first: range(2, 2**27)}, str(uuid.uuid4()))
    tracemalloc.start()
    try:
        written = delete(table, {first: {0, 2**28}}, str(uuid.uuid4()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24
    assert [f.record_count for f in written.delete_files] == [2**27]
    assert ids(table) == [1, *range(4, 12)]


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_without_rows_is_dropped(version: int) -> None:
    table = a_table(version)
    first, second, _ = (t.file_path for t in files(table))
    delete(table, {first: {0, 1}, second: {2}}, "one")
    written = delete(table, {first: {2, 3}}, "two")
    # The data file is removed with its deletes (docs/conformance.md 39).
    assert (written.delete_files, written.removed_data_paths) == ((), frozenset({first}))
    assert ids(table) == [4, 5, 7, 8, 9, 10, 11]
    assert [f.referenced_data_file for f in live_deletes(table)] == [second]


@pytest.mark.parametrize("version", [2, 3])
def test_positions_behind_the_last_row_do_not_count_as_rows(version: int) -> None:
    """Three of the four rows are deleted, and a position that no row has."""
    table = a_table(version)
    first, *_ = (t.file_path for t in files(table))
    delete(table, {first: {0, 1, 400}}, "one")
    written = delete(table, {first: {2}}, "two")
    assert written.removed_data_paths == frozenset()
    assert ids(table) == list(range(3, 12))
    written = delete(table, {first: {3}}, "three")
    assert written.removed_data_paths == frozenset({first})
    assert ids(table) == list(range(4, 12))


def test_position_deletes_of_one_file_each_are_merged() -> None:
    """docs/conformance.md 37, and 49: position deletes have no sort order of the table's."""
    table = a_table(2)
    first, second, third = (t.file_path for t in files(table))
    written = delete(table, {first: {1}, second: {3}, third: {0}}, "one")
    assert [f.referenced_data_file for f in written.delete_files] == sorted([first, second, third])
    for f in written.delete_files:
        # Exact bounds identify the file too.
        path = str(f.referenced_data_file).encode()
        assert f.lower_bounds is not None
        assert f.lower_bounds[DELETE_FILE_PATH.field_id] == path
        assert f.content is FileContent.POSITION_DELETES
        assert f.sort_order_id is None
    written = delete(table, {first: {2}}, "two")
    assert [f.record_count for f in written.delete_files] == [2]
    assert len(written.removed_deletes) == 1
    assert ids(table) == [0, 3, 4, 5, 6, 9, 10, 11]


def test_position_deletes_by_partition_then_vectors() -> None:
    table = a_table(2, write_delete_granularity="partition")
    first, second, third = (t.file_path for t in files(table))
    written = delete(table, {second: {3}, first: {1}, third: {0}}, "one")
    # one file for both data files of partition a, sorted by path and position
    assert sorted(f.record_count for f in written.delete_files) == [1, 2]
    assert {f.partition for f in written.delete_files} == {("a",), ("b",)}
    assert not delete(table, {first: {2}}, "two").removed_deletes
    assert ids(table) == [0, 3, 4, 5, 6, 9, 10, 11]
    table.update_properties().set({"format-version": "3"}).commit()
    written = delete(table, {first: {0}, third: {1}}, "three")
    # A vector includes all position deletes of its file; a delete file that other data files need
    # stays (docs/conformance.md 32, 34).
    assert {f.referenced_data_file: f.record_count for f in written.delete_files} == {
        first: 3,
        third: 2,
    }
    assert len(written.removed_deletes) == 2
    assert ids(table) == [3, 4, 5, 6, 10, 11]


def test_a_vector_that_another_commit_added_is_not_lost() -> None:
    table = a_table(3)
    first = files(table)[0].file_path
    tasks = {t.file_path: t for t in files(table)}
    late = write_row_deletes(
        "db.t", table.metadata, table.io, {first: BitMap64([0])}, tasks, write_id="late"
    )
    delete(table, {first: {1}}, "early")
    with pytest.raises(ConcurrentChangeError):
        commit(table, late)


def test_row_delete_that_the_format_version_or_options_forbid_is_refused() -> None:
    table = a_table(1)
    first = files(table)[0]
    with pytest.raises(InvalidRequestError, match="version 1"):
        delete(table, {first.file_path: {0}})
    with pytest.raises(InvalidRequestError, match="neither file nor partition"):
        a_table(2, write_delete_granularity="table")


@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_deletes(seed: int) -> None:
    chance = random.Random(seed)
    granularity = chance.choice(["file", "partition"])
    table = a_table(2 + seed % 2, write_delete_granularity=granularity)
    paths = [t.file_path for t in files(table)]
    remaining_ids = set(range(3 * ROWS))
    for number in range(4):
        removed: dict[str, set[int]] = {}
        for i in chance.sample(sorted(remaining_ids), 2):
            removed.setdefault(paths[i // ROWS], set()).add(i % ROWS)
            remaining_ids.remove(i)
        delete(table, removed, str(number))
        assert ids(table) == sorted(remaining_ids)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"write_format_default": "orc"}, "orc"),
        ({"write_delete_format_default": "avro"}, "avro"),
        ({"write_format_default": "avro", "write_delete_format_default": "parquet"}, "parquet"),
    ],
)
def test_position_deletes_in_the_format_that_the_table_says(
    properties: dict[str, str], expected: str
) -> None:
    table = a_table(2, **properties)
    first, second, _ = (t.file_path for t in files(table))
    written = delete(table, {first: {1, 3}, second: {0}})
    assert {f.file_format for f in written.delete_files} == {expected}
    assert all(f.file_path.endswith(f"-deletes.{expected}") for f in written.delete_files)
    bounds = {(f.lower_bounds or {})[DELETE_FILE_PATH.field_id] for f in written.delete_files}
    assert bounds == {first.encode(), second.encode()}
    assert ids(table) == [0, 2, 5, 6, 7, 8, 9, 10, 11]
    # Later deletes read and replace these delete files.
    delete(table, {first: {0}}, "again")
    assert ids(table) == [2, 5, 6, 7, 8, 9, 10, 11]
    assert len(live_deletes(table)) == 2


def test_the_sort_order_of_position_deletes_is_ignored() -> None:
    """docs/conformance.md 49: another writer has set it, and the table has no such order."""
    t = commit_table(format_version=2)
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "part": ["a"] * 3}))
    [task] = files(table)
    list_positions(
        table, pa.table({"file_path": [task.file_path], "pos": [1]}), {}, sort_order_id=9
    )
    assert ids(table) == [1, 3]
