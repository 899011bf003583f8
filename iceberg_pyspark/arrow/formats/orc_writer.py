"""Writes one ORC data file, according to the table properties `write.orc.*`.

Specification, Appendix A "ORC": field ids, and properties of types that ORC lacks, are attributes
of ORC types. The properties are Java's. Offsets of stripes are unknown, so manifest entries have no
split offsets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import orc

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.arrow.arrow_schemas import arrow_type, stored_arrow_schema, stored_schema
from iceberg_pyspark.arrow.column_metrics import RowMetrics
from iceberg_pyspark.arrow.formats.data_file_formats import ClosedFile, discard_file
from iceberg_pyspark.errors import StorageError, UnsupportedFeatureError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import (
    ORC_BLOOM_COLUMNS,
    ORC_BLOOM_FPP,
    ORC_COMPRESSION,
    ORC_STRATEGY,
    ORC_STRIPE_SIZE,
)
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.file_io import FileIO

_CODECS = {
    "zlib": "zlib",
    "gzip": "zlib",
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_SMALLEST_STRIPE = 65_536
_STRIPES_PER_FILE = 8
"""The least number of stripes per file: the length of a file is known only after each stripe."""
_MAX_BUFFERED_BYTES = 536_870_912
"""The most bytes of unfinished stripes in all open files of a task."""


@dataclass(frozen=True, slots=True)
class OrcOptions:
    """The layout of the files of a write, from the table's properties."""

    codec: str
    strategy: str
    stripe_size: int
    bloom_filter_columns: frozenset[int]
    bloom_filter_fpp: float

    @staticmethod
    def of(properties: Mapping[str, str], schema: Schema, target: int) -> OrcOptions:
        """Return the options for files of about `target` bytes."""
        return OrcOptions(
            codec=_CODECS[ORC_COMPRESSION.of(properties)],
            strategy=ORC_STRATEGY.of(properties),
            stripe_size=min(
                ORC_STRIPE_SIZE.of(properties), max(target // _STRIPES_PER_FILE, _SMALLEST_STRIPE)
            ),
            bloom_filter_columns=_bloom_filter_columns(properties, schema),
            bloom_filter_fpp=ORC_BLOOM_FPP.of(properties),
        )

    @property
    def max_open_files(self) -> int:
        """The maximum number of files that are open at the same time."""
        return max(_MAX_BUFFERED_BYTES // self.stripe_size, 1)


def _bloom_filter_columns(properties: Mapping[str, str], schema: Schema) -> frozenset[int]:
    """Return ORC's numbers of the columns with Bloom filters; unknown column names are ignored."""
    names = {n.strip() for n in properties.get(ORC_BLOOM_COLUMNS, "").split(",")}
    field_ids = {schema.id_by_name[n] for n in names if n in schema.id_by_name}
    columns = enumerate(types.walk_fields(stored_schema(schema).as_struct), start=1)
    return frozenset(
        number
        for number, f in columns
        if f.field_id in field_ids and isinstance(f.type, types.PrimitiveType)
    )


class OrcFileWriter:
    """An open ORC file with rows of one schema; end it with `close` or `abort`."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        schema: Schema,
        options: OrcOptions,
        properties: Mapping[str, str],
    ) -> None:
        if encryption_of(io) is not None:
            raise UnsupportedFeatureError(
                f"{location}: ORC files are not encrypted, here as in Java, and the table is; "
                "write it as parquet or avro (write.format.default)"
            )
        self._io = io
        self._location = location
        self._schema = orc_schema(schema)
        self._nullable = pa.schema(
            [f.with_type(_nullable(f.type)) for f in stored_arrow_schema(schema)]
        )
        self._fields = stored_schema(schema).fields
        self._has_structs = any(
            isinstance(f.type, types.StructType)
            for f in types.walk_fields(stored_schema(schema).as_struct)
        )
        self._metrics = RowMetrics(schema, properties)
        self._flushed_bytes = 0
        self._waiting = 0
        self._stream = io.open_output(location)
        try:
            self._writer = orc.ORCWriter(
                self._stream,
                compression=options.codec,
                compression_strategy=options.strategy,
                stripe_size=options.stripe_size,
                bloom_filter_columns=options.bloom_filter_columns or None,
                bloom_filter_fpp=options.bloom_filter_fpp,
            )
        except BaseException:
            discard_file(self._stream, io, location)
            raise

    @property
    def written_bytes(self) -> int:
        """The length of the file so far, with an estimate for the unfinished stripe."""
        return self._flushed_bytes + self._waiting // 4

    def write(self, rows: pa.Table) -> None:
        """Write rows that have `stored_arrow_schema`."""
        self._metrics.observe(rows)
        for field, column in zip(self._fields, rows.columns, strict=True):
            for chunk in column.chunks:
                _check_times(chunk, field.type, field.name, self._location)
        if self._has_structs:
            # Arrow's ORC writer uses wrong nulls for a slice of a struct array, so the rows are
            # copied to arrays that begin at offset 0, and wrong values for fields that are not null
            # where their struct is null
            rows = rows.take(np.arange(rows.num_rows))
            columns = [
                pa.chunked_array([_with_nulls_below(a) for a in c.chunks], f.type)
                for f, c in zip(self._nullable, rows.columns, strict=True)
            ]
            rows = pa.Table.from_arrays(columns, schema=self._nullable)
        self._writer.write(rows.cast(self._schema))
        self._waiting += rows.nbytes
        if (length := self._stream.tell()) > self._flushed_bytes:
            self._flushed_bytes, self._waiting = length, 0

    def close(self) -> ClosedFile:
        """Write the footer, publish the file, and return its size and metrics."""
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        return ClosedFile(size, self._metrics.finish())

    def abort(self) -> None:
        """Close the file without publishing it, and remove its remains."""
        with contextlib.suppress(StorageError, OSError, ValueError, pa.ArrowException):
            # otherwise the writer's finalizer would write a footer to the closed stream
            self._writer.close()
        discard_file(self._stream, self._io, self._location)


def _nullable(type_: pa.DataType) -> pa.DataType:
    """Return the type with nullable fields in structs."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in type_])
    if pa.types.is_map(type_):
        item = type_.item_field.with_type(_nullable(type_.item_type))
        return pa.map_(type_.key_field.with_type(_nullable(type_.key_type)), item)
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_nullable(type_.value_type)))
    return type_


