"""Writes one Parquet data file, according to the table properties `write.parquet.*`.

Specification, Appendix A "Parquet". The properties are Java's. Those of single columns (Bloom
filters, statistics, dictionary encoding) are `write.parquet.<setting>.column.<name>`, with the
column names of the table, which differ from Parquet's paths in lists and maps. A property for a
dropped column has no effect.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrays import children_of, with_children, without_hidden_elements
from iceberg_pyspark.arrow.arrow_schemas import file_schema, is_annotated, stored_schema
from iceberg_pyspark.arrow.formats.data_file_formats import discard_file
from iceberg_pyspark.arrow.formats.parquet_encryption import encryption_properties
from iceberg_pyspark.arrow.formats.shredded_variants import (
    column_shredding,
    shredded_array,
    shredded_type,
    typed_paths,
)
from iceberg_pyspark.formats.encoding.parquet_annotations import VARIANT, annotated_end, geography
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.property_types import (
    LONG_MAX,
    BoolProperty,
    FractionProperty,
    IntProperty,
)
from iceberg_pyspark.spec.schema import Schema, schema_to_json
from iceberg_pyspark.spec.table_properties import (
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_BLOOM_NDV,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_OF_NEW_TABLES,
    PARQUET_DICTIONARY,
    PARQUET_DICTIONARY_SIZE,
    PARQUET_LEVEL,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_SIZE,
    PARQUET_PAGE_VERSION,
    PARQUET_STATISTICS,
    SHRED_VARIANTS,
    VARIANT_INFERENCE_ROWS,
)
from iceberg_pyspark.spec.types import (
    BooleanType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    VariantType,
)
from iceberg_pyspark.spec.variant_shredding import Shredding
from iceberg_pyspark.storage.encryption.encrypted_io import keyed_output
from iceberg_pyspark.storage.files.file_io import FileIO

_WRITER_PARAMETERS = frozenset(inspect.signature(pq.ParquetWriter.__init__).parameters)
WRITES_BLOOM_FILTERS = "bloom_filter_options" in _WRITER_PARAMETERS
"""Whether this pyarrow writes Bloom filters; files without Bloom filters are valid."""
LIMITS_PAGE_ROWS = "max_rows_per_page" in _WRITER_PARAMETERS


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The size of a Bloom filter: number of distinct values, and rate of false positives."""

    ndv: int
    fpp: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """The settings of columns by Parquet path; `paths` are all leaf columns, in file order."""

    paths: tuple[str, ...]
    bloom_filters: Mapping[str, BloomFilter]
    without_statistics: frozenset[str]
    without_dictionary: frozenset[str]

    def writer_arguments(self, typed_paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the settings as keyword arguments of `pyarrow.parquet.ParquetWriter`.

        `typed_paths` are those that shredded variants have in addition, by the path of their
        `value`, whose settings they share.
        """
        options: dict[str, Any] = {}

        def paths_without(exceptions: frozenset[str]) -> list[str]:
            paths = (p for p in self.paths if p not in exceptions)
            return [path for p in paths for path in (p, *typed_paths.get(p, ()))]

        if self.without_statistics:
            options["write_statistics"] = paths_without(self.without_statistics)
        if self.without_dictionary:
            options["use_dictionary"] = paths_without(self.without_dictionary)
        if self.bloom_filters and WRITES_BLOOM_FILTERS:
            options["bloom_filter_options"] = {
                path: {"ndv": b.ndv, "fpp": b.fpp} for path, b in self.bloom_filters.items()
            }
        return options


def sets_columns_apart(properties: Mapping[str, str]) -> bool:
    """Return whether any column has its own settings."""
    return any(
        k.startswith((PARQUET_BLOOM_ENABLED, PARQUET_STATISTICS, PARQUET_DICTIONARY))
        for k in properties
    )


def column_options(schema: Schema, properties: Mapping[str, str]) -> ColumnOptions:
    """Return the settings of a schema's columns; `InvalidRequestError` names a wrong property."""
    leaves = dict(_leaves(stored_schema(schema).as_struct, ""))
    path_by_id = {f.field_id: path for path, f in leaves.items()}

    def exceptions(prefix: str, *, default: bool) -> Iterator[tuple[str, str]]:
        """Yield name and path of the columns whose setting is not the default."""
        for key in properties:
            if not key.startswith(prefix):
                continue
            name = key.removeprefix(prefix)
            path = path_by_id.get(schema.id_by_name.get(name, -1))
            if BoolProperty(key, default).of(properties) != default and path is not None:
                yield name, path

    return ColumnOptions(
        paths=tuple(leaves),
        bloom_filters={
            path: _bloom_filter(properties, name)
            for name, path in exceptions(PARQUET_BLOOM_ENABLED, default=False)
            # a Bloom filter of two values is useless, and Arrow refuses it; no filter compares
            # whole variants
            if not isinstance(leaves[path].type, BooleanType | VariantType)
        },
        without_statistics=frozenset(
            path for _, path in exceptions(PARQUET_STATISTICS, default=True)
        ),
        without_dictionary=frozenset(
            path for _, path in exceptions(PARQUET_DICTIONARY, default=True)
        ),
    )


def _bloom_filter(properties: Mapping[str, str], name: str) -> BloomFilter:
    fpp = FractionProperty(f"{PARQUET_BLOOM_FPP}{name}", 0.01).of(properties)
    most = _values_in(PARQUET_BLOOM_MAX_BYTES.of(properties), fpp)
    ndv = IntProperty(f"{PARQUET_BLOOM_NDV}{name}", most, 1, LONG_MAX).of(properties)
    return BloomFilter(min(ndv, most), fpp)


def _values_in(size: int, fpp: float) -> int:
    """Return the number of distinct values for a filter of that size; sizes are powers of two."""
    bits = 8 << int(math.log2(size))
    return max(int(-bits * math.log(1 - fpp ** (1 / 8)) / 8), 1)


def _leaves(type_: Type, path: str) -> Iterator[tuple[str, NestedField]]:
    match type_:
        case StructType(fields=fields):
            field_by_name = [(f"{path}{f.name}", f) for f in fields]
        case ListType():
            field_by_name = [(f"{path}list.element", type_.element)]
        case MapType():
            field_by_name = [
                (f"{path}key_value.key", type_.key),
                (f"{path}key_value.value", type_.value),
            ]
        case _:
            return
    for name, f in field_by_name:
        if isinstance(f.type, VariantType):
            yield f"{name}.metadata", f
            yield f"{name}.value", f
        elif isinstance(f.type, PrimitiveType):
            yield name, f
        else:
            yield from _leaves(f.type, f"{name}.")


_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "brotli": "brotli",
    "uncompressed": "none",
    "none": "none",
}

