"""Implements the metadata tables of manifest entries: `files`, `entries` and similar ones.

One task per manifest. Specification, "Manifest Entry Fields" and "Data File Fields"; column order
and the readable form of metrics are those of Java's tables, which users know.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.roots.root_manifests import with_common_dead_positions
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.entry_columns import METRIC_MAPS, MetricMap
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.retyped_columns import RetypedColumn, retyped_columns
from iceberg_pyspark.spec.schema import Schema, is_primitive
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.entry_values import (
    MetricValues,
    WrittenTypes,
    bound_values,
    partition_values,
    shown_type,
)
from iceberg_pyspark.table.metadata_tables.rows import (
    arrow_field_of,
    batch_of,
    field_of,
    shape_column,
    struct_of,
)

PARTITION_DOC = "Partition data tuple, schema based on the partition spec"
_ROWS_AT_ONCE = 4096
_DATA_FILE_ID, _PARTITION_ID = 2, 102

_METRICS: Mapping[str, tuple[MetricMap, str]] = {
    "column_size": ("column_sizes", "Total size on disk"),
    "value_count": ("value_counts", "Total count, including null and NaN"),
    "null_value_count": ("null_value_counts", "Null value count"),
    "nan_value_count": ("nan_value_counts", "NaN value count"),
    "lower_bound": ("lower_bounds", "Lower bound"),
    "upper_bound": ("upper_bounds", "Upper bound"),
}


def _column(
    field_id: int, name: str, type_: types.Type, doc: str | None = None, required: bool = False
) -> types.NestedField:
    return types.NestedField(field_id=field_id, name=name, type=type_, doc=doc, required=required)


def _metric_map(first_id: int, value: types.PrimitiveType) -> types.MapType:
    return types.MapType(
        key_id=first_id,
        key_type=types.IntegerType(),
        value_id=first_id + 1,
        value_type=value,
        value_required=True,
    )


def _list_of(element_id: int, element: types.PrimitiveType) -> types.ListType:
    return types.ListType(element_id=element_id, element_type=element, element_required=True)


_FILE_COLUMNS = (
    _column(
        134,
        "content",
        types.IntegerType(),
        "Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
    ),
    _column(100, "file_path", types.StringType(), "Location URI with FS scheme", True),
    _column(
        101, "file_format", types.StringType(), "File format name: avro, orc, or parquet", True
    ),
    _column(141, "spec_id", types.IntegerType(), "Partition spec ID"),
    _column(_PARTITION_ID, "partition", types.StructType(()), PARTITION_DOC, True),
    _column(103, "record_count", types.LongType(), "Number of records in the file", True),
    _column(104, "file_size_in_bytes", types.LongType(), "Total file size in bytes", True),
    _column(
        108,
        "column_sizes",
        _metric_map(117, types.LongType()),
        "Map of column id to total size on disk",
    ),
    _column(
        109,
        "value_counts",
        _metric_map(119, types.LongType()),
        "Map of column id to total count, including null and NaN",
    ),
    _column(
        110,
        "null_value_counts",
        _metric_map(121, types.LongType()),
        "Map of column id to null value count",
    ),
    _column(
        137,
        "nan_value_counts",
        _metric_map(138, types.LongType()),
        "Map of column id to number of NaN values in the column",
    ),
    _column(
        125, "lower_bounds", _metric_map(126, types.BinaryType()), "Map of column id to lower bound"
    ),
    _column(
        128, "upper_bounds", _metric_map(129, types.BinaryType()), "Map of column id to upper bound"
    ),
    _column(131, "key_metadata", types.BinaryType(), "Encryption key metadata blob"),
    _column(132, "split_offsets", _list_of(133, types.LongType()), "Splittable offsets"),
    _column(
        135, "equality_ids", _list_of(136, types.IntegerType()), "Equality comparison field IDs"
    ),
    _column(140, "sort_order_id", types.IntegerType(), "Sort order ID"),
    _column(
        142,
        "first_row_id",
        types.LongType(),
        "The first row ID assigned to the first row in the data file",
    ),
    _column(
        143,
        "referenced_data_file",
        types.StringType(),
        "Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
    ),
    _column(
        144, "content_offset", types.LongType(), "The offset in the file where the content starts"
    ),
    _column(
        145,
        "content_size_in_bytes",
        types.LongType(),
        "The length of referenced content stored in the file",
    ),
)
_EVERY_FILE_COLUMN = types.StructType(_FILE_COLUMNS)
_ENTRY_COLUMNS = (
    _column(0, "status", types.IntegerType(), required=True),
    _column(1, "snapshot_id", types.LongType()),
    _column(3, "sequence_number", types.LongType()),
    _column(4, "file_sequence_number", types.LongType()),
)


def files_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of `files` and similar tables."""
    return _with_readable_metrics(metadata.current_schema, _file_fields(metadata))


