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
