"""Schemas and single values in Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import (
    arrow_type,
    field_id_of,
    from_arrow_schema,
    scalar_of,
    to_arrow_schema,
    value_of,
)
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from tests.support.scan_tasks import optional, required, schema_of
from tests.support.strategies import PRIMITIVE_TYPES, nullable

NESTED = schema_of(
    required(1, "id", LongType(), doc="key"),
    optional(
        2,
        "s",
        StructType((required(5, "x", IntegerType()), optional(6, "y", StringType()))),
    ),
    optional(3, "l", ListType(element_id=7, element_type=DateType(), element_required=True)),
    optional(
        4,
        "m",
        MapType(key_id=8, key_type=StringType(), value_id=9, value_type=TimestampType()),
    ),
)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (DecimalType(9, 2), pa.decimal128(9, 2)),
        (TimeType(), pa.time64("us")),
        (TimestampType(), pa.timestamp("us")),
        (TimestamptzType(), pa.timestamp("us", tz="UTC")),
        (TimestampNsType(), pa.timestamp("ns")),
        (TimestamptzNsType(), pa.timestamp("ns", tz="UTC")),
        (UUIDType(), pa.binary(16)),
        (FixedType(3), pa.binary(3)),
        (UnknownType(), pa.null()),
    ],
)
def test_types_have_one_arrow_form(type_: PrimitiveType, expected: pa.DataType) -> None:
    assert arrow_type(type_) == expected


def test_nullability_at_every_level() -> None:
    arrow = to_arrow_schema(NESTED)
    assert [f.nullable for f in arrow] == [False, True, True, True]
    assert [arrow.field("s").type.field(i).nullable for i in (0, 1)] == [False, True]
    assert not arrow.field("l").type.value_field.nullable
    assert not arrow.field("m").type.key_field.nullable
    assert arrow.field("m").type.item_field.nullable


def test_field_ids_at_every_level_only_when_asked_for() -> None:
    assert all(f.metadata is None for f in to_arrow_schema(NESTED))
    arrow = to_arrow_schema(NESTED, field_ids=True)
    assert [field_id_of(f) for f in arrow] == [1, 2, 3, 4]
    assert field_id_of(arrow.field("l").type.value_field) == 7
    assert field_id_of(arrow.field("m").type.key_field) == 8
    assert field_id_of(arrow.field("m").type.item_field) == 9
    assert arrow.field("id").metadata[b"doc"] == b"key"


@pytest.mark.parametrize(
    "type_", [GeometryType(), GeometryType("srid:3857"), GeographyType("OGC:CRS84", "karney")]
)
def test_geometries_are_bytes_that_their_field_marks(type_: PrimitiveType) -> None:
    schema = schema_of(optional(1, "s", StructType((optional(2, "v", type_),))))
    arrow = to_arrow_schema(schema)
    assert arrow.field("s").type.field("v").type == pa.binary()
    assert from_arrow_schema(arrow) == schema


def test_round_trip_keeps_ids_docs_and_nullability() -> None:
    assert from_arrow_schema(to_arrow_schema(NESTED, field_ids=True)) == NESTED


def test_fresh_ids_number_siblings_before_what_is_nested() -> None:
    assert from_arrow_schema(to_arrow_schema(NESTED)).name_by_id == NESTED.name_by_id


@pytest.mark.parametrize("type_", PRIMITIVE_TYPES)
def test_primitives_round_trip_except_what_arrow_cannot_tell_apart(type_: PrimitiveType) -> None:
    schema = from_arrow_schema(to_arrow_schema(schema_of(optional(1, "c", type_))))
    expected = FixedType(16) if isinstance(type_, UUIDType) else type_
    assert schema.fields[0].type == expected


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [
        (pa.int8(), IntegerType()),
        (pa.uint32(), LongType()),
        (pa.dictionary(pa.int32(), pa.large_string()), StringType()),
        (pa.date64(), DateType()),
        (pa.timestamp("ms"), TimestampType()),
        (pa.timestamp("s", tz="Europe/Vienna"), TimestamptzType()),
        (pa.uuid(), UUIDType()),
        (pa.null(), UnknownType()),
    ],
)
def test_other_arrow_types_widen(arrow: pa.DataType, expected: PrimitiveType) -> None:
    assert from_arrow_schema(pa.schema([("c", arrow)])).fields[0].type == expected


def test_all_kinds_of_lists() -> None:
    for arrow in (pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_view(pa.int64())):
        (field,) = from_arrow_schema(pa.schema([("c", arrow)])).fields
        assert field.type == ListType(element_id=2, element_type=LongType())


@pytest.mark.parametrize("arrow", [pa.uint64(), pa.duration("us"), pa.decimal256(50, 2)])
def test_arrow_types_no_iceberg_type_holds_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidRequestError, match="column 'c'"):
        from_arrow_schema(pa.schema([("c", arrow)]))


def test_ids_on_some_fields_only_are_refused() -> None:
    mixed = pa.schema(
        [pa.field("a", pa.int32(), metadata={b"PARQUET:field_id": b"1"}), ("b", pa.int32())]
    )
    with pytest.raises(InvalidRequestError, match="others have none"):
        from_arrow_schema(mixed)


def test_duplicate_ids_are_refused() -> None:
    twice = {b"PARQUET:field_id": b"1"}
    mixed = pa.schema([pa.field(n, pa.int32(), metadata=twice) for n in "ab"])
    with pytest.raises(InvalidRequestError, match="used by both"):
        from_arrow_schema(mixed)


POINT = StructType(
    (
        optional(1, "x", IntegerType(), initial_default=7),
        optional(2, "y", ListType(element_id=3, element_type=TimestampType())),
    )
)


@given(st.data())
def test_every_primitive_value_round_trips(data: st.DataObject) -> None:
    type_: PrimitiveType = data.draw(st.sampled_from(PRIMITIVE_TYPES))
    value: Any = data.draw(nullable(type_))
    scalar = scalar_of(type_, value)
    assert scalar.type == arrow_type(type_)
    back = value_of(type_, scalar)
    assert back == value or (value != value and back != back)


def test_nested_values_come_back() -> None:
    type_ = MapType(key_id=4, key_type=StringType(), value_id=5, value_type=POINT)
    value = [("a", {1: 1, 2: [0, None]}), ("b", None)]
    assert value_of(type_, scalar_of(type_, value)) == value


def test_children_missing_in_a_struct_take_their_own_default() -> None:
    """docs/conformance.md 69."""
    assert value_of(POINT, scalar_of(POINT, {})) == {1: 7, 2: None}
    assert value_of(POINT, scalar_of(POINT, {1: None})) == {1: None, 2: None}
    assert not scalar_of(POINT, None).is_valid


def test_dates_are_days() -> None:
    assert str(scalar_of(DateType(), -1)) == "1969-12-31"
