"""Avro data files: every Avro form of each Iceberg type, codecs, and damaged files."""

from __future__ import annotations

import datetime as dt
import io as streams
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from iceberg_pyspark.errors import IcebergError, StorageError
from iceberg_pyspark.spec.name_mapping import MappedField, NameMapping
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    optional,
    position_deletes,
    read_rows,
    required,
    schema_of,
    task_of,
)

FILE = "/db/t/data/f.avro"
DECIMAL = {
    "type": "fixed", "name": "decimal_9_2", "size": 4, "logicalType": "decimal",
    "precision": 9, "scale": 2,
}  # fmt: skip
PLACE = {
    "type": "record",
    "name": "r4",
    "fields": [
        {"name": "x", "type": ["null", "int"], "field-id": 5},
        {"name": "_2d", "type": ["null", "decimal_9_2"], "field-id": 6},
    ],
}
ENTRY = {
    "type": "record",
    "name": "k10_v11",
    "fields": [
        {"name": "key", "type": "int", "field-id": 10},
        {"name": "value", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
         "field-id": 11},
    ],
}  # fmt: skip
AVRO = {
    "type": "record",
    "name": "table",
    "fields": [
        {"name": "id", "type": "long", "field-id": 1},
        {"name": "gone", "type": ["null", "string"], "field-id": 2},
        {"name": "dec", "type": ["null", DECIMAL], "field-id": 3},
        {"name": "place", "type": ["null", PLACE], "field-id": 4},
        {"name": "places", "type": ["null", {"type": "array", "items": ["null", "r4"],
                                             "element-id": 8}], "field-id": 7},
        {"name": "by_int", "type": ["null", {"type": "array", "logicalType": "map",
                                             "items": ENTRY}], "field-id": 9},
        {"name": "by_text", "type": ["null", {"type": "map", "values": ["null", "bytes"],
                                              "key-id": 13, "value-id": 14}], "field-id": 12},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "field-id": 15},
        {"name": "time", "type": ["null", {"type": "long", "logicalType": "time-micros"}],
         "field-id": 16},
        {"name": "ts", "type": ["null", {"type": "long", "logicalType": "timestamp-micros",
                                         "adjust-to-utc": False}], "field-id": 17},
        {"name": "uuid", "type": ["null", {"type": "fixed", "name": "uuid_fixed", "size": 16,
                                           "logicalType": "uuid"}], "field-id": 18},
        {"name": "fixed", "type": ["null", {"type": "fixed", "name": "f2", "size": 2}],
         "field-id": 19},
        {"name": "unknown", "type": "null", "field-id": 20},
    ],
}  # fmt: skip
SCHEMA = schema_of(
    required(1, "key", LongType()),
    optional(3, "dec", DecimalType(12, 2)),
    optional(
        4,
        "place",
        StructType((optional(6, "d", DecimalType(9, 2)), optional(5, "x", LongType()))),
    ),
    optional(
        7,
        "places",
        ListType(element_id=8, element_type=StructType((optional(5, "x", IntegerType()),))),
    ),
    optional(
        9,
        "by_int",
        MapType(key_id=10, key_type=IntegerType(), value_id=11, value_type=TimestamptzType()),
    ),
    optional(
        12,
        "by_text",
        MapType(key_id=13, key_type=StringType(), value_id=14, value_type=BinaryType()),
    ),
    optional(15, "day", DateType()),
    optional(16, "time", TimeType()),
    optional(17, "ts", TimestampType()),
    optional(18, "uuid", UUIDType()),
    optional(19, "fixed", FixedType(2)),
    optional(99, "later", IntegerType(), initial_default=7),
)
UTC = dt.timezone.utc
FULL = {
    "id": 1,
    "gone": "x",
    "dec": Decimal("-1.50"),
    "place": {"x": 2, "_2d": Decimal("3.25")},
    "places": [{"x": 1, "_2d": None}, None],
    "by_int": [{"key": 5, "value": dt.datetime(1969, 12, 31, 23, tzinfo=UTC)}],
    "by_text": {"a": b"\x00", "b": None},
    "day": dt.date(1969, 12, 31),
    "time": dt.time(23, 59, 59, 999999),
    "ts": dt.datetime(2026, 1, 1, 0, 0, 0, 1),
    "uuid": bytes(range(16)),
    "fixed": b"ab",
    "unknown": None,
}
EMPTY = dict.fromkeys(FULL) | {"id": 2}


def write_avro(
    io: MemoryFileIO, schema: dict[str, Any], rows: list[dict[str, Any]], codec: str = "null"
) -> None:
    out = streams.BytesIO()
    fastavro.writer(out, schema, rows, codec=codec, sync_interval=100)
    io.write_bytes(FILE, out.getvalue())


