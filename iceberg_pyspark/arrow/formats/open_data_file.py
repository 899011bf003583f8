"""The reader for a file's format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.storage.file_io import FileIO


class DataFileReader(Protocol):
    """An open file of rows, by leaf columns; `schema` has the field ids as Parquet metadata."""

    @property
    def schema(self) -> pa.Schema:
        """The file's own schema."""
        ...

    @property
    def reads_whole_columns(self) -> bool:
        """Whether leaves come with all others of their top-level column."""
        ...

    def batches(
        self,
        leaves: Collection[int],
        *,
        start: int = ...,
        length: int | None = ...,
        predicate: Predicate = ...,
        leaf_by_id: Mapping[int, int] = ...,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of those leaves in the byte range, each with its first row's file position."""
        ...


def open_data_file(
    io: FileIO, location: str, file_format: str, *, verify_checksums: bool = False
) -> AbstractContextManager[DataFileReader]:
    """Open a data or delete file; `UnsupportedFeatureError` names a format that is not read.

    With `verify_checksums`, pages of Parquet files are compared with their checksums, if any.
    """
    # every worker process imports this, and hardly any meets another format than Parquet
    match file_format:
        case "parquet":
            return ParquetFileReader(io, location, verify_checksums=verify_checksums)
        case "orc":
            from iceberg_pyspark.arrow.formats.orc_reader import OrcFileReader  # noqa: PLC0415

            return OrcFileReader(io, location)
        case "avro":
            from iceberg_pyspark.arrow.formats.avro_reader import AvroFileReader  # noqa: PLC0415

            return AvroFileReader(io, location)
        case _:
            raise UnsupportedFeatureError(
                f"{location} is a file in format {file_format}, which cannot be read yet"
            )
