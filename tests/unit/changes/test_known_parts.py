"""Updates that refer to existing parts by id lead to the same metadata as the original updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.changes import changes as ch
from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.apply_schemas import same_schema
from iceberg_pyspark.changes.id_reuse import view_updates_with_known_ids, with_known_ids
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.view_changes import (
    SetCurrentViewVersion,
    ViewUpdate,
    apply_view_updates,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import BucketTransform
from iceberg_pyspark.spec.types import LongType, NestedField, StringType
from iceberg_pyspark.spec.views import SqlRepresentation
from tests.support.sort_orders import ascending

SCHEMAS = [
    Schema(
        fields=(
            NestedField(field_id=1, name="id", type=LongType(), required=True),
            *(NestedField(field_id=i, name=name, type=StringType()) for i, name in others),
        )
    )
    for others in ([], [(2, "v")], [(2, "w")], [(2, "v"), (3, "x")])
]
SPECS = [
    PartitionSpec(spec_id=0),
    *(
        PartitionSpec(
            spec_id=9,
            fields=(
                PartitionField(
                    source_ids=(1,),
                    field_id=1000 + i,
                    name=f"b{i}",
                    transform=BucketTransform(num_buckets=4 + i),
                ),
            ),
        )
        for i in range(2)
    ),
]
ORDERS = [
    UNSORTED,
    SortOrder(
        order_id=9,
        fields=(ascending(1),),
    ),
]

Pair: TypeAlias = tuple[ch.TableUpdate, ...]
ADDED: dict[str, list[Pair]] = {
    "schema": [(ch.AddSchema(s, s.highest_field_id), ch.SetCurrentSchema(-1)) for s in SCHEMAS],
    "spec": [(ch.AddPartitionSpec(s), ch.SetDefaultSpec(-1)) for s in SPECS],
    "order": [(ch.AddSortOrder(o), ch.SetDefaultSortOrder(-1)) for o in ORDERS],
}
PARTS = st.sampled_from([pair for pairs in ADDED.values() for pair in pairs])
OTHERS = st.just((ch.SetProperties({"a": "1"}),))
CHANGES = st.lists(PARTS | OTHERS, max_size=6).map(lambda groups: [x for g in groups for x in g])


def after(metadata: TableMetadata, updates: Sequence[ch.TableUpdate]) -> TableMetadata:
    return apply_updates(metadata, updates, now_ms=2, previous_metadata_location=None)


@given(before=CHANGES, updates=CHANGES)
def test_updates_with_known_ids_have_the_same_effect(
    before: list[ch.TableUpdate], updates: list[ch.TableUpdate]
) -> None:
    first = new_table_metadata(SCHEMAS[0], None, None, "/t", {}, table_uuid="0-0-0-0", now_ms=1)
    metadata = after(first, before)
    updates_with_ids = with_known_ids(metadata, updates)
    assert after(metadata, updates_with_ids) == after(metadata, updates)
    for update in updates_with_ids:
        match update:
            case ch.AddSchema(schema=schema, last_column_id=last_column_id):
                there = any(same_schema(s, schema) for s in metadata.schemas)
                assert not there or last_column_id > metadata.last_column_id
                assert there or schema.schema_id not in metadata.schema_by_id
            case ch.AddPartitionSpec(spec=spec):
                assert not any(s.same_fields(spec) for s in metadata.partition_specs)
                assert spec.spec_id not in metadata.spec_by_id
            case ch.AddSortOrder(sort_order=order):
                assert order.fields not in [o.fields for o in metadata.sort_orders]
                assert order.order_id not in [o.order_id for o in metadata.sort_orders]
            case _:
                pass


def test_a_part_that_is_removed_is_added_again() -> None:
    metadata = new_table_metadata(SCHEMAS[0], None, None, "/t", {}, table_uuid="0-0-0-0", now_ms=1)
    metadata = after(metadata, ADDED["spec"][1])
    updates = [ch.RemovePartitionSpecs((0,)), *ADDED["spec"][0]]
    assert with_known_ids(metadata, updates) == updates


VIEW_CHANGES = st.lists(
    st.sampled_from(
        [
            *(
                view_definition_updates(
                    schema,
                    (SqlRepresentation(sql, "spark"),),
                    default_namespace=("db",),
                    now_ms=3,
                )
                for schema in SCHEMAS[:2]
                for sql in ("SELECT 1", "SELECT 2")
            ),
            (ch.SetProperties({"a": "1"}),),
        ]
    ),
    max_size=4,
).map(lambda groups: [x for g in groups for x in g])


@given(before=VIEW_CHANGES, updates=VIEW_CHANGES)
def test_view_updates_with_known_ids_have_the_same_effect(
    before: list[ViewUpdate], updates: list[ViewUpdate]
) -> None:
    first = view_definition_updates(
        SCHEMAS[0], (SqlRepresentation("SELECT 1", "spark"),), default_namespace=("db",), now_ms=1
    )
    view = new_view_metadata(first, "/v", {}, view_uuid="0-0-0-0", now_ms=1)
    view = apply_view_updates(view, before, now_ms=2)
    updates_with_ids = view_updates_with_known_ids(view, updates)
    assert apply_view_updates(view, updates_with_ids, now_ms=3) == apply_view_updates(
        view, updates, now_ms=3
    )
    added = [x.schema for x in updates_with_ids if isinstance(x, ch.AddSchema)]
    assert not any(same_schema(s, a) for a in added for s in view.schemas)


def test_a_definition_that_a_view_has_is_not_added_again() -> None:
    first = view_definition_updates(
        SCHEMAS[0], (SqlRepresentation("SELECT 1", "spark"),), default_namespace=("db",), now_ms=1
    )
    view = new_view_metadata(first, "/v", {}, view_uuid="0-0-0-0", now_ms=1)
    assert view_updates_with_known_ids(view, first) == [SetCurrentViewVersion(1)]