def read(
    io: MemoryFileIO,
    schema: Schema,
    count: int,
    name_mapping: NameMapping | None = None,
    **changes: Any,
) -> list[dict[str, Any]]:
    task = task_of(io, FILE, file_format="avro", record_count=count, **changes)
    return read_rows(context_of(schema, name_mapping=name_mapping), task, io)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_every_shape_of_a_type(codec: str) -> None:
    io = MemoryFileIO()
    write_avro(io, AVRO, [FULL, EMPTY], codec)
    full, empty = read(io, SCHEMA, 2)
    assert full == {
        "key": 1,
        "dec": Decimal("-1.50"),
        "place": {"d": Decimal("3.25"), "x": 2},
        "places": [{"x": 1}, None],
        "by_int": [(5, dt.datetime(1969, 12, 31, 23, tzinfo=UTC))],
        "by_text": [("a", b"\x00"), ("b", None)],
        "day": dt.date(1969, 12, 31),
        "time": dt.time(23, 59, 59, 999999),
        "ts": dt.datetime(2026, 1, 1, 0, 0, 0, 1),
        "uuid": bytes(range(16)),
        "fixed": b"ab",
        "later": 7,
    }
    assert empty == dict.fromkeys(full) | {"key": 2, "later": 7}


NUMBERS = {
    "type": "record",
    "name": "table",
    "fields": [{"name": "n", "type": "int", "field-id": 1}],
}
NUMBER = schema_of(required(1, "n", IntegerType()))


def test_positions_run_through_blocks_and_batches() -> None:
    io = MemoryFileIO()
    write_avro(io, NUMBERS, [{"n": n} for n in range(20_000)])
    deletes = position_deletes(io, "/db/t/data/d.parquet", [(FILE, 0), (FILE, 19_999)])
    rows = read(io, NUMBER, 20_000, deletes=(deletes,))
    assert [row["n"] for row in rows] == list(range(1, 19_999))
    assert len(read(io, schema_of(), 20_000)) == 20_000


def test_a_file_that_ends_between_blocks_or_amid_one_is_damaged() -> None:
    io = MemoryFileIO()
    write_avro(io, NUMBERS, [{"n": n} for n in range(1_000)])
    whole = io.read_bytes(FILE)
    sync = whole[-16:]
    second_last = whole.rindex(sync, 0, len(whole) - 16) + 16
    for end, message in (
        (second_last, "its manifest entry says 1000"),
        (second_last + 5, "record"),
    ):
        io.write_bytes(FILE, whole[:end])
        with pytest.raises((StorageError, IcebergError), match=message):
            read(io, NUMBER, 1_000)
    io.write_bytes(FILE, b"no Avro at all")
    with pytest.raises(IcebergError, match="damaged Avro file"):
        read(io, NUMBER, 1_000)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (["null", "int", "string"], "union of 2 types"),
        (
            {"type": "array", "items": "null", "element-id": 2},
            "without bytes|elements of type",
        ),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, "its schema has the type"),
    ],
)
def test_types_that_iceberg_has_not_are_refused(type_: Any, message: str) -> None:
    io = MemoryFileIO()
    schema = {
        "type": "record",
        "name": "table",
        "fields": [{"name": "n", "type": type_, "field-id": 1}],
    }
    write_avro(io, schema, [])
    with pytest.raises(IcebergError, match=message):
        read(io, NUMBER, 0)


def without_ids(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_ids(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: without_ids(v) for k, v in schema.items() if not k.endswith("-id")}


def test_a_file_without_field_ids_is_read_by_the_names_of_the_tables_columns() -> None:
    io = MemoryFileIO()
    write_avro(io, without_ids(AVRO), [FULL, EMPTY])
    new_names = {"key": "id", "d": "_2d"}
    schema = Schema(fields=tuple(renamed(f, new_names) for f in SCHEMA.fields))
    rows = read(io, schema, 2)
    write_avro(io, AVRO, [FULL, EMPTY])
    assert rows == read(io, schema, 2)


def renamed(f: NestedField, names: Mapping[str, str]) -> NestedField:
    type_ = f.type
    if isinstance(type_, StructType):
        type_ = StructType(tuple(renamed(c, names) for c in type_.fields))
    return replace(f, name=names.get(f.name, f.name), type=type_)


def test_a_file_without_field_ids_is_read_by_a_name_mapping_where_there_is_one() -> None:
    io = MemoryFileIO()
    fields = [{"name": n, "type": "long"} for n in ("n", "other", "third")]
    write_avro(
        io,
        {"type": "record", "name": "table", "fields": fields},
        [{"n": 1, "other": 2, "third": 3}],
    )
    schema = schema_of(*(optional(i, n, LongType()) for i, n in enumerate(("n", "x", "third"), 1)))
    assert read(io, schema, 1) == [{"n": 1, "x": None, "third": 3}]
    mapping = NameMapping(
        fields=(
            MappedField(field_id=1, names=("other",)),
            MappedField(field_id=2, names=("n", "x")),
        )
    )
    assert read(io, schema, 1, name_mapping=mapping) == [{"n": 2, "x": 1, "third": None}]
