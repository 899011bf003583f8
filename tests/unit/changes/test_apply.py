"""Updates applied to metadata: ids, snapshots, refs, logs, statistics, format versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
)
from iceberg_pyspark.changes.compatibility import normal_location
from iceberg_pyspark.changes.new_table import new_table_metadata, new_table_updates
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import (
    TableMetadata,
    metadata_from_bytes,
    metadata_from_json,
    metadata_to_bytes,
    metadata_to_json,
)
from iceberg_pyspark.spec.transforms import BucketTransform
from iceberg_pyspark.spec.types import IntegerType, LongType, NestedField, StringType
from tests.support.sort_orders import ascending

NOW = 1_700_000_000_000
A = NestedField(field_id=1, name="a", type=LongType(), required=True)
B = NestedField(field_id=2, name="b", type=StringType())
C = NestedField(field_id=3, name="c", type=IntegerType())
SCHEMA = Schema(fields=(A, B))


def table(version: int = 2, properties: Mapping[str, str] | None = None) -> TableMetadata:
    return new_table_metadata(
        SCHEMA,
        None,
        None,
        "mem://t",
        properties or {},
        format_version=version,
        table_uuid="u",
        now_ms=NOW,
    )


def apply(
    metadata: TableMetadata | None, *updates: TableUpdate, now_ms: int = NOW + 1
) -> TableMetadata:
    applied = apply_updates(
        metadata, updates, now_ms=now_ms, previous_metadata_location="mem://t/previous"
    )
    assert metadata_from_bytes(metadata_to_bytes(applied), "m") == applied
    return applied


def snapshot(
    number: int,
    *,
    parent: int | None = None,
    rows: int | None = None,
    first_row: int | None = None,
) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent,
        sequence_number=number,
        timestamp_ms=NOW + number,
        manifest_list=f"mem://t/snap-{number}",
        summary={"operation": "append"},
        first_row_id=first_row,
        added_rows=rows,
    )


def commit(metadata: TableMetadata, number: int, ref: str = "main") -> TableMetadata:
    head = metadata.refs.get(ref)
    added = snapshot(number, parent=None if head is None else head.snapshot_id)
    return apply(metadata, AddSnapshot(added), SetSnapshotRef(ref, SnapshotRef(snapshot_id=number)))


def spec(*names: tuple[str, int, int]) -> PartitionSpec:
    return PartitionSpec(
        spec_id=99,
        fields=tuple(
            PartitionField(
                source_ids=(source,), field_id=field_id, name=name, transform=BucketTransform(4)
            )
            for name, source, field_id in names
        ),
    )


def test_no_update_gives_the_very_same_metadata() -> None:
    metadata = table()
    assert apply_updates(metadata, [], now_ms=NOW + 5, previous_metadata_location="p") is metadata
    same: list[TableUpdate] = [
        SetProperties(dict(metadata.properties)),
        SetLocation("mem://t/"),
        AssignUUID("U"),
    ]
    assert apply_updates(metadata, same, now_ms=NOW + 5, previous_metadata_location="p") is metadata


def test_a_table_is_made_from_its_updates_alone() -> None:
    metadata = table(3)
    assert apply(None, *new_table_updates(metadata), now_ms=NOW) == metadata


@pytest.mark.parametrize("dropped", range(9))
def test_a_new_table_needs_everything(dropped: int) -> None:
    updates = list(new_table_updates(table()))
    del updates[dropped]
    with pytest.raises(InvalidRequestError):
        apply(None, *updates)


def test_an_equal_schema_keeps_its_id_and_a_new_one_gets_the_next() -> None:
    wider = Schema(fields=(A, B, C), schema_id=42)
    metadata = apply(table(), AddSchema(wider, 3), SetCurrentSchema(LAST_ADDED))
    assert (metadata.current_schema_id, metadata.last_column_id) == (1, 3)
    back = apply(metadata, AddSchema(SCHEMA, 2), SetCurrentSchema(LAST_ADDED))
    assert (back.current_schema_id, len(back.schemas)) == (0, 2)


def test_last_column_id_never_decreases() -> None:
    """docs/conformance.md 68."""
    metadata = apply(table(), AddSchema(Schema(fields=(A, B, C)), 7), SetCurrentSchema(LAST_ADDED))
    assert metadata.last_column_id == 7
    assert apply(metadata, AddSchema(Schema(fields=(A,)), 0)).last_column_id == 7


def test_an_unknown_schema_cannot_become_current() -> None:
    with pytest.raises(InvalidRequestError, match="schema 9"):
        apply(table(), SetCurrentSchema(9))
    with pytest.raises(InvalidRequestError, match="none was added"):
        apply(table(), SetCurrentSchema(LAST_ADDED))


def test_dropping_the_source_of_the_default_spec_is_refused() -> None:
    partitioned = apply(
        table(), AddPartitionSpec(spec(("b4", 2, 1000))), SetDefaultSpec(LAST_ADDED)
    )
    with pytest.raises(InvalidRequestError, match="b4"):
        apply(partitioned, AddSchema(Schema(fields=(A,)), 2), SetCurrentSchema(LAST_ADDED))


def test_an_equivalent_spec_is_used_again() -> None:
    """docs/conformance.md 60."""
    first = apply(table(), AddPartitionSpec(spec(("p", 1, 1000))), SetDefaultSpec(LAST_ADDED))
    assert (first.default_spec_id, first.last_partition_id) == (1, 1000)
    second = apply(first, AddPartitionSpec(spec(("q", 2, 1001))), SetDefaultSpec(LAST_ADDED))
    assert (second.default_spec_id, second.last_partition_id) == (2, 1001)
    again = apply(second, AddPartitionSpec(spec(("p", 1, 1000))), SetDefaultSpec(LAST_ADDED))
    assert (again.default_spec_id, len(again.partition_specs)) == (1, 3)


def test_a_partition_field_id_is_not_given_to_another_column() -> None:
    """docs/conformance.md 60."""
    first = apply(table(), AddPartitionSpec(spec(("p", 1, 1000))))
    with pytest.raises(InvalidRequestError, match="1000"):
        apply(first, AddPartitionSpec(spec(("q", 2, 1000))))


def test_version_1_numbers_partition_fields_from_1000() -> None:
    with pytest.raises(InvalidRequestError, match="1001"):
        apply(table(1), AddPartitionSpec(spec(("p", 1, 1001))))


def test_sort_orders_start_at_1_and_are_used_again() -> None:
    """docs/conformance.md 87."""
    by_a = SortOrder(
        order_id=17,
        fields=(ascending(1),),
    )
    metadata = apply(table(), AddSortOrder(by_a), SetDefaultSortOrder(LAST_ADDED))
    assert metadata.default_sort_order_id == 1
    unsorted = apply(metadata, AddSortOrder(SortOrder(order_id=5)), SetDefaultSortOrder(LAST_ADDED))
    assert unsorted.default_sort_order_id == 0
    again = apply(unsorted, AddSortOrder(by_a), SetDefaultSortOrder(LAST_ADDED))
    assert (again.default_sort_order_id, len(again.sort_orders)) == (1, 2)
    with pytest.raises(InvalidRequestError, match="sort field 1"):
        apply(
            table(), AddSortOrder(replace(by_a, fields=(replace(by_a.fields[0], source_ids=(9,)),)))
        )


def test_a_snapshot_moves_main_and_the_snapshot_log() -> None:
    metadata = commit(commit(table(), 1), 2)
    assert metadata.current_snapshot_id == 2
    assert metadata.last_sequence_number == 2
    assert [e.snapshot_id for e in metadata.snapshot_log] == [1, 2]
    assert metadata.last_updated_ms == NOW + 2


def test_a_snapshot_behind_the_table_is_a_conflict() -> None:
    """docs/conformance.md 88."""
    metadata = commit(table(), 5)
    with pytest.raises(CommitConflictError, match="sequence number 5"):
        apply(metadata, AddSnapshot(replace(snapshot(5), snapshot_id=6)))


def test_a_snapshot_id_is_used_once() -> None:
    metadata = commit(table(), 5)
    with pytest.raises(InvalidRequestError, match="already"):
        apply(metadata, AddSnapshot(replace(snapshot(5), sequence_number=6)))


def test_last_sequence_number_stays_on_rollback() -> None:
    """docs/conformance.md 88."""
    metadata = commit(commit(table(), 1), 2)
    back = apply(metadata, SetSnapshotRef("main", SnapshotRef(snapshot_id=1)), now_ms=NOW + 9)
    assert (back.current_snapshot_id, back.last_sequence_number) == (1, 2)
    assert [(e.snapshot_id, e.timestamp_ms - NOW) for e in back.snapshot_log] == [
        (1, 1),
        (2, 2),
        (1, 9),
    ]


def test_branches_do_not_touch_current_snapshot_or_log() -> None:
    """docs/conformance.md 89."""
    metadata = commit(table(), 1)
    branched = commit(apply(metadata, SetSnapshotRef("b", SnapshotRef(snapshot_id=1))), 2, ref="b")
    assert branched.current_snapshot_id == 1
    assert branched.snapshot_log == metadata.snapshot_log
    assert branched.refs["b"].snapshot_id == 2


def test_retention_of_main_changes_without_a_log_entry() -> None:
    """docs/conformance.md 89."""
    metadata = commit(table(), 1)
    with_retention = apply(
        metadata, SetSnapshotRef("main", SnapshotRef(snapshot_id=1, min_snapshots_to_keep=3))
    )
    assert with_retention.snapshot_log == metadata.snapshot_log


def test_the_snapshot_log_never_goes_back_in_time() -> None:
    """docs/conformance.md 89."""
    metadata = commit(table(), 10)
    slow = replace(snapshot(11, parent=10), timestamp_ms=NOW - 999_999)
    behind = apply(
        metadata,
        AddSnapshot(slow),
        SetSnapshotRef("main", SnapshotRef(snapshot_id=11)),
        now_ms=NOW - 999_999,
    )
    assert [e.timestamp_ms for e in behind.snapshot_log] == [NOW + 10, NOW + 10]
    assert behind.last_updated_ms == metadata.last_updated_ms


def test_snapshots_current_only_inside_a_commit_are_not_logged() -> None:
    two = apply(
        table(),
        AddSnapshot(snapshot(1)),
        SetSnapshotRef("main", SnapshotRef(snapshot_id=1)),
        AddSnapshot(snapshot(2, parent=1)),
        SetSnapshotRef("main", SnapshotRef(snapshot_id=2)),
    )
    assert [e.snapshot_id for e in two.snapshot_log] == [2]


def test_references_need_their_snapshot_and_main_is_a_branch() -> None:
    """docs/conformance.md 84."""
    metadata = commit(table(), 1)
    with pytest.raises(InvalidRequestError, match="snapshot 7"):
        apply(metadata, SetSnapshotRef("t", SnapshotRef(snapshot_id=7, type="tag")))
    with pytest.raises(InvalidRequestError, match="branch"):
        apply(metadata, SetSnapshotRef("main", SnapshotRef(snapshot_id=1, type="tag")))
    with pytest.raises(InvalidRequestError, match="only branches"):
        apply(
            metadata,
            SetSnapshotRef("t", SnapshotRef(snapshot_id=1, type="tag", min_snapshots_to_keep=1)),
        )


def test_removing_main_empties_the_table_and_keeps_its_history() -> None:
    metadata = apply(commit(table(), 1), RemoveSnapshotRef("main"))
    assert metadata.current_snapshot_id is None
    assert [s.snapshot_id for s in metadata.snapshots] == [1]


def test_expired_snapshots_take_logs_references_and_statistics_along() -> None:
    """docs/conformance.md 89 and 90."""
    metadata = table()
    for number in (1, 2, 3):
        metadata = commit(metadata, number)
    metadata = apply(
        metadata,
        SetSnapshotRef("old", SnapshotRef(snapshot_id=2, type="tag")),
        SetStatistics(statistics(2)),
        SetStatistics(statistics(3)),
        SetPartitionStatistics(partition_statistics(2)),
    )
    expired = apply(metadata, RemoveSnapshots((2,)))
    assert [s.snapshot_id for s in expired.snapshots] == [1, 3]
    assert [e.snapshot_id for e in expired.snapshot_log] == [3], "no gap in the history"
    assert set(expired.refs) == {"main"}
    assert [s.snapshot_id for s in expired.statistics] == [3]
    assert expired.partition_statistics == ()
    with pytest.raises(InvalidRequestError, match="main"):
        apply(metadata, RemoveSnapshots((3,)))


def statistics(number: int, path: str = "p") -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=number, statistics_path=path, file_size_in_bytes=1, file_footer_size_in_bytes=1
    )


def partition_statistics(number: int) -> PartitionStatisticsFile:
    return PartitionStatisticsFile(snapshot_id=number, statistics_path="p", file_size_in_bytes=1)


def test_statistics_are_one_per_snapshot() -> None:
    """docs/conformance.md 90."""
    metadata = apply(
        commit(table(), 1),
        SetStatistics(statistics(1)),
        SetStatistics(statistics(1, "q")),
        SetPartitionStatistics(partition_statistics(1)),
        SetPartitionStatistics(partition_statistics(1)),
    )
    assert [s.statistics_path for s in metadata.statistics] == ["q"]
    assert len(metadata.partition_statistics) == 1
    without_statistics = apply(metadata, RemoveStatistics(1), RemovePartitionStatistics(1))
    assert not without_statistics.statistics
    assert not without_statistics.partition_statistics


def test_statistics_survive_commits() -> None:
    """docs/conformance.md 90."""
    metadata = commit(apply(commit(table(), 1), SetStatistics(statistics(1))), 2)
    assert [s.snapshot_id for s in metadata.statistics] == [1]


def test_the_metadata_log_is_capped() -> None:
    """docs/conformance.md 90."""
    metadata = table(properties={"write.metadata.previous-versions-max": "2"})
    for number in range(1, 5):
        metadata = apply_updates(
            metadata,
            [SetProperties({"n": str(number)})],
            now_ms=NOW + number,
            previous_metadata_location=f"v{number}",
        )
    assert [(e.metadata_file, e.timestamp_ms - NOW) for e in metadata.metadata_log] == [
        ("v3", 2),
        ("v4", 3),
    ]


def test_row_ids_advance_by_added_rows() -> None:
    """docs/conformance.md 16."""
    metadata = replace(table(3), next_row_id=1000)
    after = apply(metadata, AddSnapshot(snapshot(1, rows=375, first_row=1000)))
    assert after.next_row_id == 1375


def test_a_snapshot_with_row_ids_that_are_taken_is_a_conflict() -> None:
    metadata = replace(table(3), next_row_id=1000)
    with pytest.raises(CommitConflictError, match="999"):
        apply(metadata, AddSnapshot(snapshot(1, rows=1, first_row=999)))
    with pytest.raises(InvalidRequestError, match="first-row-id"):
        apply(metadata, AddSnapshot(snapshot(1)))
    with pytest.raises(InvalidRequestError, match="negative"):
        apply(metadata, AddSnapshot(snapshot(1, rows=-1, first_row=1000)))


def test_upgrades_go_up_only_and_start_row_ids_at_0() -> None:
    """docs/conformance.md 18."""
    upgraded = apply(commit(table(2), 1), UpgradeFormatVersion(3))
    assert (upgraded.format_version, upgraded.next_row_id) == (3, 0)
    assert upgraded.snapshots[0].first_row_id is None
    with pytest.raises(InvalidRequestError, match="lower"):
        apply(upgraded, UpgradeFormatVersion(2))
    with pytest.raises(InvalidRequestError, match="5"):
        apply(upgraded, UpgradeFormatVersion(5))


def test_an_upgrade_to_version_4_keeps_row_ids_and_makes_every_path_absolute() -> None:
    upgraded = apply(commit(table(2), 1), UpgradeFormatVersion(3))
    local = [replace(s, manifest_list="/wh/t/metadata/a.avro") for s in upgraded.snapshots]
    before = replace(upgraded, location="/wh/t", next_row_id=7, snapshots=tuple(local))
    after = apply(before, UpgradeFormatVersion(4))
    assert (after.format_version, after.next_row_id, after.location) == (4, 7, "file:/wh/t")
    new = after.snapshots[0]
    assert new.manifest_list == "file:/wh/t/metadata/a.avro"
    assert new.table_location == "file:/wh/t"
    assert after.properties["write.root.enabled"] == "true"
    assert metadata_from_json(metadata_to_json(after)).snapshots == after.snapshots


def test_a_uuid_is_given_once_and_required_since_version_2() -> None:
    """docs/conformance.md 83."""
    with pytest.raises(CommitConflictError, match="UUID u"):
        apply(table(), AssignUUID("other"))
    old = replace(table(1), table_uuid=None)
    with pytest.raises(InvalidRequestError, match="assign"):
        apply(old, UpgradeFormatVersion(2))
    assert apply(old, AssignUUID("x"), UpgradeFormatVersion(2)).table_uuid == "x"


def test_reserved_properties_are_never_kept() -> None:
    metadata = apply(table(), SetProperties({"format-version": "3", "uuid": "x", "k": "v"}))
    assert metadata.format_version == 2
    assert dict(metadata.properties) == {"write.parquet.compression-codec": "zstd", "k": "v"}
    assert "k" not in apply(metadata, RemoveProperties(("k", "missing"))).properties


def test_unused_schemas_and_specs_go_but_not_the_ones_in_use() -> None:
    metadata = apply(
        table(),
        AddSchema(Schema(fields=(A, B, C)), 3),
        AddPartitionSpec(spec(("p", 1, 1000))),
    )
    less = apply(metadata, RemoveSchemas((1,)), RemovePartitionSpecs((1,)))
    assert (len(less.schemas), len(less.partition_specs)) == (1, 1)
    assert less.last_partition_id == 1000
    for used in (RemoveSchemas((0,)), RemovePartitionSpecs((0,))):
        with pytest.raises(InvalidRequestError, match="cannot remove"):
            apply(metadata, used)


def test_locations_lose_their_trailing_slash() -> None:
    assert apply(table(), SetLocation("s3://b/t//")).location == "s3://b/t"
    assert normal_location("/") == "/"
    assert normal_location("s3://") == "s3://"


def test_a_snapshot_needs_a_known_schema_and_a_manifest_list() -> None:
    with pytest.raises(InvalidRequestError, match="schema 8"):
        apply(table(), AddSnapshot(replace(snapshot(1), schema_id=8)))
    with pytest.raises(InvalidRequestError, match="manifest list"):
        apply(table(), AddSnapshot(replace(snapshot(1), manifest_list=None)))
