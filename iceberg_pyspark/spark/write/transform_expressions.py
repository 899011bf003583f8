"""Partition transforms as expressions of Spark's own functions, to group and order rows by.

Equal partition values give equal columns, and greater values give greater columns, which is all
that distribution and sorting need. The numbers are the specification's ("Partition Transforms"), so
that a hash of them spreads partitions over tasks as evenly as the reference implementation does.
The partition of each row is determined by `arrow/write/column_transforms.py`.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)

_EPOCH_YEAR = 1970
_MICROS_PER_DAY = 86_400_000_000
_MICROS_PER_HOUR = 3_600_000_000


def transform_expression(
    bridge: Bridge, transform: Transform, column: Column, type_: types.Type
) -> Column:
    """Return the transform of a column of that type."""
    match transform:
        case IdentityTransform():
            return column
        case YearTransform():
            return F.year(_date(column, type_)) - _EPOCH_YEAR
        case MonthTransform():
            date = _date(column, type_)
            return (F.year(date) - _EPOCH_YEAR) * 12 + F.month(date) - 1
        case DayTransform():
            return _date(column, type_)
        case HourTransform() if isinstance(type_, types.TimestamptzType):
            return _floor_div(F.unix_micros(column), _MICROS_PER_HOUR)
        case HourTransform():
            return F.unix_date(column.cast("date")) * 24 + F.hour(column)
        case TruncateTransform(width):
            return _truncate(column, type_, width)
        case BucketTransform(count):
            bucket = _hash(bridge, column, type_).bitwiseAND(0x7FFFFFFF) % count
            return F.when(column.isNotNull(), bucket)
    raise UnsupportedFeatureError(f"rows cannot be distributed by the transform {transform}")


def _date(column: Column, type_: types.Type) -> Column:
    """Return the day in UTC, whatever the session's time zone is."""
    if isinstance(type_, types.TimestamptzType):
        days = _floor_div(F.unix_micros(column), _MICROS_PER_DAY)
        return F.date_from_unix_date(days.cast("int"))
    return column.cast("date")


def _floor_div(column: Column, divisor: int) -> Column:
    return F.call_function("div", column - F.pmod(column, F.lit(divisor)), F.lit(divisor))


def _truncate(column: Column, type_: types.Type, width: int) -> Column:
    if isinstance(type_, types.StringType | types.BinaryType):
        return F.substring(column, 1, width)
    step: int | Decimal = width
    if isinstance(type_, types.DecimalType):
        step = Decimal(width).scaleb(-type_.scale)
    # The lowest values would overflow; they become null and so share a group of rows.
    return F.try_subtract(column, F.pmod(column, F.lit(step)))


def _hash(bridge: Bridge, column: Column, type_: types.Type) -> Column:
    match type_:
        case types.StringType():
            return bridge.writes.murmur3(column, "text")
        case types.BinaryType() | types.FixedType():
            return bridge.writes.murmur3(column, "bytes")
        case types.UUIDType():
            return bridge.writes.murmur3(F.unhex(F.replace(column, F.lit("-"))), "bytes")
        case types.DecimalType():
            return bridge.writes.murmur3(column, "decimal")
        case types.DateType():
            return bridge.writes.murmur3(F.unix_date(column).cast("long"), "long")
        case types.TimestamptzType():
            return bridge.writes.murmur3(F.unix_micros(column), "long")
        case types.TimestampType():
            return bridge.writes.murmur3(column, "long")
        case types.TimeType():
            micros = F.time_diff("microsecond", F.lit("00:00:00").cast("time(6)"), column)
            return bridge.writes.murmur3(micros, "long")
    return bridge.writes.murmur3(column.cast("long"), "long")
