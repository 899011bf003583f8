"""Converts Arrow rows to the Python values that `output.py` prints."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from itertools import repeat, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema


def rows_of(batch: pa.RecordBatch, schema: Schema | None = None) -> list[dict[str, Any]]:
    """Return the rows as dicts by column name; maps are mappings, dates and timestamps are text.

    `schema` has the columns of the batch: in Arrow, a UUID is not different from 16 bytes.
    """
    known: Iterable[types.Type | None] = (
        repeat(None) if schema is None else (f.type for f in schema.fields)
    )
    columns = [
        _printable(column, type_) for column, type_ in zip(batch.columns, known, strict=False)
    ]
    printable = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    rows: list[dict[str, Any]] = printable.to_pylist(maps_as_pydicts="lossy")
    return rows


def _printable(array: pa.Array, type_: types.Type | None) -> pa.Array:
    """Cast UUIDs, dates and timestamps to text: Python has no nanoseconds and no year 10000."""
    if isinstance(type_, types.UUIDType):
        return pa.array([v and str(uuid.UUID(bytes=v)) for v in array.to_pylist()], pa.string())
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return pc.cast(array, pa.string())
    if not pa.types.is_nested(array.type):
        return array
    # a variant is a struct in Arrow only
    fields = [] if type_ is None else types.children_of(type_)
    parts = [
        _printable(part, None if field is None else field.type)
        for part, field in zip_longest(children_of(array), fields)
    ]
    return with_children(array, _with_parts(array.type, [p.type for p in parts]), parts)


def _with_parts(target: pa.DataType, parts: Sequence[pa.DataType]) -> pa.DataType:
    if isinstance(target, pa.StructType):
        return pa.struct([f.with_type(part) for f, part in zip(target, parts, strict=True)])
    return pa.map_(*parts) if isinstance(target, pa.MapType) else pa.list_(*parts)
