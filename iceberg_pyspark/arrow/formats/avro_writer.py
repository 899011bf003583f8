"""Writes one Avro data file, according to the table properties `write.avro.*`.

Specification, Appendix A "Avro"; the properties are Java's. Rows are converted to records column by
column (`arrow/formats/avro_values.py`), some thousand rows at a time.
"""

from __future__ import annotations

import io as bytes_io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

from iceberg_pyspark.arrow.file_schema import stored_schema
from iceberg_pyspark.arrow.formats.avro_values import compile_avro_records
from iceberg_pyspark.arrow.formats.data_file_writer import ClosedFile, discard_file
from iceberg_pyspark.arrow.metrics.row_metrics import RowMetrics
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.avro.avro import AVRO_CODECS
from iceberg_pyspark.spec.avro_types import record_schema
from iceberg_pyspark.spec.properties import AVRO_COMPRESSION, AVRO_LEVEL
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.storage.files.file_io import FileIO

BYTES_AT_ONCE = 8_388_608
"""More rows at once do not compress better, so few rows are kept waiting."""

_ROWS_AT_ONCE = 8_192
_BLOCK_BYTES = 65_536
_SYNC_SIZE = 16
_LEVELS = {"deflate": 9, "zstandard": 1}
"""Java's default levels."""


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """The compression of the files of a write, from the table's properties."""

    codec: str
    level: int | None

    @staticmethod
    def of(properties: Mapping[str, str]) -> AvroOptions:
        """Return the options in table properties; the default codec is gzip, as in Java."""
        name = AVRO_COMPRESSION.of(properties)
        codec = AVRO_CODECS[name]
        if codec not in _LEVELS:
            return AvroOptions(codec, None)
        level = _LEVELS[codec]
        if AVRO_LEVEL.name in properties:
            level = AVRO_LEVEL.of(properties)
        least, most = (-1, 9) if codec == "deflate" else (-131_072, 22)
        if not least <= level <= most:
            raise InvalidRequestError(
                f"property '{AVRO_LEVEL.name}': codec {name} has the levels {least} to {most}, not "
                f"{level}; set one of these, or remove the property"
            )
        return AvroOptions(codec, level)


class AvroFileWriter:
    """An open Avro file with rows of one schema; end it with `close` or `abort`."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        schema: Schema,
        options: AvroOptions,
        properties: Mapping[str, str],
    ) -> None:
        self._io = io
        self._location = location
        self._options = options
        avro_schema = record_schema(stored_schema(schema).as_struct, "table")
        self._records = compile_avro_records(stored_schema(schema), avro_schema)
        self._schema = fastavro.parse_schema(avro_schema)
        self._metadata = {"iceberg.schema": json.dumps(schema_to_json(schema))}
        self._metrics = RowMetrics(schema, properties)
        self._sync = os.urandom(_SYNC_SIZE)
        header = self._encode([])
        self._header_size = len(header)
        self._stream = io.open_output(location)
        try:
            self._stream.write(header)
        except BaseException:
            self.abort()
            raise

    @property
    def written_bytes(self) -> int:
        """The length of the file so far, in bytes."""
        return self._stream.tell()

    def write(self, rows: pa.Table) -> None:
        """Write rows that have `stored_arrow_schema`."""
        self._metrics.observe(rows)
        for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
            # fastavro encodes a whole file; only its blocks are taken
            self._stream.write(self._encode(self._records(batch))[self._header_size :])

    def close(self) -> ClosedFile:
        """Publish the file and return its size and metrics."""
        size = self._stream.tell()
        self._stream.close()
        return ClosedFile(size, self._metrics.finish())

    def abort(self) -> None:
        """Close the file without publishing it, and remove its remains."""
        discard_file(self._stream, self._io, self._location)

    def _encode(self, records: list[dict[str, Any]]) -> memoryview:
        out = bytes_io.BytesIO()
        fastavro.writer(
            out,
            self._schema,
            records,
            codec=self._options.codec,
            codec_compression_level=self._options.level,
            sync_interval=_BLOCK_BYTES,
            sync_marker=self._sync,
            metadata=self._metadata,
        )
        return out.getbuffer()
