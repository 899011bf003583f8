"""Chooses the writer of a data file format, with its table properties.

The counterpart for reading is `arrow/formats/open_data_file.py`. Each format's module documents its
properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from iceberg_pyspark.arrow.column_metrics import MetricsCollector, metric_leaves
from iceberg_pyspark.arrow.formats.data_file_formats import ClosedFile, DataFileWriter
from iceberg_pyspark.arrow.formats.parquet_writer import ParquetFile, ParquetOptions, column_options
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import PARQUET_ROW_GROUP_SIZE
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWriters:
    """A factory of the files of one write.

    Callers should write about `bytes_at_once` bytes of rows at a time. With more than
    `max_open_files` open files, the buffers of the format would take too much memory.
    """

    create: Callable[[FileIO, str], DataFileWriter]
    bytes_at_once: int
    max_open_files: int | None = None


def file_writers(
    file_format: FileFormat,
    schema: Schema,
    properties: Mapping[str, str],
    *,
    target_file_size_in_bytes: int,
) -> FileWriters:
    """Return the writers of a format.

    Raises `InvalidRequestError` for an invalid property, and `UnsupportedFeatureError` for a type
    that the format cannot store.
    """
    # every worker process imports this module, but hardly any uses a format other than Parquet
    match file_format:
        case "parquet":
            options = ParquetOptions.of(properties)
            columns = column_options(schema, properties)
            return FileWriters(
                create=lambda io, location: _ParquetWriter(
                    ParquetFile(io, location, schema, options, columns),
                    MetricsCollector(metric_leaves(schema, properties)),
                ),
                bytes_at_once=PARQUET_ROW_GROUP_SIZE.of(properties),
            )
        case "orc":
            from iceberg_pyspark.arrow.formats import orc_writer  # noqa: PLC0415

            layout = orc_writer.OrcOptions.of(properties, schema, target_file_size_in_bytes)
            return FileWriters(
                create=lambda io, location: orc_writer.OrcFileWriter(
                    io, location, schema, layout, properties
                ),
                bytes_at_once=layout.stripe_size,
                max_open_files=layout.max_open_files,
            )
        case "avro":
            from iceberg_pyspark.arrow.formats import avro_writer  # noqa: PLC0415

            blocks = avro_writer.AvroOptions.of(properties)
            return FileWriters(
                create=lambda io, location: avro_writer.AvroFileWriter(
                    io, location, schema, blocks, properties
                ),
                bytes_at_once=avro_writer.BYTES_AT_ONCE,
            )
        case _:
            raise UnsupportedFeatureError(
                f"data files are written as parquet, orc or avro, not {file_format}"
            )


class _ParquetWriter:
    """A Parquet file that is being written; its metrics come from its footer."""

    def __init__(self, file: ParquetFile, metrics: MetricsCollector) -> None:
        self._file = file
        self._metrics = metrics

    @property
    def written_bytes(self) -> int:
        return self._file.written_bytes

    def write(self, rows: pa.Table) -> None:
        self._metrics.observe(rows)
        self._file.write_row_group(rows)

    def close(self) -> ClosedFile:
        closed_file = self._file.close()
        return ClosedFile(
            closed_file.file_size_in_bytes,
            self._metrics.finish(closed_file.footer),
            closed_file.key_metadata,
        )

    def abort(self) -> None:
        self._file.abort()