def entries_schema(metadata: TableMetadata) -> Schema:
    """Return the columns of `entries` and `all_entries`."""
    data_file = _column(
        _DATA_FILE_ID, "data_file", types.StructType(_file_fields(metadata)), required=True
    )
    return _with_readable_metrics(metadata.current_schema, (*_ENTRY_COLUMNS, data_file))


def _file_fields(metadata: TableMetadata) -> tuple[types.NestedField, ...]:
    return tuple(
        replace(f, type=metadata.unified_partition_type) if f.field_id == _PARTITION_ID else f
        for f in _FILE_COLUMNS
        # some engines do not support a struct without fields
        if f.field_id != _PARTITION_ID or metadata.unified_partition_type.fields
    )


def _with_readable_metrics(table_schema: Schema, fields: tuple[types.NestedField, ...]) -> Schema:
    next_id = max(f.field_id for f in types.walk_fields(types.StructType(fields))) + 1
    fields_of_metrics = []
    for source in _measured_fields(table_schema):
        name = table_schema.name_by_id[source.field_id]
        struct_id, next_id = next_id, next_id + 1
        metrics = []
        for metric, (_, doc) in _METRICS.items():
            type_ = shown_type(source.type) if metric.endswith("bound") else types.LongType()
            metrics.append(_column(next_id, metric, type_, doc))
            next_id += 1
        fields_of_metrics.append(
            _column(struct_id, name, types.StructType(tuple(metrics)), f"Metrics for column {name}")
        )
    fields_of_metrics.sort(key=lambda f: f.name)
    readable = _column(
        next_id,
        "readable_metrics",
        types.StructType(tuple(fields_of_metrics)),
        "Column metrics in readable form",
    )
    return Schema(fields=(*fields, readable))


def _measured_fields(schema: Schema) -> list[types.NestedField]:
    return [
        f
        for f in types.walk_fields(schema.as_struct)
        if is_primitive(f.type) and not isinstance(f.type, types.VariantType)
    ]


@dataclass(frozen=True, kw_only=True)
class _TypesOfManifest:
    """The type of a manifest's tuples, and the columns that got another type since."""

    partition: types.StructType
    retyped: Mapping[int, RetypedColumn]


