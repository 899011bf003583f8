"""Partition evolution and sort orders: kept and reused ids, and void fields of version 1."""

from __future__ import annotations

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
)
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.sort_changes import SortChanges
from iceberg_pyspark.changes.spec_changes import SpecChanges
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform, VoidTransform
from iceberg_pyspark.spec.types import LongType, NestedField, StringType, TimestampType

SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=LongType()),
        NestedField(field_id=2, name="ts", type=TimestampType()),
        NestedField(field_id=3, name="c", type=StringType()),
    )
)


def table(version: int = 2) -> TableMetadata:
    spec = PartitionSpec(
        spec_id=0,
        fields=(
            PartitionField(source_ids=(3,), field_id=1000, name="c", transform=IdentityTransform()),
        ),
    )
    return new_table_metadata(
        SCHEMA, spec, None, "t", {}, format_version=version, table_uuid="u", now_ms=1
    )


def apply_changes(changes: SpecChanges | SortChanges, metadata: TableMetadata) -> TableMetadata:
    return apply_updates(
        metadata,
        changes.changes(metadata).updates,
        now_ms=2,
        previous_metadata_location=None,
    )


def fields(metadata: TableMetadata) -> list[tuple[str, int, str]]:
    return [(f.name, f.field_id, str(f.transform)) for f in metadata.default_spec.fields]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_fields_are_added_with_the_next_id_and_the_usual_name(version: int) -> None:
    metadata = table(version)
    changes = SpecChanges(metadata).add_field("ts", "day").add_field("id", BucketTransform(8))
    after = apply_changes(changes.add_field("c", "truncate[2]", "prefix"), metadata)
    assert fields(after) == [
        ("c", 1000, "identity"),
        ("ts_day", 1001, "day"),
        ("id_bucket_8", 1002, "bucket[8]"),
        ("prefix", 1003, "truncate[2]"),
    ]
    assert (after.default_spec_id, after.last_partition_id) == (1, 1003)


def test_version_1_voids_a_field_and_later_versions_drop_it() -> None:
    """docs/conformance.md 61."""
    for version, expected in ((1, [("c", 1000, "void")]), (2, []), (3, [])):
        metadata = table(version)
        after = apply_changes(SpecChanges(metadata).remove_field("c"), metadata)
        assert fields(after) == expected
        assert after.last_partition_id == 1000


def test_a_void_field_gives_its_name_to_a_new_one() -> None:
    """docs/conformance.md 61."""
    metadata = table(1)
    after = apply_changes(SpecChanges(metadata).remove_field("c"), metadata)
    again = apply_changes(SpecChanges(after).add_field("c"), after)
    assert fields(again) == [("c_1000", 1000, "void"), ("c", 1001, "identity")]


def test_a_field_that_comes_back_has_its_old_id_and_name() -> None:
    """docs/conformance.md 60."""
    metadata = table()
    with_name = apply_changes(SpecChanges(metadata).add_field("id", "bucket[4]", "shard"), metadata)
    without = apply_changes(SpecChanges(with_name).remove_field("shard"), with_name)
    other = apply_changes(SpecChanges(without).add_field("ts", "day"), without)
    back = apply_changes(SpecChanges(other).add_field("id", "bucket[4]"), other)
    assert fields(back) == [
        ("c", 1000, "identity"),
        ("ts_day", 1002, "day"),
        ("shard", 1001, "bucket[4]"),
    ]
    renamed = apply_changes(SpecChanges(other).add_field("id", "bucket[4]", "other"), other)
    assert fields(renamed)[-1] == ("other", 1003, "bucket[4]"), "another name, another id"


def test_going_back_to_an_earlier_spec_uses_its_id() -> None:
    """docs/conformance.md 60."""
    metadata = table()
    more = apply_changes(SpecChanges(metadata).add_field("ts", "day"), metadata)
    back = apply_changes(SpecChanges(more).remove_field("ts_day"), more)
    assert (back.default_spec_id, len(back.partition_specs)) == (0, 2)


@pytest.mark.parametrize("version", [1, 2])
def test_removing_and_adding_the_same_changes_nothing(version: int) -> None:
    metadata = table(version)
    changes = SpecChanges(metadata).remove_field("c").add_field("c")
    assert changes.changes(metadata).updates == ()


@pytest.mark.parametrize("version", [1, 2])
def test_removing_and_adding_with_another_name_is_renaming(version: int) -> None:
    metadata = table(version)
    changes = SpecChanges(metadata).remove_field("c").add_field("c", name="country")
    assert fields(apply_changes(changes, metadata)) == [("country", 1000, "identity")]


def test_fields_are_renamed_and_removed_by_what_they_are() -> None:
    metadata = table()
    after = apply_changes(SpecChanges(metadata).rename_field("c", "country"), metadata)
    assert fields(after) == [("country", 1000, "identity")]
    without_field = apply_changes(SpecChanges(after).remove_source("c", "identity"), after)
    assert fields(without_field) == []


@pytest.mark.parametrize(
    ("source", "transform", "message"),
    [
        ("c", "identity", "already exists"),
        ("c", "hour", "does not take"),
        ("c", "zorder", "unknown partition transform"),
        ("nope", "identity", "no column"),
    ],
)
def test_impossible_partition_field_is_refused(source: str, transform: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        SpecChanges(table()).add_field(source, transform)


def test_redundant_fields_and_missing_ones_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="redundant"):
        SpecChanges(table()).add_field("ts", "day").add_field("ts", "hour")
    with pytest.raises(InvalidRequestError, match="no partition field 'x'; the table has: c"):
        SpecChanges(table()).remove_field("x")
    with pytest.raises(InvalidRequestError, match="not partitioned by day"):
        SpecChanges(table()).remove_source("ts", "day")
    voided = table(1)
    without = apply_changes(SpecChanges(voided).remove_field("c"), voided)
    assert isinstance(without.default_spec.fields[0].transform, VoidTransform)
    with pytest.raises(InvalidRequestError, match="no partition field 'c'"):
        SpecChanges(without).remove_field("c")


def test_changes_require_the_spec_they_were_made_on() -> None:
    """docs/conformance.md 95."""
    metadata = table()
    required = SpecChanges(metadata).remove_field("c").changes(metadata).requirements
    assert AssertDefaultSpecId(0) in required
    assert AssertLastAssignedPartitionId(1000) in required


def test_a_sort_order_replaces_the_one_before() -> None:
    """docs/conformance.md 87."""
    metadata = table()
    after = apply_changes(SortChanges(metadata).asc("id").desc("ts", "day"), metadata)
    assert after.default_sort_order_id == 1
    assert [(f.direction, f.null_order) for f in after.default_sort_order.fields] == [
        ("asc", "nulls-first"),
        ("desc", "nulls-last"),
    ]
    assert AssertDefaultSortOrderId(1) in SortChanges(after).changes(after).requirements
    assert apply_changes(SortChanges(after), after).default_sort_order_id == 0
    same = SortChanges(after).asc("id").desc("ts", "day")
    assert same.changes(after).updates == ()
    with pytest.raises(InvalidRequestError, match="does not take"):
        SortChanges(metadata).asc("c", "hour")
