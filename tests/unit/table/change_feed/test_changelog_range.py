"""Which snapshots a range of versions or times has, and which ranges are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.table.change_feed.changelog_range import (
    ChangelogRange,
    check_row_ids,
    feed_columns,
    feed_of,
    selector_of_range,
)
from iceberg_pyspark.table.metadata_tables.changes_table import commit_times_us
from iceberg_pyspark.table.reading.snapshot_selection import snapshots_between
from tests.support.commit_tables import commit_table


def a_table(count: int, version: int = 2) -> Table:
    """Return a table with this number of snapshots."""
    t = commit_table()
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    if version != table.metadata.format_version:
        table.update_properties().set({"format-version": str(version)}).commit()
    for i in range(count):
        table.append(pa.table({"id": pa.array([i], pa.int64())}))
    return table


def versions(table: Table, branch: str | None = None, **bounds: Any) -> list[int]:
    """Return the sequence numbers of the snapshots in a range."""
    selector = selector_of_range(table.loaded, ChangelogRange(**bounds), branch)
    return [s.sequence_number for s in reversed(snapshots_between(table.metadata, selector))]


def test_a_range_of_versions_has_the_snapshots_between() -> None:
    table = a_table(4)
    ids = [str(s.snapshot_id) for s in table.snapshots]
    table.manage_snapshots().create_tag("t", int(ids[2])).commit()
    table.refresh()
    assert versions(table) == [1, 2, 3, 4]
    for start in ("3", ids[2], "t"):
        assert versions(table, start_version=start) == [3, 4]
        assert versions(table, start_version=start, start_inclusive=False) == [4]
        assert versions(table, start_version="1", end_version=start) == [1, 2, 3]
        before = versions(table, start_version="1", end_version=start, end_inclusive=False)
        assert before == [1, 2]
    assert versions(table, start_version="0") == [1, 2, 3, 4]
    assert versions(table, start_version="5") == []
    assert versions(table, start_version="3", end_version="2") == []
    assert versions(a_table(0), start_version="1") == []


def test_a_range_of_times_has_the_snapshots_between() -> None:
    table = a_table(3)
    first, second, third = (s.timestamp_ms * 1000 for s in table.snapshots)
    assert versions(table, start_time_us=second) == [2, 3]
    assert versions(table, start_time_us=second, start_inclusive=False) == [3]
    assert versions(table, start_time_us=0, end_time_us=second) == [1, 2]
    assert versions(table, start_time_us=0, end_time_us=second, end_inclusive=False) == [1]
    assert versions(table, start_time_us=first + 1, end_time_us=third - 1) == [2]
    assert versions(table, start_time_us=third + 1) == []


def test_versions_that_are_not_known_are_refused() -> None:
    table = a_table(4)
    for bounds in ({"start_version": "6"}, {"start_version": "1", "end_version": "5"}):
        with pytest.raises(NoSuchSnapshotError, match=r"no version [56].*sequence number is 4"):
            versions(table, **bounds)
    with pytest.raises(NoSuchSnapshotError, match="no branch or tag 'x'"):
        versions(table, start_version="x")
    first_ms = table.snapshots[0].timestamp_ms
    table.maintenance().expire_snapshots(snapshot_ids=[table.snapshots[0].snapshot_id])
    table.refresh()
    assert versions(table, start_version="2") == [2, 3, 4]
    with pytest.raises(NoSuchSnapshotError, match="snapshots have expired; begin with version 3"):
        versions(table, start_version="1")
    with pytest.raises(NoSuchSnapshotError, match="snapshots have expired; begin with version 3"):
        versions(table, start_time_us=first_ms * 1000)


def test_snapshots_without_sequence_numbers_are_refused() -> None:
    table = a_table(2)
    old, new = table.snapshots
    for snapshots, begin in (((old, new), "0"), ((old,), "1")):
        first = (replace(old, sequence_number=0), *snapshots[1:])
        main = replace(table.metadata.refs["main"], snapshot_id=snapshots[-1].snapshot_id)
        metadata = replace(table.metadata, snapshots=first, refs={"main": main})
        metadata = replace(metadata, current_snapshot_id=main.snapshot_id)
        loaded = replace(table.loaded, metadata=metadata)
        with pytest.raises(InvalidRequestError, match="version 1 have no sequence number"):
            selector_of_range(loaded, ChangelogRange(start_version=begin), None)


def test_a_branch_has_versions_of_its_own() -> None:
    table = a_table(2)
    table.manage_snapshots().create_branch("b").commit()
    table.append(pa.table({"id": pa.array([5], pa.int64())}), branch="b")
    table.refresh()
    assert versions(table, start_version="2") == [2]
    assert versions(table, "b", start_version="2") == [2, 3]


def test_times_rise_whatever_the_clocks_of_writers_say() -> None:
    table = a_table(3)
    metadata = table.metadata
    late, *others = metadata.snapshots
    same = [replace(s, timestamp_ms=late.timestamp_ms - i) for i, s in enumerate(others)]
    skewed = replace(metadata, snapshots=(late, *same))
    times = commit_times_us(skewed, same[-1].snapshot_id)
    us = late.timestamp_ms * 1000
    assert [times[s.snapshot_id] for s in (late, *same)] == [us, us + 1, us + 2]
    assert commit_times_us(metadata, 7) == {}


def test_what_needs_row_ids_is_refused_before_version_3() -> None:
    table = a_table(1)
    assert feed_of(table.loaded, deduplication="NONE", compute_updates=False) == "changelog"
    net = feed_of(table.loaded, deduplication="DROP_CARRYOVERS", compute_updates=False)
    assert net == "net_changelog"
    with pytest.raises(InvalidRequestError, match="computeUpdates matches rows by their row ids"):
        feed_of(table.loaded, deduplication="DROP_CARRYOVERS", compute_updates=True)
    with pytest.raises(InvalidRequestError, match="netChanges matches rows by their row ids"):
        feed_of(table.loaded, deduplication="NET_CHANGES", compute_updates=False)
    new = a_table(1, version=3).loaded
    assert feed_of(new, deduplication="NET_CHANGES", compute_updates=True) == "changelog"


def test_rows_from_before_row_ids_are_refused() -> None:
    table = a_table(1)
    table.update_properties().set({"format-version": "3"}).commit()
    table.overwrite(pa.table({"id": pa.array([5], pa.int64())}))
    table.overwrite(pa.table({"id": pa.array([6], pa.int64())}))
    table.refresh()
    old, first, second = table.snapshots
    for snapshot in (old, first):
        with pytest.raises(
            InvalidRequestError, match="had no row id before the table was upgraded"
        ):
            check_row_ids("t", table.metadata, [snapshot])
    check_row_ids("t", table.metadata, [second])


def test_columns_with_names_of_the_feed_are_refused() -> None:
    table = a_table(0, version=3)
    names = [f.name for f in feed_columns("t", table.metadata, table.schema).fields]
    lineage = ["_row_id", "_last_updated_sequence_number"]
    assert names == ["_change_type", "_commit_version", "_commit_timestamp", *lineage]
    table.update_schema().add_column("_commit_version", "int").commit()
    table.refresh()
    with pytest.raises(InvalidRequestError, match=r"\(_commit_version\); rename them"):
        feed_columns("t", table.metadata, table.schema)
