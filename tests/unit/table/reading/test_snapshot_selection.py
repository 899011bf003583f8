"""The snapshot and the schema that a read uses."""

from dataclasses import replace

import pytest

from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotLogEntry, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.table.reading.snapshot_selection import (
    SnapshotSelector,
    select_snapshot,
    snapshot_as_of,
    snapshots_between,
    timestamp_ms_of,
)

OLD = Schema(schema_id=0, fields=(NestedField(field_id=1, name="a", type=LongType()),))
NEW = Schema(schema_id=1, fields=(NestedField(field_id=1, name="b", type=LongType()),))


def a_table() -> TableMetadata:
    return TableMetadata(
        format_version=2,
        table_uuid="u",
        location="/t",
        last_updated_ms=0,
        last_column_id=1,
        schemas=(OLD, NEW),
        current_schema_id=1,
        partition_specs=(PartitionSpec(spec_id=0),),
        default_spec_id=0,
        last_partition_id=999,
        current_snapshot_id=2,
        snapshots=(
            Snapshot(snapshot_id=1, timestamp_ms=1000, manifest_list="l1", schema_id=0),
            Snapshot(snapshot_id=2, timestamp_ms=2000, manifest_list="l2", schema_id=1),
        ),
        refs={
            "main": SnapshotRef(snapshot_id=2),
            "old_branch": SnapshotRef(snapshot_id=1),
            "v1": SnapshotRef(snapshot_id=1, type="tag"),
            "7": SnapshotRef(snapshot_id=1, type="tag"),
        },
        snapshot_log=(
            SnapshotLogEntry(snapshot_id=1, timestamp_ms=1000),
            SnapshotLogEntry(snapshot_id=2, timestamp_ms=2000),
            # a rollback, and later a roll-forward
            SnapshotLogEntry(snapshot_id=1, timestamp_ms=3000),
            SnapshotLogEntry(snapshot_id=2, timestamp_ms=4000),
        ),
    )


def selected(**selector: object) -> tuple[int, str]:
    selection = select_snapshot(a_table(), SnapshotSelector(**selector))  # type: ignore[arg-type]
    assert selection.snapshot is not None
    return selection.snapshot.snapshot_id, selection.schema.fields[0].name


def test_default_is_main_with_the_table_schema() -> None:
    assert selected() == (2, "b")


def test_a_snapshot_id_and_a_tag_read_with_the_snapshot_schema() -> None:
    assert selected(snapshot_id=1) == (1, "a")
    assert selected(tag="v1") == (1, "a")
    assert selected(version="v1") == (1, "a")
    assert selected(version="1") == (1, "a")


def test_a_branch_reads_with_the_table_schema() -> None:
    assert selected(branch="old_branch") == (1, "b")
    assert selected(version="old_branch") == (1, "b")


def test_a_ref_whose_name_is_a_number_wins_over_the_snapshot_id() -> None:
    assert selected(version="7") == (1, "a")


def test_time_travel_follows_the_log_not_the_snapshots() -> None:
    """docs/conformance.md 89."""
    assert selected(as_of_timestamp_ms=2000)[0] == 2
    assert selected(as_of_timestamp_ms=3500)[0] == 1
    assert selected(as_of_timestamp_ms=9999)[0] == 2


def test_the_last_entry_of_a_time_counts() -> None:
    entries = ((1, 1000), (2, 2000), (1, 2000), (2, 3000), (1, 2500))
    log = tuple(SnapshotLogEntry(snapshot_id=i, timestamp_ms=t) for i, t in entries)
    table = replace(a_table(), snapshot_log=log)
    # A clock that was behind has no effect: the order of the log decides.
    for at_ms, expected in ((1999, 1), (2000, 1), (2499, 1), (2500, 1), (3000, 1)):
        assert snapshot_as_of(table, at_ms).snapshot_id == expected
    assert snapshot_as_of(replace(table, snapshot_log=log[:4]), 3000).snapshot_id == 2


def test_time_before_the_history_is_an_error_that_says_when_it_starts() -> None:
    with pytest.raises(NoSuchSnapshotError, match=r"starts at 1970-01-01T00:00:01"):
        selected(as_of_timestamp_ms=999)


def test_unknown_refs_and_ids_name_what_there_is() -> None:
    with pytest.raises(NoSuchSnapshotError, match="there are: 7, main, old_branch, v1"):
        selected(branch="nope")
    with pytest.raises(NoSuchSnapshotError, match="latest snapshots: 1, 2"):
        selected(snapshot_id=99)


def test_branch_and_tag_are_not_mixed_up() -> None:
    with pytest.raises(InvalidRequestError, match="is a tag"):
        selected(branch="v1")
    with pytest.raises(InvalidRequestError, match="is a branch"):
        selected(tag="main")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T01:00:00.25+01:00", 250),
        ("1970-01-01T00:00:00.123456789Z", 123),
    ],
)
def test_points_in_time(text: str, expected: int) -> None:
    assert timestamp_ms_of(text) == expected


@pytest.mark.parametrize(
    "selector", [SnapshotSelector(branch="main"), SnapshotSelector(version="main")], ids=str
)
def test_main_before_its_first_snapshot_is_empty(selector: SnapshotSelector) -> None:
    """Specification: there is always a branch main, also if the metadata has no refs."""
    audited = {"audit": SnapshotRef(snapshot_id=1)}
    for refs in ({}, audited):
        table = replace(a_table(), current_snapshot_id=None, refs=refs, snapshot_log=())
        selection = select_snapshot(table, selector)
        assert (selection.snapshot, selection.schema) == (None, NEW)
        assert snapshots_between(table, SnapshotSelector(branch="main")) == ()
        for missing in (SnapshotSelector(tag="main"), SnapshotSelector(branch="other")):
            with pytest.raises(NoSuchSnapshotError, match="has no branch or tag"):
                select_snapshot(table, missing)
