"""Converts values of manifest entries to columns of metadata tables: partitions, bounds, maps.

Entry tables store physical values (a date is an integer) and metrics as maps by field id; see
`spec/entry_columns.py`.

Determines the column types of a manifest's values.

After REPLACE TABLE these are the types of the manifest's own schema: the new table may give a
column another type, and older manifests keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.encoding.physical_types import physical_type
from iceberg_pyspark.formats.manifest_reader import read_manifest_header
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.planning.partition_codes import as_texts
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_type, read_partition_type
from iceberg_pyspark.spec.retyped_columns import has_retyped_columns, is_readable_as
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import IdentityTransform, human_value, untyped_text
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.rows import struct_of


@dataclass(frozen=True, kw_only=True)
class WrittenTypes:
    """The types with which the manifests of a table were written."""

    specs: Mapping[int, PartitionSpec]
    schemas: Sequence[Schema] = field(repr=False)
    """The current schema, then the others."""

    is_retyped: bool
    """Whether a column has got another type, so that each manifest must say which types it has."""

    @staticmethod
    def of(metadata: TableMetadata) -> WrittenTypes:
        """Return the types of a table's manifests."""
        schemas = metadata.schemas_newest_first
        return WrittenTypes(
            specs=metadata.spec_by_id, schemas=schemas, is_retyped=has_retyped_columns(schemas)
        )

    def schemas_of(self, io: FileIO, manifest: ManifestFile) -> Sequence[Schema]:
        """Return the schemas in the order in which they apply to a manifest."""
        if not self.is_retyped or manifest.is_root:
            return self.schemas
        header = read_manifest_header(io, manifest.manifest_path, manifest.key_metadata)
        return (header.schema, *self.schemas)

    def partition_type(self, spec_id: int, schemas: Sequence[Schema]) -> StructType:
        """Return the type of the tuples of a manifest with these schemas."""
        spec = self.specs[spec_id]
        if self.is_retyped:
            return read_partition_type(spec, schemas)
        return partition_type(spec, schemas)


Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def shown_type(type_: types.Type) -> types.Type:
    """Return the type in which values of a type are shown.

    Geometry and geography, which neither Arrow nor older releases of Spark support, are shown as
    the stored bytes: WKB, or a point in bounds (specification, Appendix D and G).
    """
    if isinstance(type_, types.GeometryType | types.GeographyType):
        return types.BinaryType()
    return types.with_children(type_, lambda f: replace(f, type=shown_type(f.type)))


def logical_values(array: pa.Array, type_: types.Type) -> pa.Array:
    """Convert physical values of a type, or of a type promoted to it, to `arrow_type(type_)`."""
    target = arrow_type(type_)
    if array.type == target:
        return array
    match type_:
        case types.UnknownType():
            return pa.nulls(len(array), target)
        case types.StringType():
            # for an unknown transform: the stored values as text
            return as_texts(array)
        case types.DateType():
            return array.cast(pa.int32()).cast(target)
        case (
            types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNsType()
            | types.TimestamptzNsType()
        ):
            return array.cast(pa.int64()).cast(target)
        case types.TimeType():
            return array.cast(pa.int64()).cast(target)
        case types.FixedType() | types.UUIDType():
            fits = pc.equal(pc.binary_length(array), target.byte_width)
            return pc.if_else(fits, array, None).cast(target)
        case _:
            return array.cast(target)


def bound_values(bounds: pa.Array, type_: types.Type) -> pa.Array:
    """Decode binary bounds to values; unreadable bounds become null."""
    if isinstance(type_, types.UnknownType):
        return pa.nulls(len(bounds), arrow_type(type_))
    return logical_values(decode_bounds(bounds, type_), type_)


def partition_tuples(
    entries: pa.RecordBatch, own: types.StructType, target: types.StructType
) -> list[tuple[Any, ...]]:
    """Return the physical partition values of each entry; empty tuples if `target` has no fields.

    `own` is the type of the stored tuples. The returned tuples have the fields of `target`, with
    their types, see `partition_values`; a field that `own` does not have is None.
    """
    part_by_id = {
        o.field_id: (part, o)
        for part, o in zip(entries.column("partition").flatten(), own.fields, strict=True)
    }
    parts = [
        _as_target(*part_by_id[f.field_id], f).to_pylist()
        if f.field_id in part_by_id
        else [None] * entries.num_rows
        for f in target.fields
    ]
    return list(zip(*parts, strict=True)) if parts else [()] * entries.num_rows


