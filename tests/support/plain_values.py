"""Values of Iceberg types as Python and Arrow take them, so few that values repeat."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import variant_of

_INTS = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
_FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, float("nan"), float("inf"), float("-inf")]
_DAYS = [(1970, 1, 1), (1969, 12, 31), (2020, 2, 29), (1582, 10, 10), (9999, 12, 31)]
_MOMENTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2020, 2, 29, 12),
    dt.datetime(1582, 10, 10, 1, 2, 3),
    dt.datetime(9999, 12, 30, 23, 0, 0, 1),
]
_VARIANTS = [None, True, 7, -300, 2.5, "a", "x" * 70, [], [1, None, {"b": "é"}], {"a": 7, "b": "a"}]
_POINTS = [(1.0, 2.0), (-7.5, 10.25), (0.0, -0.0)]
_TEXTS = ["", "a", "ab", "b", "A", "é", "é\U0001f600", "it's", "a\\n", "a%"]


UNORDERED_TYPES = (UnknownType, VariantType, GeometryType, GeographyType)
"""The primitive types whose values are not compared: no condition but IS NULL, no key, no default.
"""


def float32(value: float) -> float:
    """Return the nearest value that a 32-bit float can represent."""
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def plain_values(type_: PrimitiveType) -> SearchStrategy[Any]:
    """Return a strategy for values of a primitive type, never null."""
    return st.sampled_from(few_values(type_))


def few_values(type_: PrimitiveType) -> list[Any]:
    """Return the values of a primitive type, never null."""
    match type_:
        case BooleanType():
            return [True, False]
        case IntegerType():
            return _INTS
        case LongType():
            return [*_INTS, 2**31, 2**40 + 1, 2**63 - 1, -(2**63)]
        case FloatType():
            return [*_FLOATS, float32(0.1), 2.0**-149, float32(3.4028235e38)]
        case DoubleType():
            return [*_FLOATS, float32(0.1), 0.1, 1e300]
        case DecimalType(precision=precision, scale=scale):
            few = [0, 125, -125, 10**9 - 1, 1 - 10**9, 2**32 * 100 + 125, 10**precision - 1]
            return [decimal_of(u, scale) for u in few if abs(u) < 10**precision]
        case DateType():
            return [dt.date(*day) for day in _DAYS]
        case TimeType():
            return [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999)]
        case TimestampType():
            return _MOMENTS
        case TimestamptzType():
            return [m.replace(tzinfo=dt.timezone.utc) for m in _MOMENTS]
        case StringType():
            return _TEXTS
        case UUIDType():
            return [bytes(16), b"\x80" + bytes(15), uuid.UUID(int=2**128 - 1).bytes]
        case FixedType(length=length):
            return [octet * length for octet in (b"\x00", b"a", b"\xff")]
        case BinaryType():
            return [b"", b"\x00", b"\x00\xff", b"a", b"\xff"]
        case VariantType():
            return [dict(zip(("metadata", "value"), variant_of(v), strict=True)) for v in _VARIANTS]
        case GeometryType() | GeographyType():
            return [struct.pack("<BIdd", 1, 1, *point) for point in _POINTS]
    raise NotImplementedError(f"values of {type_}")


def values(type_: Type) -> SearchStrategy[Any]:
    """Return a strategy for values of any type, or null; a map is a list of (key, value) pairs.

    A struct is a dict by field id, so that its value means the same under every later schema.
    """
    match type_:
        case UnknownType():
            return st.none()
        case PrimitiveType():
            few = plain_values(type_)
            return st.one_of(few, few, few, st.none())
        case StructType(fields=fields):
            return st.none() | st.fixed_dictionaries({f.field_id: values(f.type) for f in fields})
        case ListType():
            return st.none() | st.lists(values(type_.element_type), max_size=2)
        case MapType():
            assert isinstance(type_.key_type, PrimitiveType)
            pairs = st.tuples(plain_values(type_.key_type), values(type_.value_type))
            return st.none() | st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0])
    raise NotImplementedError(f"values of {type_}")
