"""Arrow types for values in the form of `spec/values.py`: timestamps are numbers, uuids bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from iceberg_pyspark.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
)


def physical_type(type_: Type) -> pa.DataType:
    """Return the Arrow type of values in memory and in partition columns of an entry table."""
    match type_:
        case BooleanType():
            return pa.bool_()
        case IntegerType() | DateType():
            return pa.int32()
        case (
            LongType()
            | TimeType()
            | TimestampType()
            | TimestamptzType()
            | TimestampNsType()
            | TimestamptzNsType()
        ):
            return pa.int64()
        case FloatType():
            return pa.float32()
        case DoubleType():
            return pa.float64()
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case StringType():
            return pa.string()
        case UnknownType():
            return pa.null()
        case _:
            return pa.binary()


def physical_values(array: pa.Array, type_: Type) -> pa.Array:
    """Convert dates, times and timestamps to numbers; return other arrays unchanged.

    Raises `pa.ArrowInvalid` for a time that the type cannot hold.
    """
    if pa.types.is_date32(array.type):
        return array.view(pa.int32())
    if pa.types.is_time(array.type):
        return array.cast(pa.time64("us")).view(pa.int64())
    if pa.types.is_timestamp(array.type):
        unit = "ns" if isinstance(type_, (TimestampNsType, TimestamptzNsType)) else "us"
        return array.cast(pa.timestamp(unit, array.type.tz)).view(pa.int64())
    return array


def logical_type(type_: Type) -> pa.DataType:
    """Return the Arrow type that Parquet files use for the values of a type (Appendix A)."""
    match type_:
        case DateType():
            return pa.date32()
        case TimeType():
            return pa.time64("us")
        case TimestampType():
            return pa.timestamp("us")
        case TimestamptzType():
            return pa.timestamp("us", "UTC")
        case TimestampNsType():
            return pa.timestamp("ns")
        case TimestamptzNsType():
            return pa.timestamp("ns", "UTC")
        case UUIDType():
            return pa.uuid()
        case FixedType(length=length) if length:
            # Parquet has no fixed-length type of length 0
            return pa.binary(length)
        case _:
            return physical_type(type_)


def logical_array(values: Sequence[Any] | pa.Array, type_: Type) -> pa.Array:
    """Convert values in the form of `spec/values.py` to an array of the type's `logical_type`.

    Raises `pa.ArrowInvalid` or `TypeError` for a value that is not of the type.
    """
    logical = logical_type(type_)
    if isinstance(logical, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(logical, pa.array(values, logical.storage_type))
    if not pa.types.is_temporal(logical):
        return pa.array(values, logical)
    return pa.array(values, physical_type(type_)).view(logical)
