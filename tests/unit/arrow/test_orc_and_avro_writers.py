"""The form of written ORC and Avro files, and the values that they cannot hold."""

from __future__ import annotations

import io as streams
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.manifests import DataFile, FileFormat
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    DecimalType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import context_of, optional, read_rows, required, schema_of, task_of

FORMATS = pytest.mark.parametrize("file_format", ["orc", "avro"])


def write(
    rows: pa.Table, schema: Schema, file_format: FileFormat, **more: Any
) -> tuple[list[DataFile], MemoryFileIO]:
    store = MemoryFileIO()
    context = WriteContext(
        table="t",
        table_location="mem/t",
        schema=schema,
        spec=PartitionSpec(spec_id=0),
        write_id="w",
        file_format=file_format,
        **more,
    )
    files = write_data_files(context, rows.to_batches(), store, partition_id=0, task_id=0)
    return files, store


def nothing(schema: Schema) -> pa.Table:
    """Return one row of nulls."""
    return pa.table({f.name: pa.nulls(1) for f in schema.fields})


def an_orc_file(schema: Schema, **properties: str) -> orc.ORCFile:
    table_properties = {k.replace("_", "."): v for k, v in properties.items()}
    [file], store = write(nothing(schema), schema, "orc", properties=table_properties)
    return orc.ORCFile(streams.BytesIO(store.read_bytes(file.file_path)))


@pytest.mark.parametrize(
    ("type_", "stored", "attributes"),
    [
        (TimeType(), pa.int64(), {"iceberg.long-type": "TIME"}),
        (TimestampType(), pa.timestamp("ns"), {"iceberg.timestamp-unit": "MICROS"}),
        (TimestamptzType(), pa.timestamp("ns", "UTC"), {"iceberg.timestamp-unit": "MICROS"}),
        (TimestampNsType(), pa.timestamp("ns"), {"iceberg.timestamp-unit": "NANOS"}),
        (UUIDType(), pa.binary(), {"iceberg.binary-type": "UUID"}),
        (FixedType(5), pa.binary(), {"iceberg.binary-type": "FIXED", "iceberg.length": "5"}),
        (BinaryType(), pa.binary(), {}),
        (DecimalType(9, 2), pa.decimal128(9, 2), {}),
    ],
)
def test_orc_types_have_the_attributes_of_appendix_a(
    type_: Type, stored: pa.DataType, attributes: dict[str, str]
) -> None:
    field = an_orc_file(schema_of(optional(7, "c", type_))).schema.field("c")
    assert field.type == stored
    expected = {"iceberg.id": "7", "iceberg.required": "false", **attributes}
    assert field.metadata == {k.encode(): v.encode() for k, v in expected.items()}


def test_orc_ids_and_required_at_every_level() -> None:
    inner = StructType((required(4, "x", LongType()),))
    schema = schema_of(
        optional(1, "l", ListType(element_id=2, element_type=inner, element_required=True)),
        optional(
            5, "m", MapType(key_id=6, key_type=StringType(), value_id=7, value_type=IntegerType())
        ),
    )
    file_schema = an_orc_file(schema).schema
    element = file_schema.field("l").type.value_field
    assert attributes_of(element) == ("2", "true")
    assert attributes_of(element.type.field(0)) == ("4", "true")
    map_type = file_schema.field("m").type
    assert attributes_of(map_type.key_field) == ("6", "true")
    assert attributes_of(map_type.item_field) == ("7", "false")


def attributes_of(field: pa.Field) -> tuple[str, str]:
    return (
        field.metadata[b"iceberg.id"].decode(),
        field.metadata[b"iceberg.required"].decode(),
    )


ID = schema_of(required(1, "id", LongType()))


@pytest.mark.parametrize(
    ("properties", "codec"),
    [({}, "ZLIB"), *(({"write.orc.compression-codec": c}, c.upper()) for c in ("zstd", "lz4"))],
)
def test_orc_codec(properties: dict[str, str], codec: str) -> None:
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    [file], store = write(rows, ID, "orc", properties=properties)
    assert orc.ORCFile(streams.BytesIO(store.read_bytes(file.file_path))).compression == codec


def test_orc_bloom_filters_make_a_file_longer() -> None:
    schema = schema_of(
        optional(1, "s", StructType((optional(2, "x", LongType()),))),
        optional(3, "id", LongType()),
    )
    rows = pa.table({"id": pa.array(range(5000), pa.int64())})
    sizes = [
        write(rows, schema, "orc", properties={"write.orc.bloom.filter.columns": columns})[0][
            0
        ].file_size_in_bytes
        for columns in ("", "gone", "id", "s.x,id")
    ]
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3]


