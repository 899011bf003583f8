"""Writes one Avro data file, according to the table properties `write.avro.*`.

Specification, Appendix A "Avro"; the properties are Java's. Rows are converted to records column by
column, some thousand rows at a time. Values have the physical types below Avro's logical types:
days, microseconds, bytes of decimals.
"""

from __future__ import annotations

import io as bytes_io
import itertools
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import buffer_values
from iceberg_pyspark.arrow.arrow_schemas import stored_schema
from iceberg_pyspark.arrow.column_metrics import RowMetrics
from iceberg_pyspark.arrow.formats.data_file_formats import ClosedFile, discard_file
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.avro.avro import AVRO_CODECS
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.avro_schemas import decimal_bytes, record_schema
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.spec.table_properties import AVRO_COMPRESSION, AVRO_LEVEL
from iceberg_pyspark.storage.encryption.encrypted_io import stored_file
from iceberg_pyspark.storage.files.file_io import FileIO

ToValues: TypeAlias = Callable[[pa.Array], list[Any]]
"""A function from an array to one value per row, None for nulls."""


def compile_avro_records(
    schema: Schema, avro_schema: Mapping[str, Any]
) -> Callable[[pa.RecordBatch], list[dict[str, Any]]]:
    """Return a function from batches to records, with the names of the Avro schema."""
    to_records = _struct(schema.as_struct, avro_schema)

    def records(batch: pa.RecordBatch) -> list[dict[str, Any]]:
        return to_records(batch.columns, batch.num_rows)

    return records


def _struct(
    struct: types.StructType, avro_schema: Mapping[str, Any]
) -> Callable[[list[pa.Array], int], list[dict[str, Any]]]:
    # match fields by position: Avro names are changed, so two fields may get the same name
    names = [f["name"] for f in avro_schema["fields"]]
    converters = [
        _values(f.type, _branch(avro["type"]))
        for f, avro in zip(struct.fields, avro_schema["fields"], strict=True)
    ]

    def records(columns: list[pa.Array], rows: int) -> list[dict[str, Any]]:
        if not names:
            return [{} for _ in range(rows)]
        values = [convert(c) for convert, c in zip(converters, columns, strict=True)]
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    return records


def _branch(avro_type: Any) -> Any:
    """Return the type in a union with null."""
    if isinstance(avro_type, list):
        return next(branch for branch in avro_type if branch != "null")
    return avro_type


def _values(type_: types.Type, avro_type: Any) -> ToValues:
    match type_:
        case types.StructType():
            to_records = _struct(type_, avro_type)

            def structs(array: pa.StructArray) -> list[Any]:
                columns = [array.field(i) for i in range(array.type.num_fields)]
                return _with_nulls(to_records(columns, len(array)), array)

            return structs
        case types.ListType():
            element = _values(type_.element_type, _branch(avro_type["items"]))
            return lambda array: _split_at_offsets(
                array, element(_values_in_range(array, array.values))
            )
        case types.MapType():
            entries = _struct(types.StructType((type_.key, type_.value)), avro_type["items"])

            def maps(array: pa.MapArray) -> list[Any]:
                keys, items = (
                    _values_in_range(array, array.keys),
                    _values_in_range(array, array.items),
                )
                return _split_at_offsets(array, entries([keys, items], len(keys)))

            return maps
        case types.DecimalType(precision=precision):
            size = decimal_bytes(precision)
            return lambda array: _with_nulls(_big_endian(array, size), array)
        case (
            types.BooleanType()
            | types.IntegerType()
            | types.LongType()
            | types.FloatType()
            | types.DoubleType()
        ):
            return _numbers
        case types.DateType():
            return lambda array: _numbers(array.view(pa.int32()))
        case (
            types.TimeType()
            | types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNsType()
            | types.TimestamptzNsType()
        ):
            return lambda array: _numbers(array.view(pa.int64()))
        case _:
            return lambda array: array.to_pylist()


def _numbers(array: pa.Array) -> list[Any]:
    values_without_nulls = pc.fill_null(array, False if pa.types.is_boolean(array.type) else 0)
    return _with_nulls(values_without_nulls.to_numpy(zero_copy_only=False).tolist(), array)


def _with_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    if array.null_count:
        for i in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[i] = None
    return values


def _values_in_range(array: pa.Array, values: pa.Array) -> pa.Array:
    """Return the values of a list or map array within the range of its offsets."""
    first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    return values.slice(first, last - first)


def _split_at_offsets(array: pa.Array, values: list[Any]) -> list[Any]:
    if not len(array):
        return []
    offsets = array.offsets.to_numpy()
    ends = (offsets - offsets[0]).tolist()
    return _with_nulls([values[a:b] for a, b in itertools.pairwise(ends)], array)


def _big_endian(array: pa.Decimal128Array, size: int) -> list[bytes]:
    """Return each decimal's two's complement as `size` big-endian bytes; any bytes for nulls."""
    little = buffer_values(array.buffers()[1], np.uint8, 16 * array.offset, 16 * len(array))
    rows = little.reshape(-1, 16)
    big = np.ascontiguousarray(rows[:, size - 1 :: -1] if size < 16 else rows[:, ::-1])
    bytes_type = pa.binary(size)
    buffers = [None, pa.py_buffer(big)]
    return pa.Array.from_buffers(bytes_type, len(array), buffers).to_pylist()  # type: ignore[no-any-return]


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
        size, key_metadata = stored_file(self._stream, size)
        return ClosedFile(size, self._metrics.finish(), key_metadata)

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
