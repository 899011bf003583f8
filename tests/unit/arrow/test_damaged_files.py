"""Data files that are damaged, cut short or missing."""

from dataclasses import replace

import pyarrow as pa
import pytest

from iceberg_pyspark.errors import (
    IcebergError,
    InvalidMetadataError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.types import (
    LongType,
    StringType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    optional,
    read_rows,
    required,
    schema_of,
    task_of,
    with_field_ids,
    write_rows,
    write_table,
)

FILE = "/db/t/data/f.parquet"

ID = required(1, "id", LongType())


@pytest.mark.parametrize("size", [-1, 0, 10, 2**62])
def test_wrong_file_size_hides_no_row(size: int) -> None:
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(ID), [{"id": 1}])
    task = replace(task_of(io, FILE), file_size_in_bytes=size, start=0, length=size)
    assert read_rows(context_of(schema_of(ID)), task, io) == [{"id": 1}]


def test_duplicate_field_ids_in_a_file_are_refused() -> None:
    io = MemoryFileIO()
    write_table(io, FILE, with_field_ids(pa.table({"a": [1], "b": [1]}), 1, 1))
    with pytest.raises(InvalidMetadataError, match="both have field id 1"):
        read_rows(context_of(schema_of(ID)), task_of(io, FILE), io)


def test_every_truncation_is_a_typed_error_that_names_file_and_table() -> None:
    io = MemoryFileIO()
    schema = schema_of(ID, optional(2, "v", StringType()))
    write_rows(io, FILE, schema, [{"id": i, "v": str(i)} for i in range(50)])
    whole = io.read_bytes(FILE)
    task = task_of(io, FILE)
    for size in range(0, len(whole), 7):
        io.write_bytes(FILE, whole[:size])
        with pytest.raises(StorageError, match=r"db\.t.*f\.parquet"):
            read_rows(context_of(schema), task, io)


def test_flipped_bits_in_checked_pages_never_pass_unnoticed() -> None:
    io = MemoryFileIO()
    rows = [{"id": i} for i in range(200)]
    write_rows(io, FILE, schema_of(ID), rows, write_page_checksum=True, compression="none")
    whole = io.read_bytes(FILE)
    task = task_of(io, FILE)
    context = replace(context_of(schema_of(ID)), verify_checksums=True)
    for position in range(4, len(whole) - 8, 31):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        io.write_bytes(FILE, bytes(flipped))
        try:
            output_rows = read_rows(context, task, io)
        except IcebergError:
            continue
        assert output_rows == rows


def test_a_missing_file_is_a_storage_error() -> None:
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(ID), [{"id": 1}])
    task = task_of(io, FILE)
    io.delete(FILE)
    with pytest.raises(StorageError, match=r"f\.parquet"):
        read_rows(context_of(schema_of(ID)), task, io)


def test_an_unknown_format_is_refused_by_name() -> None:
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(ID), [{"id": 1}])
    with pytest.raises(UnsupportedFeatureError, match="format puffin"):
        read_rows(context_of(schema_of(ID)), task_of(io, FILE, file_format="puffin"), io)
