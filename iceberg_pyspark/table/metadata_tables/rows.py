"""Defines the common form of metadata tables: a schema, a reader and small tasks.

A reader has the data that all tasks share, and is pickled once; a task refers to one manifest,
snapshot or file. Both are small, so tasks can run anywhere. The other modules here define the
tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.arrow.arrow_schemas import arrow_type, to_arrow_field, to_arrow_schema
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import ListType, MapType, NestedField, StructType, Type
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.reading.row_stream import RowStream

ColumnMaker: TypeAlias = Callable[[NestedField], pa.Array]
"""Returns one top-level column in the projected form; called only for projected columns."""


class MetadataTableReader(Protocol):
    """A reader that turns tasks of one kind into rows; its pickle is small."""

    def read(self, io: FileIO, task: Any, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task, as batches of exactly `to_arrow_schema(projection)`.

        `projection` has fields of the metadata table's schema, by id, and possibly only some of a
        struct's fields.
        """
        ...


@checked_methods
@dataclass(frozen=True, kw_only=True)
class MetadataTable(RowStream):
    """One metadata table of one table, ready to be read."""

    name: str
    """The full name, such as `db.events.files`."""
    schema: Schema
    reader: MetadataTableReader
    io: FileIO = field(repr=False)
    plan: Callable[[], Sequence[Any]] = field(repr=False)
    """Computes the tasks; may read manifest lists."""

    hidden: Schema = field(default=Schema(fields=()))
    """Additional columns, which a query must name explicitly."""

    def select(self, projection: Schema) -> MetadataTable:
        """Return the table with only these fields."""
        return replace(self, schema=projection)

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, which is read task by task."""
        batches = (b for task in self.plan() for b in self.reader.read(self.io, task, self.schema))
        return pa.RecordBatchReader.from_batches(to_arrow_schema(self.schema), batches)


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """A reader of tasks that are the rows themselves, as Arrow tables of `schema`."""

    schema: Schema

    def read(self, io: FileIO, task: pa.Table, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Yield the task's own rows."""
        del io
        for batch in task.to_batches():
            yield batch_of(projection, batch.num_rows, partial(self._column, batch))

    def _column(self, batch: pa.RecordBatch, target: NestedField) -> pa.Array:
        position = [f.field_id for f in self.schema.fields].index(target.field_id)
        return shape_column(batch.column(position), self.schema.as_struct, target)


def arrow_of_rows(schema: Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows, given by column name, as an Arrow table."""
    return pa.Table.from_pylist(list(rows), to_arrow_schema(schema))


def batch_of(projection: Schema, rows: int, make: ColumnMaker) -> pa.RecordBatch:
    """Return a batch of the projected columns, with the right row count even without columns."""
    fields = [arrow_field_of(f) for f in projection.fields]
    arrays = [make(f) for f in projection.fields]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


@lru_cache(maxsize=256)
def arrow_field_of(field: NestedField) -> pa.Field:
    """Return the Arrow field of a column, which all manifests share and may have many parts."""
    return to_arrow_field(field)


def shape_column(array: pa.Array, parent: StructType, target: NestedField) -> pa.Array:
    """Convert the array of a child of `parent` to exactly the type of the target field."""
    return shaped_type(array, field_of(parent, target).type, target.type)


def field_of(parent: StructType, target: NestedField) -> NestedField:
    """Return the field with the target's id as the metadata table defines it."""
    field = parent.field(target.field_id)
    assert field is not None, "a reader projects fields of the schema"
    return field


def shaped_type(array: pa.Array, have: Type, want: Type) -> pa.Array:
    """Convert an array to exactly `arrow_type(want)`, which may have fewer nested fields."""
    target = arrow_type(want)
    match (have, want):
        case (StructType(), StructType()):
            position = {f.field_id: i for i, f in enumerate(have.fields)}
            children = [
                shape_column(array.field(position[f.field_id]), have, f) for f in want.fields
            ]
            return struct_of(want, children, len(array), array)
        case (ListType(), ListType()):
            (values,) = children_of(array)
            child = shaped_type(values, have.element_type, want.element_type)
            return with_children(array, target, [child])
        case (MapType(), MapType()):
            keys, items = children_of(array)
            keys = shaped_type(keys, have.key_type, want.key_type)
            items = shaped_type(items, have.value_type, want.value_type)
            return with_children(array, target, [keys, items])
        case _:
            return array if array.type == target else array.cast(target)


def struct_of(
    type_: StructType, children: Sequence[pa.Array], rows: int, nulls_of: pa.Array | None = None
) -> pa.Array:
    """Return a struct array of exactly `arrow_type(type_)`, null where `nulls_of` is null."""
    mask = nulls_of.is_null() if nulls_of is not None and nulls_of.null_count else None
    if not children:
        is_null = [False] * rows if mask is None else mask.to_pylist()
        return pa.array([None if null else {} for null in is_null], pa.struct([]))
    return pa.StructArray.from_arrays(
        children, fields=[to_arrow_field(f) for f in type_.fields], mask=mask
    )
