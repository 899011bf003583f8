"""Writes root manifests and leaves: Parquet files of content entries.

The files follow the proposal "Single-file commits", with its names and field ids, and add the
partition tuples that the proposal omits. `formats/roots/content_entry_reader.py` reads the files. A
column without any value is not written. Every commit writes a new root manifest, so both its size
and the time to write it matter.

Convert metrics of files to the statistics of content entries: one typed struct per column.

Specification of version 4, `content_stats`. Only columns of primitive types outside lists and maps
have statistics; metrics of other columns are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.encoding.bound_bytes import typed_bounds
from iceberg_pyspark.formats.encoding.physical_types import logical_array
from iceberg_pyspark.formats.manifest_files.parquet_fields import (
    Column,
    column_paths,
    parquet_field,
    struct_column,
    unlike,
)
from iceberg_pyspark.formats.roots.content_rules import Content, check_entries
from iceberg_pyspark.formats.roots.leaf_columns import columns_of_entries
from iceberg_pyspark.spec.content_entries import (
    SINGLE_FILE_COMMITS,
    ContentType,
    LeafEntry,
    ManifestVectorEntry,
    Role,
    RootEntry,
    StatsField,
    stats_field_id,
)
from iceberg_pyspark.spec.manifests import (
    ColumnSummary,
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from iceberg_pyspark.spec.relative_paths import relative_path
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    UnknownType,
)
from iceberg_pyspark.storage.files.file_io import FileIO

CONTENT_STATS = 149
_NOTHING: Mapping[int, Any] = {}
_METRICS: Mapping[StatsField, str] = {
    StatsField.LOWER_BOUND: "lower_bounds",
    StatsField.UPPER_BOUND: "upper_bounds",
    StatsField.VALUE_COUNT: "value_counts",
    StatsField.NULL_VALUE_COUNT: "null_value_counts",
    StatsField.NAN_VALUE_COUNT: "nan_value_counts",
}
"""The fields in the order in which they are written, and the metric of a `DataFile` for each."""

_COUNTS = frozenset(
    (StatsField.VALUE_COUNT, StatsField.NULL_VALUE_COUNT, StatsField.NAN_VALUE_COUNT)
)


StatsSource: TypeAlias = DataFile | Sequence[ColumnSummary] | None
"""The source of statistics: a file, or the column summaries of a manifest, or None for neither."""


def content_stats(sources: Sequence[StatsSource], schema: Schema) -> Column | None:
    """Return the column `content_stats` of entries, or None if nothing is known about any entry.

    The value of an entry is null if nothing is known about it. The column has a struct for each
    schema column with known metrics, and the struct has the fields that any file has. Bounds are
    values of the column's type in this schema; bounds that cannot be read as the type are omitted.
    Whether bounds are tight is unknown and is not written.
    """
    metrics = {
        field: [_metric(source, name) for source in sources] for field, name in _METRICS.items()
    }
    ids_by_metric = {field: set[int]().union(*maps) for field, maps in metrics.items()}
    used_names = set[str]()
    columns: list[Column] = []
    for column in _columns_with_stats(schema.fields):
        struct_id = stats_field_id(column.field_id)
        if struct_id is None:
            continue
        children = [
            (parquet_field(struct_id + field, field.name.lower(), array.type), array)
            for field, maps in metrics.items()
            if column.field_id in ids_by_metric[field]
            and (array := _values(field, maps, column)) is not None
        ]
        if children:
            name = unlike(used_names, schema.name_by_id[column.field_id], column.field_id)
            columns.append(struct_column(struct_id, name, children))
    if not columns:
        return None
    has_stats = np.array([any(row) for row in zip(*metrics.values(), strict=True)], np.bool_)
    return struct_column(CONTENT_STATS, "content_stats", columns, has_stats)


def _metric(source: StatsSource, name: str) -> Mapping[int, Any]:
    if not source:
        return _NOTHING
    if isinstance(source, DataFile):
        return getattr(source, name) or _NOTHING
    values = ((c.field_id, getattr(c, name.removesuffix("s"))) for c in source)
    return {field_id: value for field_id, value in values if value is not None}


def _columns_with_stats(fields: Sequence[NestedField]) -> Iterator[NestedField]:
    for field in fields:
        if isinstance(field.type, StructType):
            yield from _columns_with_stats(field.type.fields)
        elif isinstance(field.type, PrimitiveType) and not isinstance(field.type, UnknownType):
            yield field


def _values(
    field: StatsField, maps: Sequence[Mapping[int, Any]], column: NestedField
) -> pa.Array | None:
    """Return a metric of a column in all entries; None if there is no such metric or value."""
    if field is StatsField.NAN_VALUE_COUNT and not _has_nan(column.type):
        return None
    field_id = column.field_id
    values = [metric.get(field_id) for metric in maps]
    if field in _COUNTS:
        array = pa.array(values, pa.int64())
    else:
        try:
            array = typed_bounds(values, column.type)
        except TypeError:
            return None
    return None if array.null_count == len(array) else array


def _has_nan(type_: Type) -> bool:
    return isinstance(type_, FloatType | DoubleType)


_Row: TypeAlias = dict[Role, Any]

_PARTITION = 102
_INT, _LONG, _TEXT, _BYTES = pa.int32(), pa.int64(), pa.string(), pa.binary()
_STRUCTS: Mapping[int, str] = {5: "version_info", 147: "deletion_vector", 521: "manifest_stats"}
_LIST_OF_LONGS = pa.list_(parquet_field(133, "element", _LONG, required=True))
_LIST_OF_INTS = pa.list_(parquet_field(136, "element", _INT, required=True))
_COLUMNS: Sequence[tuple[Role, str, pa.DataType]] = (
    ("content_type", "content_type", _INT),
    ("location", "location", _TEXT),
    ("file_format", "file_format", _TEXT),
    ("status", "status", _INT),
    ("snapshot_id", "snapshot_id", _LONG),
    ("sequence_number", "sequence_number", _LONG),
    ("file_sequence_number", "file_sequence_number", _LONG),
    ("vector_offset", "offset", _LONG),
    ("vector_size_in_bytes", "size_in_bytes", _LONG),
    ("inline_vector", "inline_content", _BYTES),
    ("spec_id", "partition_spec_id", _INT),
    ("sort_order_id", "sort_order_id", _INT),
    ("record_count", "record_count", _LONG),
    ("file_size_in_bytes", "file_size_in_bytes", _LONG),
    ("added_files_count", "added_files_count", _INT),
    ("existing_files_count", "existing_files_count", _INT),
    ("deleted_files_count", "deleted_files_count", _INT),
    ("added_rows_count", "added_rows_count", _LONG),
    ("existing_rows_count", "existing_rows_count", _LONG),
    ("deleted_rows_count", "deleted_rows_count", _LONG),
    ("min_sequence_number", "min_sequence_number", _LONG),
    ("referenced_file", "referenced_file", _TEXT),
    ("key_metadata", "key_metadata", _BYTES),
    ("split_offsets", "split_offsets", _LIST_OF_LONGS),
    ("equality_ids", "equality_ids", _LIST_OF_INTS),
    ("first_row_id", "first_row_id", _LONG),
)
"""The columns that have the same type in every file, and their names in the proposal."""

_LONG = 1000
"""The number of entries from which on pages are long."""
_REQUIRED_ROLES = frozenset[Role](
    ("content_type", "file_format", "status", "spec_id", "record_count")
)


@dataclass(frozen=True, kw_only=True)
class WrittenEntries:
    """The file's length in bytes and, for a leaf, the column statistics over all its entries."""

    length: int
    columns: tuple[ColumnSummary, ...]


