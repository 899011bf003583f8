"""Distinct counts of a snapshot's live rows, in one Puffin file that a commit keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.outcomes import Outcome, Refused, unknown
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchSnapshotError,
)
from iceberg_pyspark.formats.puffin.puffin import read_puffin_blob, read_puffin_footer
from iceberg_pyspark.formats.puffin.theta_sketches import ThetaSketch
from iceberg_pyspark.table.reading.metadata_aggregates import distinct_counts
from tests.support.commit_tables import CommitTable, commit_table
from tests.support.deleted_rows import delete_positions
from tests.support.frames import append_rows, create_path_table

Commit = Callable[[], Outcome[LoadedTable]]
ROWS = pa.table({"id": pa.array([1, 2, 2], pa.int64()), "part": ["a", None, "b"]})


def memory_table(rows: int = 3) -> tuple[CommitTable, Table]:
    t = commit_table(location="mem://wh/t")
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    table.append(ROWS[:rows])
    return t, table


def statistics_files(t: CommitTable) -> set[str]:
    return {f.location for f in t.io.list_files("mem://") if f.location.endswith(".stats")}


def test_the_file_is_what_metadata_say(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, s STRUCT<a: INT>, l ARRAY<INT>")
    for number in range(3):
        append_rows(table, [{"id": number, "s": {"a": i % 2}, "l": [i]} for i in range(4)])
    done = table.maintenance().compute_table_stats(columns=["id", "s.a"])
    assert done.distinct_counts == {"id": 3, "s.a": 2}
    [file] = table.metadata.statistics
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert done.statistics_file == file.statistics_path
    assert Path(file.statistics_path).name.startswith(f"{snapshot.snapshot_id}-")
    footer = read_puffin_footer(table.io, file.statistics_path)
    assert (footer.file_size, footer.footer_size) == (
        file.file_size_in_bytes,
        file.file_footer_size_in_bytes,
    )
    assert len(footer.blobs) == 2
    for blob, text in zip(footer.blobs, file.blob_metadata, strict=True):
        assert (blob.type, blob.fields, blob.properties) == (
            text.type,
            text.fields,
            text.properties,
        )
        assert (blob.snapshot_id, blob.sequence_number) == (snapshot.snapshot_id, 3)
        assert (text.snapshot_id, text.sequence_number) == (snapshot.snapshot_id, 3)
        sketch = ThetaSketch.from_bytes(
            read_puffin_blob(table.io, file.statistics_path, blob), "blob"
        )
        assert str(sketch.distinct_count) == blob.properties["ndv"]
    # The default is all columns except structs and lists.
    assert table.maintenance().compute_table_stats().distinct_counts == {"id": 3}
    [file] = table.metadata.statistics
    assert distinct_counts(table.metadata, snapshot) == {1: 3}


def not_read(*_: object) -> dict[int, ThetaSketch]:
    raise AssertionError("rows were read")


def test_again_on_the_same_snapshot_nothing_is_done() -> None:
    t, table = memory_table()
    first = table.maintenance().compute_table_stats()
    assert first.distinct_counts == {"id": 2, "part": 2}
    metadata = t.metadata
    again = table.maintenance().compute_table_stats(sketch_scan=not_read)
    assert again == first
    columns = table.maintenance().compute_table_stats(columns=["part", "id"], sketch_scan=not_read)
    assert columns == first
    plan = table.maintenance().compute_table_stats(dry_run=True, sketch_scan=not_read)
    assert (plan.statistics_file, plan.distinct_counts) == (None, first.distinct_counts)
    assert t.metadata == metadata
    assert statistics_files(t) == {first.statistics_file}
    # Other columns, and another snapshot, have other statistics.
    fewer = table.maintenance().compute_table_stats(columns=["id"])
    assert (fewer.distinct_counts, fewer.statistics_file in statistics_files(t)) == (
        {"id": 2},
        True,
    )
    assert fewer.statistics_file != first.statistics_file
    table.append(ROWS)
    new = table.maintenance().compute_table_stats(columns=["id"])
    assert new.statistics_file not in (None, fewer.statistics_file)
    assert len(t.metadata.statistics) == 2


@pytest.mark.parametrize("damage", ["missing", "truncated", "of another library"])
def test_a_file_that_cannot_be_kept_is_replaced(damage: str) -> None:
    t, table = memory_table()
    first = table.maintenance().compute_table_stats()
    path = first.statistics_file
    assert path is not None
    data = t.io.read_bytes(path)
    t.io.delete(path)
    if damage == "truncated":
        t.io.write_bytes(path, data[:-1])
    elif damage == "of another library":
        other = data.replace(b'"created-by":"iceberg-pyspark"', b'"created-by":"trino-version-1"')
        assert other != data
        t.io.write_bytes(path, other)
    again = table.maintenance().compute_table_stats()
    assert again.distinct_counts == first.distinct_counts
    assert again.statistics_file != path
    assert [s.statistics_path for s in t.metadata.statistics] == [again.statistics_file]


def test_deleted_rows_and_other_snapshots_are_not_counted(tmp_path: Path) -> None:
    """docs/conformance.md 90."""
    table = create_path_table(
        tmp_path / "t",
        "id BIGINT",
        properties={"format-version": "3"},
    )
    append_rows(table, [{"id": i} for i in range(10)])
    first = table.metadata.current_snapshot_id
    path, rows = table.scan(columns=["_file"]).to_arrow()["_file"][0].as_py(), range(4)
    delete_positions(table, {path: rows})
    table.refresh()
    plan = table.maintenance().compute_table_stats(dry_run=True)
    assert (plan.distinct_counts, plan.statistics_file) == ({"id": 6}, None)
    assert table.refresh().metadata.statistics == ()
    for snapshot_id, count in ((first, 10), (None, 6)):
        done = table.maintenance().compute_table_stats(snapshot_id=snapshot_id)
        assert done.distinct_counts == {"id": count}
    assert len(table.metadata.statistics) == 2


def test_a_table_without_rows_and_wrong_columns(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, l ARRAY<INT>")
    compute = table.maintenance().compute_table_stats
    assert compute().statistics_file is None
    append_rows(table, [{"id": None, "l": [1]}])
    assert compute().distinct_counts == {"id": 0}
    for names in (["no"], ["id.a"], ["l"], []):
        with pytest.raises(InvalidRequestError, match=r"path\.t|table"):
            compute(columns=names)
    with pytest.raises(NoSuchSnapshotError):
        compute(snapshot_id=1)


def test_a_racing_commit_keeps_it() -> None:
    t, table = memory_table()

    def overtaken(commit: Commit) -> Outcome[LoadedTable]:
        Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock).append(ROWS)
        return Refused(CommitConflictError("overtaken"))

    t.catalog.faults = [overtaken]
    done = table.maintenance().compute_table_stats()
    assert {s.statistics_path for s in t.metadata.statistics} == {done.statistics_file}
    assert statistics_files(t) == {done.statistics_file}
    assert len(t.metadata.snapshots) == 2


def test_an_expired_snapshot_and_a_refusal_leave_no_file() -> None:
    t, table = memory_table()
    table.append(ROWS)
    first = table.snapshots[0].snapshot_id

    def expired(commit: Commit) -> Outcome[LoadedTable]:
        other = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
        other.maintenance().expire_snapshots(snapshot_ids=[first])
        return Refused(CommitConflictError("overtaken"))

    t.catalog.faults = [expired]
    with pytest.raises(ConcurrentChangeError, match="expired"):
        table.maintenance().compute_table_stats(snapshot_id=first)
    assert (statistics_files(t), t.metadata.statistics) == (set(), ())


@pytest.mark.parametrize("arrived", [True, False])
def test_after_unknown_no_file_is_deleted(arrived: bool) -> None:
    t, table = memory_table()

    def lost(commit: Commit) -> Outcome[LoadedTable]:
        if arrived:
            commit()
        return unknown("table db.t", ConnectionError("lost"))

    t.catalog.faults = [lost]
    if arrived:
        done = table.maintenance().compute_table_stats()
        assert {s.statistics_path for s in t.metadata.statistics} == {done.statistics_file}
    else:
        with pytest.raises(CommitStateUnknownError):
            table.maintenance().compute_table_stats()
    assert len(statistics_files(t)) == 1


def test_expiry_keeps_what_is_live() -> None:
    t, table = memory_table()
    old = table.maintenance().compute_table_stats().statistics_file
    table.append(ROWS)
    live = table.maintenance().compute_table_stats().statistics_file
    assert statistics_files(t) == {old, live}
    done = table.maintenance().expire_snapshots(older_than=t.clock.now_ms() + 10**9)
    assert done.deleted_statistics_files_count == 1
    assert statistics_files(t) == {live}
    assert {s.statistics_path for s in t.metadata.statistics} == {live}


def test_replaced_statistics_are_orphan_files(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, v STRING")
    for number in range(2):
        append_rows(table, [{"id": number, "v": "a"}])
    old = table.maintenance().compute_table_stats(columns=["id"]).statistics_file
    live = {
        table.maintenance().compute_table_stats(snapshot_id=s.snapshot_id).statistics_file
        for s in table.snapshots
    }
    actual = table.maintenance().remove_orphan_files(older_than=4_000_000_000_000, force=True)
    assert actual.orphan_file_locations == (old,)
    assert {str(p) for p in (tmp_path / "t/metadata").glob("*.stats")} == live
