"""Which files Spark's reader does not get, and which files are opened to decide this."""

from __future__ import annotations

import io as streams
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.spark.native_read.reader_differences import misread_files
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO

PLAIN = pa.table({"id": [1]})
WITH_ID = PLAIN.cast(pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]))


class NotingFileIO(MemoryFileIO):
    """A store in memory that records the opened files."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open_input(self, location: str) -> BinaryIO:
        """Record the location and open the file."""
        self.opened.append(location)
        return super().open_input(location)


def write_file(io: MemoryFileIO, path: str, rows: pa.Table) -> str:
    out = streams.BytesIO()
    pq.write_table(rows, out)
    io.write_bytes(path, out.getvalue())
    return path


def entries(*files: tuple[str, str, list[int] | None]) -> pa.Table:
    paths, formats, offsets = zip(*files, strict=True)
    return pa.table(
        {
            "file_path": pa.array(paths, pa.string()),
            "file_format": pa.array(formats, pa.string()),
            "split_offsets": pa.array(offsets, pa.list_(pa.int64())),
            "file_size_in_bytes": pa.array([1000] * len(paths), pa.int64()),
        }
    )


@pytest.mark.parametrize(
    ("size", "offsets", "wrong"),
    [
        (1000, [4, 999], False),
        (1000, [4, 1000], True),
        (12, [4], True),
        (-1, [4], True),
        (2**42, [4], False),
        (2**62, [4], True),
    ],
)
def test_files_whose_size_cannot_be_true(size: int, offsets: list[int], wrong: bool) -> None:
    io = MemoryFileIO()
    right = entries(("right", "parquet", [4]), ("orc", "orc", [4, 5000]))
    table = entries(("own", "parquet", offsets))
    table = table.set_column(3, "file_size_in_bytes", pa.array([size], pa.int64()))
    misread = misread_files(io, pa.concat_tables([right, table, right]))
    assert misread == ({"own"} if wrong else set())
    # For an ORC file the file system is asked for the size, unless the recorded size is invalid.
    as_orc = table.set_column(1, "file_format", pa.array(["orc"]))
    assert misread_files(io, as_orc) == ({"own"} if size != 1000 and wrong else set())


def test_only_files_without_split_offsets_are_looked_into_and_once() -> None:
    io = NotingFileIO()
    table = entries(
        (write_file(io, "own", PLAIN), "parquet", [4]),
        (write_file(io, "plain", PLAIN), "parquet", None),
        (write_file(io, "empty", PLAIN), "parquet", []),
        (write_file(io, "with-id", WITH_ID), "parquet", None),
        ("avro", "avro", None),
        ("lost", "parquet", None),
    )
    assert misread_files(io, table) == {"plain", "empty"}
    assert set(io.opened) == {"plain", "empty", "with-id", "lost"}
    io.opened.clear()
    assert misread_files(io, table) == {"plain", "empty"}
    assert io.opened == ["lost"]
    assert misread_files(io, entries(("own", "parquet", [4]))) == frozenset()
