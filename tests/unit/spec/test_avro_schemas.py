"""Avro schemas of metadata files, and of Iceberg types in general (Appendix A)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.avro_schemas import (
    avro_name,
    decimal_bytes,
    manifest_entry_schema,
    manifest_file_schema,
    record_schema,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import decimal_of

METRICS = [108, 109, 110, 137, 125, 128]


def field_ids(record: Any) -> list[int]:
    return [f["field-id"] for f in record["fields"]]


def required_ids(record: Any) -> set[int]:
    return {f["field-id"] for f in record["fields"] if not isinstance(f["type"], list)}


def data_file(version: int) -> Any:
    schema = manifest_entry_schema(StructType(()), version)
    return next(f["type"] for f in schema["fields"] if f["field-id"] == 2)


def records(schema: Any) -> Iterator[str]:
    match schema:
        case list():
            for s in schema:
                yield from records(s)
        case {"type": "record"}:
            yield schema["name"]
            for f in schema["fields"]:
                yield from records(f["type"])
        case {"items": items}:
            yield from records(items)


@pytest.mark.parametrize(
    ("version", "ids"),
    [
        (1, [100, 101, 102, 103, 104, 105, *METRICS, 131, 132, 140]),
        (2, [134, 100, 101, 102, 103, 104, *METRICS, 131, 132, 135, 140, 143]),
        (3, [134, 100, 101, 102, 103, 104, *METRICS, 131, 132, 135, 140, 142, 143, 144, 145]),
    ],
)
def test_fields_of_a_data_file(version: int, ids: list[int]) -> None:
    record = data_file(version)
    assert field_ids(record) == ids
    assert required_ids(record) == {100, 101, 102, 103, 104} | ({105} if version == 1 else {134})


@pytest.mark.parametrize(
    ("version", "ids", "required"),
    [(1, [0, 1, 2], {0, 1, 2}), (2, [0, 1, 3, 4, 2], {0, 2}), (3, [0, 1, 3, 4, 2], {0, 2})],
)
def test_fields_of_an_entry(version: int, ids: list[int], required: set[int]) -> None:
    schema = manifest_entry_schema(StructType(()), version)
    assert (field_ids(schema), required_ids(schema)) == (ids, required)


COUNTS = [504, 505, 506, 512, 513, 514]


@pytest.mark.parametrize(
    ("version", "ids", "required"),
    [
        (1, [500, 501, 502, 503, 504, 505, 506, 507, 512, 513, 514, 519], {500, 501, 502, 503}),
        (
            2,
            [500, 501, 502, 517, 515, 516, 503, *COUNTS, 507, 519],
            {500, 501, 502, 517, 515, 516, 503, *COUNTS},
        ),
        (
            3,
            [500, 501, 502, 517, 515, 516, 503, *COUNTS, 507, 519, 520],
            {500, 501, 502, 517, 515, 516, 503, *COUNTS},
        ),
    ],
)
def test_fields_of_a_manifest_list(version: int, ids: list[int], required: set[int]) -> None:
    schema = manifest_file_schema(version)
    assert (field_ids(schema), required_ids(schema)) == (ids, required)


def test_records_have_the_names_java_gives_them() -> None:
    assert list(records(manifest_file_schema(3))) == ["manifest_file", "r508"]
    partition = StructType((NestedField(field_id=1000, name="p", type=LongType()),))
    assert list(records(manifest_entry_schema(partition, 2))) == [
        "manifest_entry",
        "r2",
        "r102",
        "k117_v118",
        "k119_v120",
        "k121_v122",
        "k138_v139",
        "k126_v127",
        "k129_v130",
    ]


@pytest.mark.parametrize(
    ("type_", "avro"),
    [
        (BooleanType(), "boolean"),
        (IntegerType(), "int"),
        (LongType(), "long"),
        (FloatType(), "float"),
        (DoubleType(), "double"),
        (StringType(), "string"),
        (BinaryType(), "bytes"),
        (GeometryType(), "bytes"),
        (GeographyType(), "bytes"),
        (DateType(), {"type": "int", "logicalType": "date"}),
        (TimeType(), {"type": "long", "logicalType": "time-micros"}),
        (
            TimestampType(),
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        ),
        (
            TimestamptzType(),
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
        ),
        (
            TimestampNsType(),
            {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
        ),
        (
            TimestamptzNsType(),
            {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
        ),
        (
            UUIDType(),
            {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
        ),
        (FixedType(3), {"type": "fixed", "name": "fixed_3", "size": 3}),
        (
            DecimalType(9, 2),
            {
                "type": "fixed",
                "name": "decimal_9_2",
                "size": 4,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
        ),
    ],
)
def test_primitive_types(type_: PrimitiveType, avro: Any) -> None:
    """docs/conformance.md 80 and 81."""
    optional = NestedField(field_id=1, name="a", type=type_)
    required = NestedField(field_id=2, name="b", type=type_, required=True)
    first, second = (
        record_schema(StructType((f,)), "r")["fields"][0] for f in (optional, required)
    )
    assert first == {"name": "a", "type": ["null", avro], "default": None, "field-id": 1}
    assert second == {"name": "b", "type": avro, "field-id": 2}


@pytest.mark.parametrize(
    ("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)]
)
def test_decimals_take_the_least_bytes(precision: int, size: int) -> None:
    """docs/conformance.md 77."""
    assert decimal_bytes(precision) == size


def test_unknown_is_null_and_variant_has_no_field_ids() -> None:
    fields = (
        NestedField(field_id=1, name="u", type=UnknownType()),
        NestedField(field_id=2, name="v", type=VariantType(), required=True),
    )
    unknown, variant = record_schema(StructType(fields), "r")["fields"]
    assert unknown["type"] == "null"
    assert [f["name"] for f in variant["type"]["fields"]] == ["metadata", "value"]
    assert all("field-id" not in f for f in variant["type"]["fields"])


def test_nested_types_carry_ids_at_every_level() -> None:
    type_ = ListType(
        element_id=2,
        element_type=MapType(
            key_id=3,
            key_type=IntegerType(),
            value_id=4,
            value_type=StructType((NestedField(field_id=5, name="x", type=LongType()),)),
        ),
    )
    schema = record_schema(StructType((NestedField(field_id=1, name="l", type=type_),)), "top")
    lists = schema["fields"][0]["type"][1]
    assert lists["element-id"] == 2
    maps = lists["items"][1]
    assert maps["logicalType"] == "map"
    entry = maps["items"]
    assert (entry["name"], field_ids(entry), required_ids(entry)) == ("k3_v4", [3, 4], {3})
    assert entry["fields"][1]["type"][1]["name"] == "r4"
    fastavro.parse_schema(schema)


def test_a_named_type_is_defined_once() -> None:
    fields = tuple(
        NestedField(field_id=i, name=f"c{i}", type=t)
        for i, t in enumerate((DecimalType(9, 2), DecimalType(9, 2), UUIDType(), UUIDType()))
    )
    schema = record_schema(StructType(fields), "r")
    assert [f["type"][1] for f in schema["fields"]][1::2] == ["decimal_9_2", "uuid_fixed"]
    fastavro.parse_schema(schema)


def test_original_names_are_kept_beside_sanitised_ones() -> None:
    """docs/conformance.md 82."""
    field = NestedField(field_id=1, name="a.b", type=LongType())
    (avro,) = record_schema(StructType((field,)), "r")["fields"]
    assert (avro["name"], avro["iceberg-field-name"]) == ("a_x2Eb", "a.b")
    assert avro_name("\u00e9") == "_xE9"


@pytest.mark.parametrize(
    ("type_", "default", "avro"),
    [
        (LongType(), 5, 5),
        (DecimalType(9, 2), decimal_of(1420, 2), "\x00\x00\x05\x8c"),
        (BinaryType(), b"\xff\x00", "\xff\x00"),
        (
            ListType(element_id=2, element_type=LongType(), element_required=True),
            [1, 2],
            [1, 2],
        ),
        (
            MapType(key_id=2, key_type=LongType(), value_id=3, value_type=LongType()),
            [(1, 2)],
            [{"key": 1, "value": 2}],
        ),
        (
            StructType(
                (
                    NestedField(field_id=2, name="x", type=LongType(), initial_default=7),
                    NestedField(field_id=3, name="y", type=LongType()),
                )
            ),
            {},
            {"x": 7, "y": None},
        ),
    ],
)
def test_defaults_become_avro_defaults(type_: Type, default: Any, avro: Any) -> None:
    """docs/conformance.md 71."""
    field = NestedField(field_id=1, name="a", type=type_, initial_default=default)
    (avro_field,) = record_schema(StructType((field,)), "r")["fields"]
    assert avro_field["default"] == avro
    assert avro_field["type"][1] == "null"


def test_a_type_without_avro_form_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="no Avro type"):
        record_schema(StructType((NestedField(field_id=1, name="a", type=PrimitiveMarker()),)), "r")


class PrimitiveMarker(PrimitiveType):
    """A type of a later version of the specification."""

    def __str__(self) -> str:
        return "marker"