_PAGE_VERSIONS = {"v1": "1.0", "v2": "2.0"}

_VALUES_AT_ONCE = 1024
_GZIP_LEVEL = 6
"""Java's level; Arrow's default of 9 takes several times as long and saves about one percent."""


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """The layout of the files of a write, from the table's properties."""

    codec: str
    level: int | None
    page_size: int
    dictionary_size: int
    page_rows: int = PARQUET_PAGE_ROWS.default
    page_version: str = "1.0"
    rows_for_shredding: int = 0
    """The number of first rows by which variants are shredded; 0: they are stored whole."""

    @staticmethod
    def of(properties: Mapping[str, str]) -> ParquetOptions:
        """Return the options in table properties; the default codec is zstd, as for new tables."""
        name = PARQUET_COMPRESSION_OF_NEW_TABLES
        if PARQUET_COMPRESSION.name in properties:
            name = PARQUET_COMPRESSION.of(properties)
        codec = _CODECS[name]
        level = _GZIP_LEVEL if codec == "gzip" else None
        if PARQUET_LEVEL.name in properties:
            level = PARQUET_LEVEL.of(properties)
        return ParquetOptions(
            codec=codec,
            level=level if codec in ("zstd", "gzip", "brotli") else None,
            page_size=PARQUET_PAGE_SIZE.of(properties),
            dictionary_size=PARQUET_DICTIONARY_SIZE.of(properties),
            page_rows=PARQUET_PAGE_ROWS.of(properties),
            page_version=_PAGE_VERSIONS[PARQUET_PAGE_VERSION.of(properties)],
            rows_for_shredding=(
                VARIANT_INFERENCE_ROWS.of(properties) if SHRED_VARIANTS.of(properties) else 0
            ),
        )


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A closed Parquet file: its location, size in bytes and footer."""

    location: str
    file_size_in_bytes: int
    footer: pq.FileMetaData
    key_metadata: bytes | None = field(default=None, repr=False)


class ParquetFile:
    """An open Parquet file with rows of one schema; end it with `close` or `abort`."""

    def __init__(
        self,
        io: FileIO,
        location: str,
        schema: Schema,
        options: ParquetOptions,
        columns: ColumnOptions | None = None,
    ) -> None:
        self.location = location
        self._io = io
        self._options = options
        self._columns = columns
        self._schema = file_schema(schema)
        stored_fields = stored_schema(schema).fields
        self._with_required_below = [
            (i, f) for i, f in enumerate(stored_fields) if _has_required_parts(f)
        ]
        self._variants = [
            i
            for i, f in enumerate(stored_fields)
            if options.rows_for_shredding and isinstance(f.type, VariantType)
        ]
        self._shreddings: dict[int, Shredding] = {}
        self._footers: list[pq.FileMetaData] = []
        self._stream, self._key = keyed_output(io, location)
        # an encrypted footer cannot be changed
        logical_types = _logical_types(schema) if self._key is None else {}
        self._end = _EndOfFile(self._stream, logical_types)
        # the same key as in Java's files
        self._key_value_metadata = {
            "iceberg.schema": json.dumps(schema_to_json(schema), separators=(",", ":"))
        }
        self._writer: pq.ParquetWriter | None = None

    def _opened_writer(self, value_bytes: float = 0) -> pq.ParquetWriter:
        """Return a new writer, for which the file's schema must be known, and the size of values.

        Arrow ends pages only between so many values, which may be large.
        """
        options = self._options
        fields = [self._schema.field(i) for i in range(len(self._schema))]
        paths: dict[str, Sequence[str]] = {}
        for i, shredding in self._shreddings.items():
            paths[f"{fields[i].name}.value"] = [*typed_paths(shredding, fields[i].name)]
            fields[i] = fields[i].with_type(shredded_type(shredding))
        self._schema = pa.schema(fields)
        writer = pq.ParquetWriter(
            self._end,
            self._schema,
            compression=options.codec,
            compression_level=options.level,
            data_page_size=options.page_size,
            dictionary_pagesize_limit=options.dictionary_size,
            data_page_version=options.page_version,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            write_batch_size=int(
                max(1, min(_VALUES_AT_ONCE, options.page_size / max(value_bytes, 1)))
            ),
            metadata_collector=self._footers,
            **encryption_properties(self._key),
            **({"max_rows_per_page": options.page_rows} if LIMITS_PAGE_ROWS else {}),
            **({} if self._columns is None else self._columns.writer_arguments(paths)),
        )
        writer.add_key_value_metadata(self._key_value_metadata)
        return writer

    @property
    def written_bytes(self) -> int:
        """The length of the file so far, in bytes."""
        return self._stream.tell()

    def write_row_group(self, rows: pa.Table) -> None:
        """Write one row group of rows that have `stored_arrow_schema`."""
        largest = 0
        for i, column in enumerate(rows.columns):
            largest = max(largest, column.nbytes)
            # pyarrow 23 refuses hidden elements of lists
            chunks = column.chunks
            shown = [without_hidden_elements(a) for a in chunks]
            if any(a is not b for a, b in zip(shown, chunks, strict=True)):
                rows = rows.set_column(i, rows.field(i), pa.chunked_array(shown, column.type))
        for i, f in self._with_required_below:
            chunks = [_without_nulls(a, f) for a in rows.column(i).chunks]
            rows = rows.set_column(i, rows.field(i), pa.chunked_array(chunks, rows.field(i).type))
        if self._writer is None:
            for i in self._variants:
                name, count = rows.field(i).name, self._options.rows_for_shredding
                if (shredding := column_shredding(rows.column(i), count, name)) is not None:
                    self._shreddings[i] = shredding
            self._writer = self._opened_writer(largest / max(rows.num_rows, 1))
        for i, shredding in self._shreddings.items():
            name, type_ = rows.field(i).name, self._schema.field(i).type
            chunks = [shredded_array(a, shredding, name) for a in rows.column(i).chunks]
            rows = rows.set_column(
                i, rows.field(i).with_type(type_), pa.chunked_array(chunks, type_)
            )
        self._writer.write_table(rows.cast(self._schema), row_group_size=max(rows.num_rows, 1))

    def close(self) -> WrittenFile:
        """Write the footer and publish the file."""
        self._writer = self._writer or self._opened_writer()
        self._end.begins = True
        self._writer.close()
        self._end.finish()
        size = self._stream.tell()
        self._stream.close()
        key = None if self._key is None else replace(self._key, file_length=size).encoded()
        return WrittenFile(self.location, size, self._footers[0], key)

    def abort(self) -> None:
        """Close the file without publishing it, and remove its remains."""
        # otherwise the writer's finalizer would write a footer to the closed stream
        if self._writer is not None:
            self._writer.is_open = False
        discard_file(self._stream, self._io, self.location)


class _EndOfFile:
    """A stream for a writer that cannot write some logical types: the end of the file is held back.

    Once the end `begins`, what is written waits for `finish`, which writes it with these types.
    """

    closed = False

    def __init__(self, stream: BinaryIO, logical_types: Mapping[int, bytes]) -> None:
        self._stream = stream
        self._logical_types = logical_types
        self._held = b""
        self.begins = False

    def write(self, data: bytes) -> int:
        if not self.begins or not self._logical_types:
            return self._stream.write(data)
        self._held += bytes(data)
        return len(data)

    def tell(self) -> int:
        return self._stream.tell() + len(self._held)

    def flush(self) -> None:
        self._stream.flush()

    def finish(self) -> None:
        if self._held:
            self._stream.write(annotated_end(self._held, self._logical_types))


def _logical_types(schema: Schema) -> dict[int, bytes]:
    """Return the logical types that Arrow does not write, by field id."""
    logical_types = {}
    for f in types.walk_fields(schema.as_struct):
        if isinstance(f.type, types.GeographyType) and is_annotated(f.type):
            crs = None if f.type.crs == types.DEFAULT_CRS else f.type.crs
            logical_types[f.field_id] = geography(crs, f.type.algorithm)
        elif is_annotated(f.type):
            logical_types[f.field_id] = VARIANT
    return logical_types


def _has_required_parts(f: types.NestedField) -> bool:
    """Return whether a file has required fields below a field; those of a variant are."""
    return any(
        isinstance(inner.type, VariantType) or (inner.required and inner is not f)
        for inner in (f, *types.walk_fields(f.type))
    )


def _without_nulls(array: pa.Array, f: types.NestedField) -> pa.Array:
    """Return the array without the nulls that required fields have below a null.

    No value exists there, but Arrow's casts and writers refuse any null in a required field.
    """
    # Arrow also counts the nulls of rows before and after a slice
    has_nulls = f.required and array.buffers()[0] is not None
    if not has_nulls and not _has_required_parts(f):
        return array
    if isinstance(f.type, VariantType):
        parts = [p.fill_null(b"") if p.null_count else p for p in children_of(array)]
        return with_children(array, array.type, parts, nulls=not f.required)
    if isinstance(f.type, types.PrimitiveType):
        buffers = [None, *array.buffers()[1:]]
        return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)
    children = children_of(array)
    present = [
        _without_nulls(values, child)
        for child, values in zip(types.children_of(f.type), children, strict=True)
    ]
    if not has_nulls and all(a is b for a, b in zip(present, children, strict=True)):
        return array
    return with_children(array, array.type, present, nulls=not f.required)
