"""ORC data files: field ids in type attributes, whole columns, row positions across stripes."""

from __future__ import annotations

import datetime as dt
import io as streams
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from iceberg_pyspark.arrow.formats import orc_reader
from iceberg_pyspark.errors import StorageError, UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import BoundColumn, BoundLiteral
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    READS_ORC_TIMES,
    context_of,
    optional,
    position_deletes,
    read_rows,
    required,
    schema_of,
    task_of,
)

FILE = "/db/t/data/f.orc"


def field(name: str, type_: pa.DataType, field_id: int | None) -> pa.Field:
    return pa.field(
        name, type_, metadata=None if field_id is None else {"iceberg.id": str(field_id)}
    )


def write_orc(io: MemoryFileIO, table: pa.Table, **options: Any) -> None:
    out = streams.BytesIO()
    orc.write_table(table, out, **options)
    io.write_bytes(FILE, out.getvalue())


def read(io: MemoryFileIO, schema: Schema, **context: Any) -> list[dict[str, Any]]:
    deletes = context.pop("deletes", ())
    task = task_of(io, FILE, file_format="orc", deletes=deletes)
    return read_rows(context_of(schema, **context), task, io)


def test_nested_columns_by_field_id() -> None:
    io = MemoryFileIO()
    place = pa.struct([field("x", pa.int32(), 3), field("y", pa.string(), 4)])
    table = pa.Table.from_pylist(
        [
            {"a": 1, "s": {"x": 2, "y": "z"}, "l": [{"x": 1, "y": "q"}, None], "m": [("k", 1)]},
            {"a": None, "s": None, "l": None, "m": None},
        ],
        schema=pa.schema(
            [
                field("a", pa.int32(), 1),
                field("s", place, 2),
                field("l", pa.list_(field("item", place, 6)), 5),
                field("m", pa.map_(field("key", pa.string(), 8).with_nullable(False),
                                   field("value", pa.int64(), 9)), 7),
                field("unmapped", pa.int32(), None),
            ]
        ),
    )  # fmt: skip
    write_orc(io, table)
    schema = schema_of(
        optional(
            5, "l", ListType(element_id=6, element_type=StructType((optional(3, "x", LongType()),)))
        ),
        optional(2, "s", StructType((optional(4, "why", StringType()),))),
        optional(1, "b", LongType()),
        optional(
            7, "m", MapType(key_id=8, key_type=StringType(), value_id=9, value_type=LongType())
        ),
        optional(30, "unmapped", IntegerType()),
    )
    assert read(io, schema) == [
        {"l": [{"x": 1}, None], "s": {"why": "z"}, "b": 1, "m": [("k", 1)], "unmapped": None},
        {"l": None, "s": None, "b": None, "m": None, "unmapped": None},
    ]


def test_column_name_with_a_dot_is_not_a_path() -> None:
    io = MemoryFileIO()
    inner = pa.struct([field("b", pa.int32(), 2)])
    schema = pa.schema([field("a", inner, 1), field("a.b", pa.int32(), 3)])
    write_orc(io, pa.Table.from_pylist([{"a": {"b": 1}, "a.b": 2}], schema=schema))
    assert read(io, schema_of(optional(3, "a.b", IntegerType()))) == [{"a.b": 2}]


def test_a_file_without_field_ids_is_read_by_the_names_of_the_tables_columns() -> None:
    io = MemoryFileIO()
    place = pa.struct([field("x", pa.int32(), None)])
    columns = {"b": pa.array([2]), "place": pa.array([{"x": 1}], place), "a": pa.array([3])}
    write_orc(io, pa.table(columns))
    schema = schema_of(
        optional(1, "a", LongType()),
        optional(2, "place", StructType((optional(4, "x", IntegerType()),))),
        optional(3, "c", LongType()),
    )
    assert read(io, schema) == [{"a": 3, "place": {"x": 1}, "c": None}]


def test_positions_and_filters_run_through_stripes() -> None:
    io = MemoryFileIO()
    table = pa.table(
        {"n": pa.array(range(200_000), pa.int64())}, schema=pa.schema([field("n", pa.int64(), 1)])
    )
    write_orc(io, table, stripe_size=64 * 1024, compression="uncompressed")
    assert orc.ORCFile(pa.BufferReader(io.read_bytes(FILE))).nstripes > 1
    deletes = position_deletes(io, "/db/t/data/d.parquet", [(FILE, 0), (FILE, 199_998)])
    schema = schema_of(required(1, "n", LongType()))
    column = BoundColumn(field_id=1, name="n", type=LongType(), required=True)
    late = BoundLiteral("gt", column, 199_990)
    rows = read(io, schema, deletes=(deletes,), predicate=late)
    assert [row["n"] for row in rows] == [*range(199_991, 199_998), 199_999]
    assert len(read(io, schema_of(), deletes=(deletes,))) == 199_998


TIMES = schema_of(optional(1, "ts", TimestampType()))


def write_time(io: MemoryFileIO, value: dt.datetime) -> None:
    schema = pa.schema([field("ts", pa.timestamp("us"), 1)])
    write_orc(io, pa.Table.from_pylist([{"ts": value}], schema=schema))


@pytest.mark.skipif(not READS_ORC_TIMES, reason="this pyarrow reads no ORC timestamps")
def test_a_timestamp_that_arrow_cannot_hold_is_refused() -> None:
    io = MemoryFileIO()
    write_time(io, dt.datetime(2262, 1, 1))
    assert read(io, TIMES) == [{"ts": dt.datetime(2262, 1, 1)}]
    write_time(io, dt.datetime(9999, 1, 1))
    with pytest.raises(StorageError, match="out of range"):
        read(io, TIMES)


def test_an_arrow_that_does_not_check_timestamps_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    io = MemoryFileIO()
    write_time(io, dt.datetime(2026, 1, 1))
    monkeypatch.setattr(orc_reader, "_CHECKS_TIMESTAMPS", 1_000)
    with pytest.raises(UnsupportedFeatureError, match="column 'ts' has ORC timestamps"):
        read(io, TIMES)


def test_a_damaged_file_is_named() -> None:
    io = MemoryFileIO()
    io.write_bytes(FILE, b"no ORC")
    with pytest.raises(StorageError, match=FILE):
        read(io, TIMES)
