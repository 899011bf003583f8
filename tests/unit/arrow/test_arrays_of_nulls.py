"""Arrays of nulls that Arrow makes: their columns share one buffer, of a size that fits none."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.arrays import children_of
from iceberg_pyspark.arrow.arrow_schemas import from_arrow_schema
from iceberg_pyspark.arrow.read.equality_deletes import KeySet
from iceberg_pyspark.arrow.row_hashes import row_hashes
from iceberg_pyspark.arrow.value_hashes import is_hashable, value_hashes
from iceberg_pyspark.arrow.write.row_order import order_bytes
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.every_type import every_type
from tests.support.parameters import cases
from tests.support.scan_tasks import READS_ORC_TIMES, context_of, read_rows, task_of

TYPES = {f.name: f.type for f in every_type(1).schema}
WIDE = pa.binary(7)


def nulls(type_: pa.DataType, count: int) -> list[pa.Array]:
    """Return columns, all null, whose parts share a buffer with another type."""
    return [
        pa.nulls(count, pa.list_(type_)),
        pa.nulls(count, pa.struct([("x", type_), ("wide", WIDE)])),
        pa.nulls(count, pa.struct([("x", pa.list_(type_)), ("wide", WIDE)])),
    ]


@pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES)
def test_their_parts_are_hashed(type_: pa.DataType) -> None:
    for count in range(1, 8):
        for column in nulls(type_, count):
            for c in (column, column[1:], *children_of(column)):
                hashes = row_hashes(pa.record_batch({"c": c}))
                assert hashes.shape == (2, len(c))
                assert (hashes == hashes[:, :1]).all()
        (field,) = from_arrow_schema(pa.schema([("x", type_)])).fields
        if is_hashable(field.type):
            part = pa.nulls(count, pa.struct([("x", type_), ("wide", WIDE)])).field(0)
            assert len(value_hashes(field.type, part)) == 0


@pytest.mark.parametrize("key", [1, Decimal("1.5"), "a", b"a", b"abc"])
def test_they_are_looked_up_and_ordered(key: object) -> None:
    type_ = pa.binary(3) if key == b"abc" else pa.scalar(key).type
    keys = pa.array([key], type_)
    if pa.types.is_binary(type_) or pa.types.is_string(type_):
        # so many that they are hashed
        keys = pa.concat_arrays([keys, pa.array([str(i) for i in range(10_001)]).cast(type_)])
    for count in range(1, 8):
        part = pa.nulls(count, pa.struct([("x", type_), ("wide", WIDE)])).field(0)
        for column in (part, part[1:], part[count:]):
            assert not KeySet([keys]).contains([column]).any()
            places = order_bytes(column, is_descending=False, nulls_first=True, text_bytes=8)
            assert len(places) == len(column)
            assert not places.any()


@cases("file_format", fast=["avro"], nightly=["parquet", "orc"])
@pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES)
def test_they_are_written_and_read(type_: pa.DataType, file_format: FileFormat) -> None:
    if file_format == "orc" and pa.types.is_timestamp(type_) and not READS_ORC_TIMES:
        pytest.skip("this pyarrow reads no ORC timestamps")
    for count in (1, 2, 5):
        table = pa.table({str(i): c for i, c in enumerate(nulls(type_, count))})
        schema = from_arrow_schema(table.schema)
        context = WriteContext(
            table="db.t",
            table_location="mem/t",
            schema=schema,
            spec=PartitionSpec(spec_id=0),
            write_id="w",
            file_format=file_format,
        )
        store = MemoryFileIO()
        (file,) = write_data_files(context, table.to_batches(), store, partition_id=0, task_id=0)
        task = task_of(store, file.file_path, file_format=file_format, record_count=count)
        assert read_rows(context_of(schema), task, store) == table.to_pylist()
