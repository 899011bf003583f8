"""Nanosecond timestamps in types that Spark has, where the option `nanos-as` asks for one.

`long` is the number of nanoseconds since 1970, `truncated` the last timestamp in microseconds that
is not later, and `nanos` Spark 4.3's own type. Without the option such columns are refused, so no
digits are lost unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.arrow.arrow_schemas import arrow_type, to_arrow_schema
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema

NanosAs: TypeAlias = Literal["long", "truncated", "nanos", "refused"]
"""How nanosecond timestamps are read."""

_NANOSECONDS = (types.TimestampNsType, types.TimestamptzNsType)


def with_shown_nanos(schema: Schema, nanos_as: NanosAs) -> Schema:
    """Return the schema in which nanosecond timestamps have the types that Spark gets."""
    if nanos_as in ("refused", "nanos"):
        return schema
    return replace(schema, fields=tuple(_shown(f, nanos_as) for f in schema.fields))


def _shown(f: types.NestedField, nanos_as: NanosAs) -> types.NestedField:
    match f.type:
        case types.TimestampNsType():
            type_: types.Type = types.LongType() if nanos_as == "long" else types.TimestampType()
        case types.TimestamptzNsType():
            type_ = types.LongType() if nanos_as == "long" else types.TimestamptzType()
        case _:
            type_ = types.with_children(f.type, lambda inner: _shown(inner, nanos_as))
    return (
        replace(f, type=type_, initial_default=None, write_default=None) if (type_ != f.type) else f
    )


def with_stored_nanos(schema: Schema, table_schema: Schema) -> Schema:
    """Return a projection of shown columns with the types that the table's columns have."""

    def stored(f: types.NestedField) -> types.NestedField:
        own = table_schema.field_by_id.get(f.field_id)
        if own is not None and isinstance(own.type, _NANOSECONDS):
            return replace(f, type=own.type, initial_default=own.initial_default)
        return replace(f, type=types.with_children(f.type, stored))

    return replace(schema, fields=tuple(map(stored, schema.fields)))


def compile_shown_nanos(
    schema: Schema, nanos_as: NanosAs
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function from batches of a schema to batches of `with_shown_nanos`."""
    shown = with_shown_nanos(schema, nanos_as)
    if shown == schema:
        return lambda batch: batch
    target = to_arrow_schema(shown)
    pairs = list(zip(schema.fields, shown.fields, strict=True))

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            _converted(array, stored.type, to.type)
            for array, (stored, to) in zip(batch.columns, pairs, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    return convert


def _converted(array: pa.Array, stored: types.Type, shown: types.Type) -> pa.Array:
    if stored == shown:
        return array
    if isinstance(shown, types.LongType):
        return array.view(pa.int64())
    if isinstance(stored, types.PrimitiveType):
        return pc.floor_temporal(array, unit="microsecond").cast(arrow_type(shown))
    parts = zip(
        children_of(array), types.children_of(stored), types.children_of(shown), strict=True
    )
    return with_children(
        array, arrow_type(shown), [_converted(a, s.type, t.type) for a, s, t in parts]
    )
