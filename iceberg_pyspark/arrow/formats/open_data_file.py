"""Chooses the reader of a data file format."""

from __future__ import annotations

from iceberg_pyspark.arrow.formats.data_file_formats import DataFileReader
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.storage.files.file_io import FileIO


def open_data_file(
    io: FileIO,
    location: str,
    file_format: str,
    *,
    verify_checksums: bool = False,
    threads: bool = False,
) -> DataFileReader:
    """Open a data or delete file; raise `UnsupportedFeatureError` for an unknown format.

    With `verify_checksums`, pages of Parquet files are compared with their checksums, if any. With
    `threads`, columns of a local Parquet file are decoded in Arrow's threads.
    """
    # every worker process imports this module, but hardly any uses a format other than Parquet
    match file_format:
        case "parquet":
            return ParquetFileReader(
                io, location, verify_checksums=verify_checksums, threads=threads
            )
        case "orc":
            from iceberg_pyspark.arrow.formats.orc_reader import OrcFileReader  # noqa: PLC0415

            return OrcFileReader(io, location)
        case "avro":
            from iceberg_pyspark.arrow.formats.avro_reader import AvroFileReader  # noqa: PLC0415

            return AvroFileReader(io, location)
        case _:
            raise UnsupportedFeatureError(
                f"{location} has the format {file_format}, which cannot be read; rewrite the file "
                "as parquet, orc or avro with the engine that wrote it"
            )