@dataclass(frozen=True, kw_only=True)
class EntryRows:
    """A reader of manifests: of their live files or, with `as_entries`, of all their entries."""

    schema: Schema
    table_schema: Schema
    written_types: WrittenTypes
    as_entries: bool

    def read(self, io: FileIO, task: ManifestFile, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the entries of one manifest."""
        schemas = self.written_types.schemas_of(io, task)
        of_manifest = _TypesOfManifest(
            partition=self.written_types.partition_type(task.partition_spec_id, schemas),
            retyped=retyped_columns(schemas[0], self.table_schema),
        )
        entries = read_entries(
            io,
            task,
            of_manifest.partition,
            drop_deleted=not self.as_entries,
            metrics="all" if _needs_metrics(projection) else (),
        )
        for batch in entries.to_batches(max_chunksize=_ROWS_AT_ONCE):
            yield batch_of(projection, batch.num_rows, partial(self._column, batch, of_manifest))

    def _column(
        self, batch: pa.RecordBatch, of_manifest: _TypesOfManifest, target: types.NestedField
    ) -> pa.Array:
        field = field_of(self.schema.as_struct, target)
        if field.name == "readable_metrics":
            return self._readable_metrics(batch, of_manifest, field, target)
        if field.name == "data_file":
            children = [self._file_column(batch, of_manifest, f) for f in _struct(target).fields]
            return struct_of(_struct(target), children, batch.num_rows)
        if self.as_entries:
            return batch.column(field.name)
        return self._file_column(batch, of_manifest, target)

    def _file_column(
        self, batch: pa.RecordBatch, of_manifest: _TypesOfManifest, target: types.NestedField
    ) -> pa.Array:
        field = field_of(_EVERY_FILE_COLUMN, target)
        array = batch.column(field.name)
        if field.name == "partition":
            return partition_values(array, _struct(target), of_manifest.partition)
        if field.name == "file_format":
            return pc.utf8_upper(array)
        return shape_column(array, _EVERY_FILE_COLUMN, target)

    def _readable_metrics(
        self,
        batch: pa.RecordBatch,
        of_manifest: _TypesOfManifest,
        field: types.NestedField,
        target: types.NestedField,
    ) -> pa.Array:
        values = {metric: MetricValues(batch.column(metric)) for metric in METRIC_MAPS}
        measured_ids = frozenset[int]().union(*(v.field_ids for v in values.values()))
        # of thousands of columns, most have no metrics: those of one type share an array
        unmeasured: dict[Hashable, pa.Array] = {}
        columns = []
        for metrics_field in _struct(target).fields:
            of_column = field_of(_struct(field), metrics_field)
            source = self.table_schema.find(of_column.name)
            kind = tuple((f.name, f.type) for f in _struct(metrics_field).fields)
            if source.field_id not in measured_ids and kind in unmeasured:
                columns.append(unmeasured[kind])
                continue
            retyped_columns = of_manifest.retyped.get(source.field_id)
            metrics = []
            for f in _struct(metrics_field).fields:
                metric = field_of(_struct(of_column), f).name
                array = values[_METRICS[metric][0]].of_field(source.field_id)
                if metric.endswith("bound"):
                    if retyped_columns is not None and not retyped_columns.has_readable_rows:
                        array = pa.nulls(batch.num_rows, pa.binary())
                    array = bound_values(array, shown_type(source.type))
                metrics.append(array)
            columns.append(struct_of(_struct(metrics_field), metrics, batch.num_rows))
            if source.field_id not in measured_ids:
                unmeasured[kind] = columns[-1]
        if not columns:
            return struct_of(_struct(target), columns, batch.num_rows)
        return pa.StructArray.from_arrays(columns, fields=list(arrow_field_of(target).type))


def _struct(f: types.NestedField) -> types.StructType:
    assert isinstance(f.type, types.StructType), "only structs have children"
    return f.type


def _needs_metrics(projection: Schema) -> bool:
    names = {f.name.lower() for f in types.walk_fields(projection.as_struct)}
    return bool(names & {*METRIC_MAPS, "readable_metrics"})


def plan_manifests(
    io: FileIO, snapshots: Sequence[Snapshot], content: ManifestContent | None
) -> list[ManifestFile]:
    """Return the manifests of these snapshots, each once, of one content or of both (None)."""
    manifests: dict[Hashable, ManifestFile] = {}
    for snapshot in snapshots:
        for manifest in read_snapshot_manifests(io, snapshot):
            if content is None or manifest.content is content:
                same_manifest = manifests.get(manifest.part)
                manifests[manifest.part] = (
                    manifest
                    if same_manifest is None
                    else with_common_dead_positions(same_manifest, manifest)
                )
    return list(manifests.values())