def partition_of_values(type_: types.StructType, tuples: Sequence[Sequence[Any]]) -> pa.Array:
    """Return tuples of physical values as a struct array with field ids as child names."""
    if not type_.fields:
        return pa.array([{}] * len(tuples), pa.struct([]))
    columns = zip(*tuples, strict=True) if tuples else [()] * len(type_.fields)
    arrays = [
        _physical_array(f.type, values) for f, values in zip(type_.fields, columns, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, [str(f.field_id) for f in type_.fields])


def _physical_array(type_: types.Type, values: Sequence[Any]) -> pa.Array:
    match type_:
        case types.UnknownType() | types.StringType():
            texts = [None if v is None else untyped_text(v) for v in values]
            return pa.array(texts, pa.string())
        case _:
            return pa.array(values, physical_type(type_))


def partition_values(
    partition: pa.Array, target: types.StructType, own: types.StructType | None = None
) -> pa.Array:
    """Convert partition tuples of one spec to a struct over all specs; missing fields are null.

    `partition` has field ids as child names. `own` is the type of the tuples if it may be another
    one, from before the table was replaced. A value that has no form in the target type raises
    `InvalidRequestError`.
    """
    rows = len(partition)
    at = {f.name: i for i, f in enumerate(partition.type)}
    children = []
    for f in target.fields:
        i = at.get(str(f.field_id))
        child = None if i is None else partition.field(i)
        if child is None or child.null_count == rows:
            children.append(pa.nulls(rows, arrow_type(f.type)))
        else:
            own_field = None if own is None else own.field(f.field_id)
            if own_field is not None:
                child = _as_target(child, own_field, f)
            children.append(logical_values(child, f.type))
    return struct_of(target, children, rows)


def _as_target(values: pa.Array, own: types.NestedField, target: types.NestedField) -> pa.Array:
    """Return physical values of one type as physical values of a type that is not a promotion."""
    if values.null_count == len(values):
        return values
    match own.type, target.type:
        case types.UnknownType(), _:
            return values
        case old, types.StringType() if old != target.type:
            texts = [
                None if v is None else human_value(IdentityTransform(), old, v)
                for v in values.to_pylist()
            ]
            return pa.array(texts, pa.string())
        case types.DateType(), types.TimestampType():
            days = logical_values(values, own.type)
            return days.cast(arrow_type(target.type)).cast(pa.int64())
        case old, new if is_readable_as(old, new):
            return values
        case _:
            raise InvalidRequestError(
                f"values of partition field '{own.name}' are of type {own.type}, from before the "
                f"table was replaced, and cannot be shown as {target.type}, the type of the field "
                "now; leave out the column 'partition' of a metadata table"
            )


class MetricValues:
    """One metric of all files, split from a map by field id into a column per field."""

    def __init__(self, maps: pa.MapArray) -> None:
        self._rows = len(maps)
        self._items = maps.items
        offsets = maps.offsets.to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        rows = np.repeat(np.arange(self._rows), np.diff(offsets))
        keys = maps.keys.slice(first, last - first).to_numpy(zero_copy_only=False)
        if maps.null_count:
            # entries under a null map belong to no file
            valid = maps.is_valid().to_numpy(zero_copy_only=False)[rows]
            rows, keys = rows[valid], keys[valid]
            places = np.arange(first, last)[valid]
        else:
            places = np.arange(first, last)
        order = np.argsort(keys, kind="stable")
        self.field_ids = frozenset(np.unique(keys).tolist())
        """The fields for which any file has the metric."""

        self._keys: Numbers = keys[order]
        self._file_of: Numbers = rows[order]
        self._places: Numbers = places[order]

    def of_field(self, field_id: int) -> pa.Array:
        """Return the metric of one field, with null for files that lack it."""
        start, end = np.searchsorted(self._keys, [field_id, field_id + 1])
        at = np.full(self._rows, -1, np.int64)
        at[self._file_of[start:end]] = self._places[start:end]
        return self._items.take(pa.array(at, mask=at < 0))
