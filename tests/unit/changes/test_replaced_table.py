"""A table that replaces another: which ids stay, and what is removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from iceberg_pyspark.changes.apply import apply_updates
from iceberg_pyspark.changes.changes import (
    AddSnapshot,
    AssertRefSnapshotId,
    SetSnapshotRef,
    TableUpdate,
)
from iceberg_pyspark.changes.new_table import new_table_metadata, replace_table
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot, SnapshotRef
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import NAME_MAPPING
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    VoidTransform,
)
from iceberg_pyspark.spec.types import IntegerType, ListType, NestedField, StringType, StructType
from tests.support.sort_orders import ascending

NESTED = StructType(
    (NestedField(field_id=11, name="x", type=IntegerType(), required=False),),
)
SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=IntegerType(), required=False),
        NestedField(field_id=2, name="s", type=StringType(), required=False),
        NestedField(field_id=3, name="st", type=NESTED, required=False),
    )
)


def spec(*fields: tuple[int, str, Transform]) -> PartitionSpec:
    return PartitionSpec(
        spec_id=0,
        fields=tuple(
            PartitionField(source_ids=(source,), field_id=1, name=name, transform=transform)
            for source, name, transform in fields
        ),
    )


def table(version: int = 2, partitioned: PartitionSpec | None = None) -> TableMetadata:
    order = SortOrder(
        order_id=1,
        fields=(ascending(1),),
    )
    metadata = new_table_metadata(
        SCHEMA,
        partitioned,
        order,
        "file:/t",
        {"a": "1", "b": "1"},
        format_version=version,
        table_uuid="u",
        now_ms=1,
    )
    snapshot = Snapshot(
        snapshot_id=5,
        sequence_number=1 if version > 1 else 0,
        timestamp_ms=2,
        manifest_list="file:/t/m.avro",
        summary={"operation": "append"},
        schema_id=0,
    )
    ref = SnapshotRef(snapshot_id=5)
    updates: list[TableUpdate] = [
        AddSnapshot(snapshot),
        SetSnapshotRef(MAIN, ref),
        SetSnapshotRef("kept", ref),
    ]
    return apply_updates(metadata, updates, now_ms=2, previous_metadata_location=None)


def replaced(
    metadata: TableMetadata,
    schema: Schema,
    partitioned: PartitionSpec | None = None,
    *,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    changes = replace_table(
        metadata, schema, partitioned, location=location, properties=properties or {}
    )
    return apply_updates(metadata, changes.updates, now_ms=3, previous_metadata_location=None)


NEW = Schema(
    fields=(
        NestedField(field_id=7, name="new", type=StringType(), required=False),
        NestedField(
            field_id=8,
            name="st",
            type=StructType(
                (
                    NestedField(field_id=9, name="y", type=IntegerType(), required=False),
                    NestedField(field_id=10, name="x", type=IntegerType(), required=False),
                )
            ),
            required=False,
        ),
        NestedField(field_id=12, name="id", type=StringType(), required=True),
        NestedField(
            field_id=13,
            name="li",
            type=ListType(element_id=14, element_type=IntegerType(), element_required=False),
            required=False,
        ),
    )
)


def test_columns_of_the_same_name_keep_their_ids() -> None:
    after = replaced(table(), NEW)
    assert after.last_column_id == 8
    assert after.current_schema_id == 1
    names = {name: i for i, name in after.current_schema.name_by_id.items()}
    assert names == {"id": 1, "st": 3, "st.x": 4, "new": 5, "li": 6, "st.y": 7, "li.element": 8}


def test_replaced_table_keeps_history_and_branches_and_has_an_empty_main() -> None:
    before = table()
    after = replaced(before, NEW, properties={"b": "2", "c": "3"}, location="file:/elsewhere")
    assert after.snapshots == before.snapshots
    assert after.current_snapshot_id is None
    assert dict(after.refs) == {"kept": SnapshotRef(snapshot_id=5)}
    assert after.default_sort_order.fields == ()
    assert {k: after.properties[k] for k in "abc"} == {"a": "1", "b": "2", "c": "3"}
    assert after.location == "file:/elsewhere"
    assert after.table_uuid == "u"
    assert replaced(before, NEW).location == before.location


def test_replacement_requires_that_main_has_not_moved() -> None:
    changes = replace_table(table(), NEW, None, location=None, properties={})
    assert AssertRefSnapshotId(MAIN, 5) in changes.requirements


def test_partition_fields_of_the_same_transform_keep_their_ids() -> None:
    before = table(partitioned=spec((1, "id", IdentityTransform()), (2, "s", IdentityTransform())))
    new_spec = spec((7, "new", IdentityTransform()), (12, "again", IdentityTransform()))
    fields = replaced(before, NEW, new_spec).default_spec.fields
    assert [(f.name, f.field_id, f.source_id) for f in fields] == [
        ("new", 1002, 5),
        ("again", 1000, 1),
    ]


def test_version_1_makes_partition_fields_void_where_they_are() -> None:
    before = table(1, spec((2, "s", IdentityTransform()), (1, "id", IdentityTransform())))
    schema = Schema(fields=SCHEMA.fields)
    new_spec = spec((1, "id", IdentityTransform()), (2, "s_b", BucketTransform(2)))
    fields = replaced(before, schema, new_spec).default_spec.fields
    assert [(f.name, f.field_id, f.transform) for f in fields] == [
        ("s", 1000, VoidTransform()),
        ("id", 1001, IdentityTransform()),
        ("s_b", 1002, BucketTransform(2)),
    ]


def test_the_format_version_only_grows() -> None:
    assert replaced(table(), NEW, properties={"format-version": "3"}).format_version == 3
    with pytest.raises(InvalidRequestError, match="version"):
        replaced(table(), NEW, properties={"format-version": "1"})


def test_a_name_mapping_gets_the_new_columns_and_the_given_one_wins() -> None:
    """Else the values of a new column in files without field ids would be read as null."""
    old = [
        {"field-id": 1, "names": ["id", "new"]},
        {"field-id": 2, "names": ["s"]},
        {"field-id": 3, "names": ["st"], "fields": [{"field-id": 4, "names": ["x"]}]},
    ]
    metadata = table()
    metadata = replace(metadata, properties={NAME_MAPPING: json.dumps(old)})
    after = replaced(metadata, NEW)
    assert json.loads(after.properties[NAME_MAPPING]) == [
        {"field-id": 1, "names": ["id"]},
        {"field-id": 2, "names": ["s"]},
        {
            "field-id": 3,
            "names": ["st"],
            "fields": [{"field-id": 4, "names": ["x"]}, {"field-id": 7, "names": ["y"]}],
        },
        {"field-id": 5, "names": ["new"]},
        {"field-id": 6, "names": ["li"], "fields": [{"field-id": 8, "names": ["element"]}]},
    ]
    own = json.dumps([{"field-id": 1, "names": ["own"]}])
    after = replaced(metadata, NEW, properties={NAME_MAPPING: own})
    assert after.properties[NAME_MAPPING] == own
    assert NAME_MAPPING not in replaced(table(), NEW).properties
