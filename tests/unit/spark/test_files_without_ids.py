"""Which files are looked into before Spark's reader gets them, and what is found."""

from __future__ import annotations

import io as streams
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.spark.files_without_ids import files_without_ids
from iceberg_pyspark.storage.memory import MemoryFileIO

PLAIN = pa.table({"id": [1]})
WITH_ID = PLAIN.cast(pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]))


class NotingFileIO(MemoryFileIO):
    """A store in memory that notes what is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open_input(self, location: str) -> BinaryIO:
        """As in memory."""
        self.opened.append(location)
        return super().open_input(location)


def stored(io: MemoryFileIO, path: str, rows: pa.Table) -> str:
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
        }
    )


def test_only_files_without_split_offsets_are_looked_into_and_once() -> None:
    io = NotingFileIO()
    table = entries(
        (stored(io, "own", PLAIN), "parquet", [4]),
        (stored(io, "plain", PLAIN), "parquet", None),
        (stored(io, "empty", PLAIN), "parquet", []),
        (stored(io, "with-id", WITH_ID), "parquet", None),
        ("avro", "avro", None),
        ("lost", "parquet", None),
    )
    assert files_without_ids(io, table) == {"plain", "empty"}
    assert set(io.opened) == {"plain", "empty", "with-id", "lost"}
    io.opened.clear()
    assert files_without_ids(io, table) == {"plain", "empty"}
    assert io.opened == ["lost"]
    assert files_without_ids(io, entries(("own", "parquet", [4]))) == frozenset()