def write_content_entries(
    file_io: FileIO,
    location: str,
    entries: Iterable[RootEntry],
    *,
    content: Content,
    schema: Schema,
    partition_types: Mapping[int, StructType],
    table_location: str | None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> WrittenEntries:
    """Write a new root manifest or leaf.

    `partition_types` has the type of every spec of the entries. Paths below `table_location` are
    stored relative to it; with None all paths are stored unchanged. Metrics become statistics of
    the columns of `schema`; column sizes and metrics of columns outside `schema` are dropped.
    `metadata` is additional key-value metadata of the file.

    Raises `InvalidRequestError` for an entry that breaks the rules of `check_entries`.
    """
    rows = list(entries)
    check_entries(rows, location, content, partition_types)
    columns = _Entries(rows, location, table_location)
    stats = columns.stats(schema)
    fields, arrays = zip(*columns.all(stats, partition_types), strict=True)
    table = pa.Table.from_arrays(list(arrays), schema=pa.schema(list(fields)))
    types = dict(column_paths(table.schema))
    numeric = {p for p, t in types.items() if pa.types.is_integer(t) or pa.types.is_temporal(t)}
    # On short pages, and on numbers, zstd takes twice the time of snappy and saves next to nothing.
    is_long = len(rows) >= _LONG
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression={
            path: "zstd" if path == "location" or (is_long and path not in numeric) else "snappy"
            for path in types
        },
        # DELTA_BINARY_PACKED is smaller and faster than dictionaries for these columns
        use_dictionary=False,
        column_encoding={
            path: "DELTA_BINARY_PACKED" for path in numeric if not path.endswith(".element")
        },
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({**metadata, "format-version": "4", "content": content})
    data = sink.getvalue()
    with file_io.open_output(location) as stream:
        stream.write(memoryview(data))
    return WrittenEntries(
        length=int(data.size),
        columns=() if content == "root" else columns_of_entries(stats),
    )


class _Entries:
    """The entries of a file and their conversion to columns."""

    def __init__(
        self, entries: Sequence[RootEntry], location: str, table_location: str | None
    ) -> None:
        self._location = location
        self._stored_path = _path_writer(table_location)
        self._files = [e.data_file if isinstance(e, ManifestEntry) else None for e in entries]
        self._stats_sources = [
            e.manifest.columns if isinstance(e, LeafEntry) else file
            for e, file in zip(entries, self._files, strict=True)
        ]
        self._rows = [self._row(e) for e in entries]

    def stats(self, schema: Schema) -> Column | None:
        """Return the statistics of the columns of a schema, or None if nothing is known."""
        return content_stats(self._stats_sources, schema)

    def all(self, stats: Column | None, partition_types: Mapping[int, StructType]) -> list[Column]:
        """Return every column of the file."""
        columns = self._plain()
        for more in (self._partition(partition_types), stats):
            if more is not None:
                columns.append(more)
        return columns

    def _row(self, entry: RootEntry) -> _Row:
        match entry:
            case ManifestEntry():
                return self._file(entry)
            case LeafEntry():
                return self._leaf(entry)
            case ManifestVectorEntry():
                return self._vector(entry)

    def _file(self, entry: ManifestEntry) -> _Row:
        file = entry.data_file
        row: _Row = {
            "status": int(entry.status),
            "snapshot_id": entry.snapshot_id,
            "sequence_number": entry.sequence_number,
            "file_sequence_number": entry.file_sequence_number,
            "content_type": int(file.content),
            "location": self._stored_path(file.file_path),
            "file_format": file.file_format,
            "spec_id": file.spec_id,
            "record_count": file.record_count,
            "file_size_in_bytes": file.file_size_in_bytes,
            "key_metadata": file.key_metadata,
            "split_offsets": file.split_offsets,
        }
        if file.content is FileContent.DATA:
            row["sort_order_id"] = file.sort_order_id
            row["first_row_id"] = file.first_row_id
        elif file.content is FileContent.EQUALITY_DELETES:
            row["equality_ids"] = file.equality_ids
        else:
            row["vector_offset"] = file.content_offset
            row["vector_size_in_bytes"] = file.content_size_in_bytes
            row["referenced_file"] = self._stored_path(str(file.referenced_data_file))
        return row

    def _leaf(self, entry: LeafEntry) -> _Row:
        manifest = entry.manifest
        is_data = manifest.content is ManifestContent.DATA
        path = manifest.manifest_path
        referenced_path = entry.referenced_file
        return {
            "status": int(entry.status),
            "snapshot_id": manifest.added_snapshot_id,
            "sequence_number": manifest.sequence_number,
            "file_sequence_number": manifest.sequence_number,
            "content_type": int(
                ContentType.DATA_MANIFEST if is_data else ContentType.DELETE_MANIFEST
            ),
            "location": self._stored_path(path),
            "file_format": "avro" if path.endswith(".avro") else "parquet",
            "spec_id": manifest.partition_spec_id,
            "record_count": (manifest.added_files_count or 0)
            + (manifest.existing_files_count or 0)
            + (manifest.deleted_files_count or 0),
            "file_size_in_bytes": manifest.manifest_length,
            "added_files_count": manifest.added_files_count,
            "existing_files_count": manifest.existing_files_count,
            "deleted_files_count": manifest.deleted_files_count,
            "added_rows_count": manifest.added_rows_count,
            "existing_rows_count": manifest.existing_rows_count,
            "deleted_rows_count": manifest.deleted_rows_count,
            "min_sequence_number": manifest.min_sequence_number,
            "key_metadata": manifest.key_metadata,
            "first_row_id": manifest.first_row_id if is_data else None,
            "referenced_file": None
            if referenced_path is None
            else self._stored_path(referenced_path),
        }

    def _vector(self, entry: ManifestVectorEntry) -> _Row:
        return {
            "status": int(entry.status),
            "snapshot_id": entry.snapshot_id,
            "sequence_number": entry.sequence_number,
            "file_sequence_number": entry.sequence_number,
            "content_type": int(ContentType.MANIFEST_DELETION_VECTOR),
            "location": None if entry.location is None else self._stored_path(entry.location),
            "file_format": "puffin",
            "spec_id": entry.spec_id,
            "record_count": entry.cardinality,
            "file_size_in_bytes": entry.file_size_in_bytes,
            "vector_offset": entry.offset,
            "vector_size_in_bytes": entry.size_in_bytes,
            "inline_vector": entry.inline,
            "referenced_file": self._stored_path(entry.leaf),
        }

    def _plain(self) -> list[Column]:
        """Return the columns that have the same type in every file."""
        top: dict[int, list[Column]] = {}
        roles = set[Role]().union(*self._rows)
        for role, name, type_ in _COLUMNS:
            is_required = role in _REQUIRED_ROLES
            if role not in roles and not is_required:
                continue
            values = [row.get(role) for row in self._rows]
            if is_required or values.count(None) < len(values):
                *_, field_id = path = SINGLE_FILE_COMMITS.paths[role]
                field = parquet_field(field_id, name, type_, required=is_required)
                top.setdefault(path[0], []).append((field, pa.array(values, type_)))
        return [
            _struct(field_id, _STRUCTS[field_id], columns) if field_id in _STRUCTS else columns[0]
            for field_id, columns in top.items()
        ]

    def _partition(self, partition_types: Mapping[int, StructType]) -> Column | None:
        """Return the union of the partition types of all files, or None if no spec has fields."""
        specs = {f.spec_id: partition_types[f.spec_id] for f in self._files if f is not None}
        fields: dict[int, NestedField] = {}
        places: dict[int, dict[int, int]] = {}
        for spec_id, struct in sorted(specs.items()):
            for i, field in enumerate(struct.fields):
                same = fields.setdefault(field.field_id, field)
                if same.type != field.type:
                    raise InvalidRequestError(
                        f"{self._location}: partition field {field.field_id} is {field.type} in "
                        f"spec {spec_id} and {same.type} in another; files of both specs cannot be "
                        "in one manifest"
                    )
                places.setdefault(field.field_id, {})[spec_id] = i
        used_names = set[str]()
        columns = [
            (parquet_field(i, unlike(used_names, fields[i].name, i), array.type), array)
            for i in fields
            if (array := self._partition_values(fields[i], places[i])) is not None
        ]
        if not columns:
            return None
        has_partition = [f is not None and bool(f.partition) for f in self._files]
        return struct_column(_PARTITION, "partition", columns, np.array(has_partition, np.bool_))

    def _partition_values(self, field: NestedField, places: Mapping[int, int]) -> pa.Array | None:
        """Return the values of a partition field; `places` maps spec ids to tuple positions.

        Returns None if the type is `unknown`.
        """
        values = [
            None if f is None or (i := places.get(f.spec_id)) is None else f.partition[i]
            for f in self._files
        ]
        if isinstance(field.type, UnknownType):
            if any(value is not None for value in values):
                raise InvalidRequestError(
                    f"{self._location}: partition field '{field.name}' has values of unknown "
                    "type: its transform is not known, or its source column was dropped"
                )
            return None
        try:
            return logical_array(values, field.type)
        except (pa.ArrowException, TypeError, OverflowError) as e:
            raise InvalidRequestError(
                f"{self._location}: partition field '{field.name}' of type {field.type}: {e}"
            ) from e


def _struct(field_id: int, name: str, columns: Sequence[Column]) -> Column:
    """Return a struct column that is non-null where any of its children has a value."""
    arrays = [array for _, array in columns]
    is_there = (
        np.any([np.asarray(array.is_valid()) for array in arrays], axis=0)
        if all(array.null_count for array in arrays)
        else None
    )
    required = any(not field.nullable for field, _ in columns)
    return struct_column(field_id, name, columns, is_there, required=required)


def _path_writer(table_location: str | None) -> Callable[[str], str]:
    return str if table_location is None else lambda path: relative_path(path, table_location)
