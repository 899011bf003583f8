"""Converts Iceberg's Arrow batches for Spark.

Spark accepts exactly the Arrow types of its schema, without casts. These are the types of `arrow/`,
except for uuid (string), fixed (binary), time (nanoseconds), variant (value before metadata), and
geometry and geography (the number of the reference system, and WKB).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceberg_pyspark.arrow.arrays import children_of, with_children
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.spark.rows.geo_types import geo_spark_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
    TimeType,
    Type,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.types import children_of as fields_below

Convert: TypeAlias = Callable[[pa.Array], pa.Array]

_SPARK_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)


def compile_to_spark(schema: Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that converts batches of `to_arrow_schema(schema)` to Spark's batches."""
    converts = [_compile(f.type) for f in schema.fields]
    if not any(converts):
        return lambda batch: batch
    fields = [
        field.with_type(_spark_type(f.type, field.type)).remove_metadata()
        for f, field in zip(schema.fields, to_arrow_schema(schema), strict=True)
    ]
    target = pa.schema(fields)

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                column if change is None else change(column)
                for column, change in zip(batch.columns, converts, strict=True)
            ],
            schema=target,
        )

    return convert


def _compile(type_: Type) -> Convert | None:
    """Return how to convert arrays of a type, or None if they need no conversion."""
    match type_:
        case UUIDType():
            return _uuid_text
        case FixedType():
            return lambda array: array.cast(pa.binary())
        case VariantType():
            return _variant
        case GeometryType() | GeographyType():
            return _compile_geo(type_)
        case TimeType():
            return lambda array: array.cast(pa.time64("ns"))
        case StructType() | ListType() | MapType():
            return _compile_nested([_compile(f.type) for f in fields_below(type_)], type_)
    return None


def _variant(array: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [array.field("value"), array.field("metadata")],
        fields=list(_SPARK_VARIANT),
        mask=array.is_null() if array.null_count else None,
    )


def _compile_geo(type_: Type) -> Convert:
    target: Any = geo_spark_type(type_)
    if target is None:
        return lambda array: array

    def convert(array: pa.Array) -> pa.StructArray:
        numbers = pa.repeat(pa.scalar(target.srid, pa.int32()), len(array))
        mask = array.is_null() if array.null_count else None
        wkb = array if mask is None else array.fill_null(b"")
        return pa.StructArray.from_arrays(
            [numbers, wkb], fields=list(_arrow_geo(target)), mask=mask
        )

    return convert


def _arrow_geo(target: Any) -> pa.StructType:
    mark = target.typeName().encode()
    marks = {mark: b"true", b"srid": str(target.srid).encode()}
    return pa.struct(
        [
            pa.field("srid", pa.int32(), nullable=False),
            pa.field("wkb", pa.binary(), nullable=False, metadata=marks),
        ]
    )


def _compile_nested(converts: list[Convert | None], type_: Type) -> Convert | None:
    if not any(converts):
        return None

    def convert(array: pa.Array) -> pa.Array:
        children = [
            child if change is None else change(child)
            for child, change in zip(children_of(array), converts, strict=True)
        ]
        return with_children(array, _spark_type(type_, array.type), children)

    return convert


def _spark_type(type_: Type, arrow: pa.DataType) -> pa.DataType:
    match type_:
        case UUIDType():
            return pa.string()
        case FixedType():
            return pa.binary()
        case TimeType():
            return pa.time64("ns")
        case VariantType():
            return _SPARK_VARIANT
        case GeometryType() | GeographyType():
            target = geo_spark_type(type_)
            return arrow if target is None else _arrow_geo(target)
        case StructType(fields=fields):
            return pa.struct(
                [
                    arrow.field(i).with_type(_spark_type(f.type, arrow.field(i).type))
                    for i, f in enumerate(fields)
                ]
            )
        case ListType():
            element = arrow.value_field
            return pa.list_(element.with_type(_spark_type(type_.element_type, element.type)))
        case MapType():
            key, item = arrow.key_field, arrow.item_field
            return pa.map_(
                key.with_type(_spark_type(type_.key_type, key.type)),
                item.with_type(_spark_type(type_.value_type, item.type)),
            )
    return arrow


_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
# The positions of a UUID's 32 hex digits among its 36 characters; the others are dashes.
_DIGIT_AT = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


def _uuid_text(array: pa.Array) -> pa.Array:
    """Return the text of 16-byte UUIDs; the conversion is vectorized.

    >>> _uuid_text(pa.array([bytes(range(16)), None], pa.binary(16))).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f', None]
    """
    count = len(array)
    raw = array.buffers()[1]
    if count == 0 or raw is None:
        return pa.nulls(count, pa.string())
    every = np.frombuffer(raw, dtype=np.uint8)
    data = every[array.offset * 16 : (array.offset + count) * 16].reshape(-1, 16)
    text = np.full((count, 36), ord("-"), dtype=np.uint8)
    text[:, _DIGIT_AT[0::2]] = _HEX[data >> 4]
    text[:, _DIGIT_AT[1::2]] = _HEX[data & 15]
    offsets = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    whole = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    if not array.null_count:
        return whole
    return pa.compute.if_else(array.is_valid(), whole, pa.scalar(None, pa.string()))
