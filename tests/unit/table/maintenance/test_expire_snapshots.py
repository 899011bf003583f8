"""Expiry deletes exactly the files that only expired snapshots need.

docs/conformance.md 91 and 92.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.changes import SetPartitionStatistics, SetStatistics
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.outcomes import Outcome, Refused, unknown
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, RowDelta
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidRequestError,
    StorageError,
)
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits import commit_root
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.maintenance.removal.expire_snapshots import ExpiredSnapshots
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table, data_file
from tests.support.frames import append_rows, create_path_table, path_table
from tests.support.hooked_storage import HookedFileIO
from tests.support.table_integrity import live_entries, table_problems

pytestmark = pytest.mark.usefixtures("each_version")

LOCATION = "mem://wh/t"
LATER = 1_900_000_000_000
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})


def a_table(version: int | None = None, properties: Mapping[str, str] | None = None) -> CommitTable:
    return commit_table(
        partitioned=True, properties=properties, location=LOCATION, format_version=version
    )


def users(t: CommitTable, io: Any = None) -> Table:
    return Table(t.catalog, t.loaded, io=io or t.io, clock=t.clock.clock)


def files(t: CommitTable) -> set[str]:
    return {f.location for f in t.io.list_files("mem://")}


def reachable(t: CommitTable, m: TableMetadata) -> set[str]:
    """Return the files that the snapshots of the metadata need, collected one by one."""
    result = {s.statistics_path for s in m.statistics}
    result |= {s.statistics_path for s in m.partition_statistics}
    for s in m.snapshots:
        assert s.manifest_list is not None
        result |= {s.manifest_list, *(manifest.manifest_path for manifest in t.manifests(s))}
        result |= {e.data_file.file_path for e in live_entries(m, t.io, s)}
    return result


def expire(table: Table, **arguments: Any) -> ExpiredSnapshots:
    return table.maintenance().expire_snapshots(**{"older_than": LATER, **arguments})


def deleted(done: ExpiredSnapshots) -> int:
    names = [n for n in done.__slots__ if n.startswith("deleted_")]
    assert len(names) == 6
    return sum(getattr(done, n) for n in names)


def rows_of(table: Table) -> dict[int, list[Any]]:
    selectors = {
        s.snapshot_id: SnapshotSelector(snapshot_id=s.snapshot_id) for s in table.snapshots
    }
    return {
        i: sorted(map(str, table.scan(selector=s).to_arrow().to_pylist()))
        for i, s in selectors.items()
    }


def three_overwrites(properties: Mapping[str, str] | None = None) -> CommitTable:
    t = a_table(properties=properties)
    table = users(t)
    for _ in range(3):
        table.overwrite(ROWS)
    return t


@pytest.mark.with_lists("the files that go are counted with their lists")
def test_files_of_expired_snapshots_are_deleted() -> None:
    """docs/conformance.md 92."""
    t = three_overwrites()
    table, stray = users(t), f"{LOCATION}/data/stray"
    t.io.write_bytes(stray, b"nobody's")
    before, needed, old = files(t), reachable(t, t.metadata), t.metadata
    plan = expire(table, dry_run=True)
    assert (files(t), t.metadata) == (before, old)
    done = expire(table)
    assert done == plan
    assert (done.expired_snapshots_count, done.deleted_data_files_count) == (2, 4)
    assert done.deleted_manifest_lists_count == 2
    assert before - files(t) == needed - reachable(t, t.metadata)
    assert deleted(done) == len(before - files(t))
    assert stray in files(t)
    assert table.metadata == t.metadata
    assert len(table.snapshots) == 1
    assert table.scan().to_arrow().num_rows == 2
    assert table_problems(table) == []
    location = t.loaded.metadata_location
    assert expire(table) == ExpiredSnapshots()
    assert t.loaded.metadata_location == location, "a second run commits nothing"


def test_by_the_tables_own_settings_and_by_datetime() -> None:
    t = three_overwrites({"history.expire.min-snapshots-to-keep": "2"})
    assert expire(users(t), older_than=None) == ExpiredSnapshots()
    past = datetime(2020, 1, 1, tzinfo=timezone.utc)
    assert expire(users(t), older_than=past) == ExpiredSnapshots()
    assert expire(users(t), older_than=datetime(2040, 1, 1)).expired_snapshots_count == 1


@pytest.mark.with_lists("version 4 has no position delete files")
def test_delete_files_and_statistics_are_counted_as_what_they_are() -> None:
    t = a_table()
    table = users(t)
    table.append(ROWS)
    deletes = [
        data_file(name, "a", content=content, equality_ids=ids)
        for name, content, ids in (
            ("p1", FileContent.POSITION_DELETES, None),
            ("p2", FileContent.POSITION_DELETES, None),
            ("e1", FileContent.EQUALITY_DELETES, (1,)),
        )
    ]
    deletes = [replace(f, file_path=f"{LOCATION}/data/{i}") for i, f in enumerate(deletes)]
    for f in deletes:
        t.io.write_bytes(f.file_path, b"deletes")
    checks = ConflictChecks(base_snapshot_id=t.metadata.current_snapshot_id)
    commit(t, RowDelta(delete_files=tuple(deletes), checks=checks))
    number = t.metadata.snapshots[-1].snapshot_id
    for name in ("stats", "partitions"):
        t.io.write_bytes(f"{LOCATION}/metadata/{name}", b"statistics")
    t.catalog.commit_table(
        t.loaded.identifier,
        [],
        [
            SetStatistics(
                StatisticsFile(
                    snapshot_id=number,
                    statistics_path=f"{LOCATION}/metadata/stats",
                    file_size_in_bytes=1,
                    file_footer_size_in_bytes=1,
                )
            ),
            SetPartitionStatistics(
                PartitionStatisticsFile(
                    snapshot_id=number,
                    statistics_path=f"{LOCATION}/metadata/partitions",
                    file_size_in_bytes=1,
                )
            ),
        ],
    )
    users(t).overwrite(ROWS)
    before = files(t)
    done = expire(users(t))
    assert (
        done.deleted_data_files_count,
        done.deleted_position_delete_files_count,
        done.deleted_equality_delete_files_count,
        done.deleted_statistics_files_count,
    ) == (2, 2, 1, 2)
    assert len(before - files(t)) == deleted(done)


def commit(t: CommitTable, action: Any, branch: str = MAIN) -> None:
    options = CommitOptions(branch=branch)
    commit_action(t.catalog, t.loaded, t.io, action, options, clock=t.clock.clock)


def test_a_puffin_file_stays_while_one_of_its_vectors_is_live() -> None:
    """docs/conformance.md 92."""
    t = a_table(3)
    table = users(t)
    table.append(ROWS)
    location = f"{LOCATION}/data/shared.puffin"
    t.io.write_bytes(location, b"two vectors")
    vectors = [
        replace(
            data_file("x", *e.data_file.partition, content=FileContent.POSITION_DELETES),
            file_path=location,
            file_format="puffin",
            referenced_data_file=e.data_file.file_path,
            content_offset=4 + 40 * i,
            content_size_in_bytes=40,
        )
        for i, e in enumerate(t.entries())
    ]
    checks = ConflictChecks(base_snapshot_id=t.metadata.current_snapshot_id)
    commit(t, RowDelta(delete_files=tuple(vectors), checks=checks))
    users(t).overwrite(ROWS.slice(0, 0), "part = 'a'")
    done = expire(users(t))
    assert (done.deleted_data_files_count, done.deleted_position_delete_files_count) == (1, 0)
    assert location in files(t)
    users(t).overwrite(ROWS.slice(0, 0), "part = 'b'")
    done = expire(users(t))
    assert (done.deleted_data_files_count, done.deleted_position_delete_files_count) == (1, 1)
    assert location not in files(t)


@pytest.mark.with_lists("a location without a scheme is relative in version 4")
def test_files_referenced_elsewhere_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """docs/conformance.md 92."""
    t = a_table()
    shared, elsewhere = f"{LOCATION}/data/f", "mem://wh/other/data/f"
    for location in (shared, elsewhere):
        t.io.write_bytes(location, b"rows")
    paths = (shared, elsewhere, "no/location")
    old = [replace(data_file("x", "a"), file_path=path) for path in paths]
    commit(t, AppendFiles(data_files=tuple(old)))
    users(t).delete("part = 'a'")
    # the same location in another writer's spelling
    spelled = replace(old[0], file_path="mem://wh/t/data//./f")
    commit(t, AppendFiles(data_files=(spelled,)))
    done = expire(users(t))
    assert (done.deleted_data_files_count, done.outside_files_count) == (0, 1)
    assert {shared, elsewhere} <= files(t)
    assert f"1 outside its own folders ({LOCATION}) stay" in caplog.text


def test_expiry_without_gc_is_refused() -> None:
    t = three_overwrites({"gc.enabled": "false"})
    before = files(t)
    with pytest.raises(InvalidRequestError, match=r"cannot expire snapshots.*gc\.enabled is false"):
        expire(users(t))
    assert files(t) == before


@pytest.mark.parametrize("number", [0, -1])
def test_max_concurrent_deletes_below_one_is_refused(number: int) -> None:
    with pytest.raises(InvalidRequestError, match="max_concurrent_deletes must be at least 1"):
        expire(users(a_table()), max_concurrent_deletes=number)


# concurrent commits

Meanwhile = Callable[[CommitTable, Table], None]


def a_branch(t: CommitTable, table: Table) -> None:
    table.manage_snapshots().create_branch(
        "new", snapshot_id=table.snapshots[0].snapshot_id
    ).commit()


def a_rollback(t: CommitTable, table: Table) -> None:
    table.manage_snapshots().rollback_to(table.snapshots[1].snapshot_id).commit()


def an_append(t: CommitTable, table: Table) -> None:
    table.append(ROWS)


@pytest.mark.with_lists("the lists that stay are counted")
@pytest.mark.parametrize(
    ("meanwhile", "is_before", "count"),
    [(a_branch, True, 1), (a_rollback, True, 2), (an_append, True, 3), (an_append, False, 2)],
)
def test_files_of_a_concurrent_commit_are_kept(
    meanwhile: Meanwhile, is_before: bool, count: int
) -> None:
    t = three_overwrites()
    others = users(t)

    def fault(real: Callable[[], Outcome[LoadedTable]]) -> Outcome[LoadedTable]:
        if is_before:
            meanwhile(t, others)
            return real()
        outcome = real()
        meanwhile(t, others.refresh())
        return outcome

    t.catalog.faults.append(fault)
    done = expire(users(t))
    assert reachable(t, t.metadata) <= files(t)
    assert done.expired_snapshots_count == count
    assert ("new" in t.metadata.refs) == (meanwhile is a_branch)
    assert table_problems(users(t)) == []
    assert len(rows_of(users(t))) == len(t.metadata.snapshots)
    expire(users(t), retain_last=9)
    remaining = reachable(t, t.metadata)
    assert {f for f in files(t) if not f.endswith(".metadata.json")} == remaining


def test_a_commit_that_is_refused_or_unknown_deletes_nothing() -> None:
    t = three_overwrites({"commit.retry.num-retries": "0", "commit.status-check.num-retries": "0"})
    before = files(t)
    t.catalog.faults.append(lambda real: Refused(CommitConflictError("no")))
    with pytest.raises(CommitConflictError):
        expire(users(t))
    assert files(t) == before

    def done_but_lost(real: Callable[[], Outcome[LoadedTable]]) -> Outcome[LoadedTable]:
        real()
        return unknown("table", OSError("gone"))

    t.catalog.faults.append(done_but_lost)
    with pytest.raises(CommitStateUnknownError):
        expire(users(t))
    assert before <= files(t)
    assert len(t.metadata.snapshots) == 1


def test_after_the_commit_nothing_fails_it(caplog: pytest.LogCaptureFixture) -> None:
    """After the commit, no unreadable manifest and no failed deletion is an error."""
    for broken in ("read_bytes", "delete"):
        t = three_overwrites()
        before = files(t)
        remaining = t.manifests()[0].manifest_path

        def hook(operation: str, location: str, moment: str) -> None:
            if operation == broken and (operation == "delete" or location == remaining):  # noqa: B023
                raise StorageError(f"{location}: not today")

        with caplog.at_level(logging.WARNING):
            done = expire(users(t, HookedFileIO(t.io, hook)))
        assert (done.expired_snapshots_count, deleted(done)) == (2, 0)
        assert before <= files(t)
        assert len(t.metadata.snapshots) == 1
        assert "not today" in caplog.text
        caplog.clear()


def test_files_of_a_lost_manifest_are_left() -> None:
    t = three_overwrites()
    t.io.delete(t.manifests(t.metadata.snapshots[0])[0].manifest_path)
    done = expire(users(t))
    assert done.expired_snapshots_count == 2
    assert done.deleted_data_files_count == 2


@pytest.mark.with_lists("the lists that go are counted")
def test_a_kill_leaves_orphans_and_nothing_missing() -> None:
    """The process is stopped before and after each deletion."""
    t = three_overwrites()
    count = deleted(expire(users(t), dry_run=True))
    for at in range(2 * count + 1):
        t = three_overwrites()
        before, steps = files(t), iter(range(1000))

        def hook(operation: str, location: str, moment: str) -> None:
            if operation == "delete" and next(steps) == at:  # noqa: B023
                raise KeyboardInterrupt

        table = users(t, HookedFileIO(t.io, hook))
        stopped = at < 2 * count
        try:
            expire(table, max_concurrent_deletes=1)
        except KeyboardInterrupt:
            assert stopped
        else:
            assert not stopped
        assert len(t.metadata.snapshots) == 1
        assert reachable(t, t.metadata) <= files(t)
        # A deleting thread may go on for a while before it notices the interrupt.
        assert (at + 1) // 2 <= len(before - files(t)) <= count
        assert table_problems(users(t)) == []


def test_expired_metadata_is_cleaned_when_asked() -> None:
    t = a_table()
    table = users(t)
    table.append(ROWS)
    table.update_schema().add_column("c", "int").commit()
    table.update_spec().remove_field("part").commit()
    wider = ROWS.append_column("c", pa.array([1, 2], pa.int32()))
    table.overwrite(wider)
    # The snapshot that deletes a file lists the file once more as deleted.
    table.append(wider)
    assert expire(table, snapshot_ids=[7]).expired_snapshots_count == 2
    assert (len(table.metadata.schemas), len(table.metadata.partition_specs)) == (2, 2)
    rows = rows_of(table)
    expire(table, clean_expired_metadata=True)
    assert (len(table.metadata.schemas), len(table.metadata.partition_specs)) == (1, 1)
    location = table.loaded.metadata_location
    expire(table, clean_expired_metadata=True)
    assert table.loaded.metadata_location == location
    assert rows_of(table) == rows


# random histories

Step = Callable[[Table, Any], None]


def _append(table: Table, draw: Any) -> None:
    branches = [n for n, ref in table.refs.items() if ref.type == "branch"] or [MAIN]
    table.append(some_rows(draw), branch=draw(st.sampled_from(sorted(branches))))


def _overwrite(table: Table, draw: Any) -> None:
    table.overwrite(some_rows(draw), dynamic=draw(st.booleans()))


def _delete(table: Table, draw: Any) -> None:
    table.delete(f"part = '{draw(st.sampled_from('abc'))}'")


def _refer(table: Table, draw: Any) -> None:
    name, ids = f"r{len(table.refs)}", [s.snapshot_id for s in table.snapshots]
    if not ids or name in table.refs:
        return
    snapshot_id = draw(st.sampled_from(ids))
    age = draw(st.sampled_from([None, 1]))
    change = table.manage_snapshots()
    make = draw(st.sampled_from([change.create_branch, change.create_tag]))
    make(name, snapshot_id=snapshot_id, max_ref_age_ms=age).commit()


def _move(table: Table, draw: Any) -> None:
    ids = [s.snapshot_id for s in table.snapshots]
    if ids:
        table.manage_snapshots().set_current_snapshot(draw(st.sampled_from(ids))).commit()


def _expire(table: Table, draw: Any) -> None:
    expire(table, retain_last=draw(st.sampled_from([1, 2, 3])))


def some_rows(draw: Any) -> pa.Table:
    parts = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
    return pa.table({"id": pa.array(range(len(parts)), pa.int64()), "part": parts})


STEPS = (_append, _append, _append, _overwrite, _delete, _refer, _refer, _move, _expire)


@settings(max_examples=settings().max_examples * 40 // 100)
@given(st.data())
def test_every_remaining_snapshot_reads_the_same(data: st.DataObject) -> None:
    draw = data.draw
    merging = {"commit.manifest.min-count-to-merge": "2"}
    t = a_table(draw(st.sampled_from([2, 3])), merging if draw(st.booleans()) else {})
    table = users(t)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=12)):
        note(step.__name__)
        step(table, draw)
        table.refresh()
    before, needed, rows = files(t), reachable(t, t.metadata), rows_of(table)
    old = t.metadata
    arguments: dict[str, Any] = {"retain_last": draw(st.sampled_from([None, 1, 2]))}
    loose = {s.snapshot_id for s in old.snapshots} - {r.snapshot_id for r in old.refs.values()}
    snapshot_ids = sorted(loose)[: draw(st.integers(0, 1))]
    if snapshot_ids:
        arguments |= {"older_than": None, "snapshot_ids": snapshot_ids}
    done = expire(table, **arguments)
    note(f"{arguments}: {done}")
    removed = needed - reachable(t, t.metadata)
    assert before - files(t) == removed
    assert deleted(done) == len(removed)
    assert done.expired_snapshots_count == len(old.snapshots) - len(t.metadata.snapshots)
    remaining_rows = rows_of(table)
    assert remaining_rows == {i: rows[i] for i in remaining_rows}
    assert MAIN not in old.refs or t.metadata.refs[MAIN] == old.refs[MAIN]
    assert table_problems(table) == []
    assert expire(table, **arguments) == ExpiredSnapshots()


def test_puffin_files_of_vectors_of_manifests_go_with_the_roots_that_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_root, "MAX_INLINE_VECTOR_BYTES", 0)
    properties = {
        "format-version": "4",
        "write.root.file-system-tables.enabled": "true",
        "write.root.max-data-entries": "0",
        "commit.manifest-merge.enabled": "false",
    }
    table = create_path_table(
        tmp_path / "t", "id BIGINT, p INT", partitioned_by=["p"], properties=properties
    )
    append_rows(table, [{"id": i, "p": i} for i in range(4)])
    for p in range(3):
        table.delete(f"p = {p}")

    def vectors() -> int:
        return len(list((tmp_path / "t/metadata").glob("*.puffin")))

    assert vectors() == 3
    table.maintenance().expire_snapshots(older_than=table.snapshots[-1].timestamp_ms + 1)
    # The newest root's vector remains, and the one before, which shows what that root removed.
    assert vectors() == 2
    table.maintenance().remove_orphan_files(older_than=2**53, force=True)
    assert vectors() == 2
    table = path_table(tmp_path / "t")
    assert table.verify(check_files=True).findings == ()
    append_rows(table, [{"id": 4, "p": 4}])
    table.maintenance().expire_snapshots(older_than=table.snapshots[-1].timestamp_ms + 1)
    assert vectors() == 1
    assert sorted(path_table(tmp_path / "t").scan().to_arrow()["id"].to_pylist()) == [3, 4]
    assert path_table(tmp_path / "t").verify(check_files=True).findings == ()