def _with_nulls_below(array: pa.Array) -> pa.Array:
    """Return the array with null fields wherever a struct is null."""
    if not pa.types.is_nested(array.type):
        return array
    is_struct = isinstance(array, pa.StructArray)
    children = array.flatten() if is_struct else children_of(array)
    nullable = _nullable(array.type)
    return with_children(array, nullable, [_with_nulls_below(c) for c in children])


def _check_times(array: pa.Array, type_: types.Type, path: str, location: str) -> None:
    """Refuse times before 1970 with a fraction of a second.

    Arrow writes negative nanoseconds for such times, and Java then reads a time one second earlier.
    """
    match type_:
        case types.StructType() | types.ListType() | types.MapType():
            # values below a null do not exist
            present = array.drop_null() if array.null_count else array
            for f, values in zip(types.children_of(type_), children_of(present), strict=True):
                _check_times(values, f.type, f"{path}.{f.name}", location)
        case (
            types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNsType()
            | types.TimestamptzNsType()
        ):
            numbers = array.view(pa.int64()).drop_null().to_numpy()
            early = numbers[numbers < 0]
            if (early % (1_000_000 if array.type.unit == "us" else 1_000_000_000)).any():
                raise UnsupportedFeatureError(
                    f"{location}: column '{path}' holds a time before 1970 with a fraction of a "
                    "second, which cannot be written to ORC; write the table as parquet or avro, "
                    "or the times in whole seconds"
                )


_NOT_IN_ORC = (types.VariantType, types.GeometryType, types.GeographyType)
"""Types that Java refuses in ORC files too."""


def orc_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema for the ORC writer, with ORC type attributes as field metadata."""
    return pa.schema([_orc_field(f, f.name) for f in stored_schema(schema).fields])


def _orc_field(field: types.NestedField, path: str) -> pa.Field:
    type_, attributes = _orc_type(field.type, path)
    attributes = {
        "iceberg.id": str(field.field_id),
        "iceberg.required": str(field.required).lower(),
        **attributes,
    }
    # ORC types know nothing of nulls, and fields of null structs have them
    return pa.field(field.name, type_, metadata=attributes)


def _orc_type(type_: types.Type, path: str) -> tuple[pa.DataType, dict[str, str]]:
    match type_:
        case types.StructType(fields=fields):
            return pa.struct([_orc_field(f, f"{path}.{f.name}") for f in fields]), {}
        case types.ListType():
            return pa.list_(_orc_field(type_.element, f"{path}.element")), {}
        case types.MapType():
            key, value = type_.key, type_.value
            orc_key = _orc_field(key, f"{path}.key").with_nullable(False)
            return pa.map_(orc_key, _orc_field(value, f"{path}.value")), {}
        case types.TimeType():
            return pa.int64(), {"iceberg.long-type": "TIME"}
        case types.TimestampType() | types.TimestamptzType():
            return arrow_type(type_), {"iceberg.timestamp-unit": "MICROS"}
        case types.TimestampNsType() | types.TimestamptzNsType():
            return arrow_type(type_), {"iceberg.timestamp-unit": "NANOS"}
        case types.UUIDType():
            return pa.binary(), {"iceberg.binary-type": "UUID"}
        case types.FixedType(length=length):
            return pa.binary(), {"iceberg.binary-type": "FIXED", "iceberg.length": str(length)}
        case types.PrimitiveType() if not isinstance(type_, _NOT_IN_ORC):
            return arrow_type(type_), {}
        case _:
            raise UnsupportedFeatureError(
                f"column '{path}' has type {type_}, which cannot be written to ORC; set the "
                "table property write.format.default to parquet or avro"
            )