@pytest.mark.parametrize(
    ("file_format", "properties", "message"),
    [
        ("orc", {"write.orc.compression-codec": "lzo"}, "'lzo' is none of"),
        ("orc", {"write.orc.compression-strategy": "best"}, "'best' is neither speed nor"),
        ("orc", {"write.orc.bloom.filter.fpp": "2"}, "not a number between 0 and 1"),
        ("avro", {"write.avro.compression-codec": "lz4"}, "'lz4' is none of"),
        ("avro", {"write.avro.compression-level": "12"}, "gzip has the levels -1 to 9, not 12"),
    ],
)
def test_properties_that_are_refused(
    file_format: FileFormat, properties: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        write(nothing(ID), ID, file_format, properties=properties)


@pytest.mark.parametrize(
    ("properties", "codec"),
    [
        ({}, "deflate"),
        ({"write.avro.compression-codec": "zstd"}, "zstandard"),
        ({"write.avro.compression-codec": "snappy"}, "snappy"),
        ({"write.avro.compression-codec": "uncompressed"}, "null"),
    ],
)
def test_avro_codec_and_schema(properties: dict[str, str], codec: str) -> None:
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    [file], store = write(rows, ID, "avro", properties=properties)
    reader = fastavro.reader(streams.BytesIO(store.read_bytes(file.file_path)))
    assert reader.metadata["avro.codec"] == codec
    assert isinstance(reader.writer_schema, dict)
    assert reader.writer_schema["fields"] == [{"name": "id", "type": "long", "field-id": 1}]
    assert [r["id"] for r in reader if isinstance(r, dict)] == list(range(10))


def test_avro_files_have_no_sizes_of_columns() -> None:
    """docs/conformance.md 49."""
    schema = Schema(fields=(NestedField(field_id=1, name="i", type=IntegerType()),))
    [file], _ = write(pa.table({"i": pa.array([1, 2], pa.int32())}), schema, "avro")
    assert not file.column_sizes
    assert file.value_counts == {1: 2}


def test_avro_levels_shrink_a_file() -> None:
    rows = pa.table({"id": pa.array([i * 7919 % 5003 for i in range(5000)], pa.int64())})
    sizes = [
        write(rows, ID, "avro", properties={"write.avro.compression-level": level})[0][
            0
        ].file_size_in_bytes
        for level in ("0", "9")
    ]
    assert sizes[0] > sizes[1]


@FORMATS
def test_a_file_of_about_the_target_size_and_no_row_lost(file_format: FileFormat) -> None:
    count = 40_000
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "s": pa.array([None if i % 7 == 3 else {"x": i * 7919 % 40009} for i in range(count)]),
        }
    )
    schema = schema_of(
        required(1, "id", LongType()), optional(2, "s", StructType((optional(3, "x", LongType()),)))
    )
    files, store = write(rows, schema, file_format, target_file_size_in_bytes=50_000)
    assert len(files) > 2
    assert all(30_000 < f.file_size_in_bytes < 80_000 for f in files[1:-1])
    file_rows = [
        row
        for f in files
        for row in read_rows(
            context_of(schema),
            task_of(store, f.file_path, file_format=file_format, record_count=f.record_count),
            store,
        )
    ]
    assert sorted(file_rows, key=lambda r: r["id"]) == rows.to_pylist()


@pytest.mark.parametrize(
    ("type_", "wrong", "right"),
    [(TimestampType(), -1_500_000, -2_000_000), (TimestampNsType(), -5, -1_000_000_000)],
)
def test_times_that_arrow_writes_wrongly_to_orc_are_refused(
    type_: Type, wrong: int, right: int
) -> None:
    schema = schema_of(
        optional(1, "l", ListType(element_id=2, element_type=StructType((field(type_),))))
    )
    arrow = pa.timestamp("us" if type_ == TimestampType() else "ns")

    def rows(*values: int | None) -> pa.Table:
        type_of = pa.list_(pa.struct([("t", arrow)]))
        return pa.table({"l": pa.array([None, [{"t": v} for v in values]], type_of)})

    assert len(write(rows(right, 1, 0, None), schema, "orc")[0]) == 1
    with pytest.raises(
        UnsupportedFeatureError, match=r"column 'l\.element\.t' holds a time before"
    ):
        write(rows(right, wrong), schema, "orc")


def field(type_: Type) -> NestedField:
    return optional(3, "t", type_)


def test_orc_checks_only_the_times_of_the_rows() -> None:
    """Times of other rows of a longer array, or below a null, are not written."""
    times = ListType(element_id=3, element_type=TimestampType())
    schema = schema_of(optional(1, "s", StructType((optional(2, "l", times),))))
    lists = pa.array([[-1], [-1], [5]], pa.list_(pa.timestamp("us")))
    structs = pa.StructArray.from_arrays([lists], ["l"], mask=pa.array([False, True, False]))
    table = pa.table({"s": structs})
    with pytest.raises(UnsupportedFeatureError, match="element' holds a time before"):
        write(table, schema, "orc")
    [file], _ = write(table.slice(1), schema, "orc")
    assert file.record_count == 2
