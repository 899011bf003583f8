"""The common form of metadata tables: a schema, a reader and small tasks.

A reader has the data that all tasks share, and is pickled once; a task names one manifest, snapshot
or file. Both are small, so tasks can run anywhere. The modules beside this one define the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.lists import with_entries, with_values
from iceberg_pyspark.arrow.schemas import arrow_type, to_arrow_field, to_arrow_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import ListType, MapType, NestedField, StructType, Type
from iceberg_pyspark.storage.file_io import FileIO

ColumnMaker: TypeAlias = Callable[[NestedField], pa.Array]
"""Makes one top-level column as wanted; asked only for columns that are."""


class MetadataTableReader(Protocol):
    """Turns tasks of one kind into rows; pickles small."""

    def read(self, io: FileIO, task: Any, projection: Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a task, as batches of exactly `to_arrow_schema(projection)`.

        `projection` holds fields of the metadata table's schema, by id, and perhaps not all of a
        struct's.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class MetadataTable:
    """One metadata table of one table, ready to be read."""

    name: str
    """The full name: `db.events.files`."""
    schema: Schema
    reader: MetadataTableReader
    io: FileIO = field(repr=False)
    plan: Callable[[], Sequence[Any]] = field(repr=False)
    """Works the tasks out, which may read manifest lists."""

    hidden: Schema = field(default=Schema(fields=()))
    """Columns that are there too, for who names them."""

    def select(self, projection: Schema) -> MetadataTable:
        """The table with only some of the fields."""
        return replace(self, schema=projection)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, task by task."""
        for task in self.plan():
            yield from self.reader.read(self.io, task, self.schema)

    def to_arrow(self) -> pa.Table:
        """The rows as one table, in memory."""
        return pa.Table.from_batches(self.to_batches(), to_arrow_schema(self.schema))


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """Reads tasks that are the rows themselves, as Arrow tables of `schema`."""

    schema: Schema

    def read(self, io: FileIO, task: pa.Table, projection: Schema) -> Iterator[pa.RecordBatch]:
        """The task's own rows."""
        del io
        for batch in task.to_batches():
            yield batch_of(projection, batch.num_rows, partial(self._column, batch))

    def _column(self, batch: pa.RecordBatch, target: NestedField) -> pa.Array:
        position = [f.field_id for f in self.schema.fields].index(target.field_id)
        return shaped(batch.column(position), self.schema.as_struct, target)


def arrow_of_rows(schema: Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows by column name as an Arrow table."""
    return pa.Table.from_pylist(list(rows), to_arrow_schema(schema))


def batch_of(projection: Schema, rows: int, make: ColumnMaker) -> pa.RecordBatch:
    """A batch of the projected columns; one without any column still knows its number of rows."""
    fields = [to_arrow_field(f) for f in projection.fields]
    arrays = [make(f) for f in projection.fields]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def shaped(array: pa.Array, parent: StructType, target: NestedField) -> pa.Array:
    """A child of `parent`, given as an array, as exactly the type of the target."""
    return shaped_type(array, field_of(parent, target).type, target.type)


def field_of(parent: StructType, target: NestedField) -> NestedField:
    """The field as the metadata table has it, whatever a reader calls it."""
    field = parent.field(target.field_id)
    assert field is not None, "a reader projects fields of the schema"
    return field


def shaped_type(array: pa.Array, have: Type, want: Type) -> pa.Array:
    """An array of a type with only the fields that `want` has, as exactly `arrow_type(want)`."""
    target = arrow_type(want)
    match (have, want):
        case (StructType(), StructType()):
            position = {f.field_id: i for i, f in enumerate(have.fields)}
            children = [shaped(array.field(position[f.field_id]), have, f) for f in want.fields]
            return struct_of(want, children, len(array), array)
        case (ListType(), ListType()):
            child = shaped_type(array.values, have.element_type, want.element_type)
            return with_values(array, target, child)
        case (MapType(), MapType()):
            keys = shaped_type(array.keys, have.key_type, want.key_type)
            items = shaped_type(array.items, have.value_type, want.value_type)
            return with_entries(array, target, keys, items)
        case _:
            return array if array.type == target else array.cast(target)


def struct_of(
    type_: StructType, children: Sequence[pa.Array], rows: int, nulls_of: pa.Array | None = None
) -> pa.Array:
    """A struct array of exactly `arrow_type(type_)`, null where `nulls_of` is."""
    mask = nulls_of.is_null() if nulls_of is not None and nulls_of.null_count else None
    if not children:
        is_null = [False] * rows if mask is None else mask.to_pylist()
        return pa.array([None if null else {} for null in is_null], pa.struct([]))
    return pa.StructArray.from_arrays(
        children, fields=[to_arrow_field(f) for f in type_.fields], mask=mask
    )
