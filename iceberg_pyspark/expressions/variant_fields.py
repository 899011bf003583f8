"""Fields of variants in predicates: their values in a row, and their range in a file.

A field has a value if the variant has one of the field's type at the path; a number has it too if
the type can hold it. Other values are null, never converted. The range comes from the bounds of
shredded fields (specification, "Bounds for Variant, Geometry, and Geography").
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import ExtractedColumn
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import metadata_length, python_at
from iceberg_pyspark.spec.variant_paths import normalized_path

_EPOCH = dt.date(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_JAVAS_LENGTH = 16
"""Java cuts upper bounds of bytes to this length without making them greater."""

FIELD_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
    types.DecimalType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.StringType,
    types.BinaryType,
    types.UUIDType,
)


def field_value(column: ExtractedColumn, metadata: bytes, value: bytes) -> Any:
    """Return the field's value in a variant, in the form of `spec/values.py`; None for null."""
    return _typed(column.type, python_at(metadata, value, column.path))


def field_range(
    column: ExtractedColumn, lower: bytes | None, upper: bytes | None
) -> tuple[Any, Any]:
    """Return the least and greatest value in a file with these bounds; None is unknown."""
    low, high = _bound(column, lower), _bound(column, upper)
    if isinstance(high, bytes) and len(high) >= _JAVAS_LENGTH:
        high = None
    # bounds of two types, or of one that the field cannot have, say nothing
    return (None, None) if low is None and upper is not None else (low, high)


def _bound(column: ExtractedColumn, data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        end = metadata_length(data)
        key = normalized_path(column.path)
        bound = _typed(column.type, python_at(data[:end], data[end:], (key,)))
    except (InvalidMetadataError, UnsupportedFeatureError):
        return None
    return bound if bound == bound else None


def _typed(type_: types.Type, value: Any) -> Any:
    """Return a Python object as a value of a type, or None if it has another type."""
    match type_, value:
        case types.BooleanType(), bool():
            return value
        case _, bool():
            return None
        case types.IntegerType() | types.LongType(), int():
            bits = 31 if isinstance(type_, types.IntegerType) else 63
            return value if -(1 << bits) <= value < 1 << bits else None
        case types.FloatType() | types.DoubleType(), int() | float() | Decimal():
            return float(value)
        case types.DecimalType(precision=precision, scale=scale), int() | Decimal():
            return _decimal(Decimal(value), precision, scale)
        case types.TimestampType() | types.TimestamptzType(), dt.datetime():
            is_zoned = isinstance(type_, types.TimestamptzType)
            if (value.tzinfo is not None) != is_zoned:
                return None
            return (value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // _MICRO
        case _, dt.datetime():
            return None
        case types.DateType(), dt.date():
            return (value - _EPOCH).days
        case types.StringType(), str():
            return value
        case types.BinaryType(), bytes():
            return value
        case types.UUIDType(), UUID():
            return value.bytes
    return None


def _decimal(value: Decimal, precision: int, scale: int) -> Decimal | None:
    sign, digits, exponent = value.as_tuple()
    shift = scale + int(exponent)
    unscaled = int("".join(map(str, digits)))
    if shift < 0:
        unscaled, rest = divmod(unscaled, 10**-shift)
        if rest:
            return None
    else:
        unscaled *= 10**shift
    return decimal_of(-unscaled if sign else unscaled, scale) if unscaled < 10**precision else None
