"""Arrow types of values as `spec/values.py` holds them: a timestamp is a number, a uuid bytes."""

from __future__ import annotations

import pyarrow as pa

from iceberg_pyspark.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
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
)


def physical_type(type_: Type) -> pa.DataType:
    """The Arrow type of values of a type, in memory and as partition values in an entry table."""
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
    """Dates and times as the numbers that stand for them, all else as it is.

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
