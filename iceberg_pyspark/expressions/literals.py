"""Places a plain Python literal among the values of an Iceberg type.

`id < 1.5` on an int column is decided by arithmetic, not by rounding the literal: a literal is
either a value of the type, or lies between two values, or outside all of them. `binding.py` turns
each case into an exact predicate. A literal of a wrong kind raises `TypeError`, an unreadable
literal `ValueError`.

Time zones: a text or datetime without a zone means UTC if a zone is needed. A datetime with a zone
is compared with a column without zone by its UTC clock, which is Spark's rule for the session time
zone UTC.
"""

from __future__ import annotations

import math
import numbers
import re
import struct
import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock_time
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import decimal_of, value_from_json

_NANOS_PER_DAY = 86_400_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INT_RANGE = (-(2**31), 2**31 - 1)
_LONG_RANGE = (-(2**63), 2**63 - 1)
_TEXT_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[T ](?P<clock>\d{1,2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,9}))?"
    r"\s?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?"
)


@dataclass(frozen=True, slots=True)
class BoundLiteralValue:
    """The place of a literal: at `value`, between `value` and the next value, or outside.

    `below` and `above` mean less or greater than every value of the type. `nan` occurs only with
    float and double, where NaN is the greatest value.
    """

    where: Literal["at", "after", "below", "above", "nan"]
    value: Any = None


_BELOW = BoundLiteralValue("below")
_ABOVE = BoundLiteralValue("above")


def place_literal(type_: types.Type, literal: Any) -> BoundLiteralValue:
    """Return a non-null literal's place among the values of a primitive type.

    >>> place_literal(IntegerType(), 1.5)
    BoundLiteralValue(where='after', value=1)
    >>> place_literal(DateType(), datetime(1970, 1, 2, 12))
    BoundLiteralValue(where='after', value=1)
    """
    match type_:
        case types.BooleanType() if isinstance(literal, bool):
            return BoundLiteralValue("at", literal)
        case types.IntegerType() | types.LongType():
            low, high = integer_range(type_)
            if type(literal) is int and low <= literal <= high:
                # Without fractions, which take long for sets of many keys.
                return BoundLiteralValue("at", literal)
            return _place_number(_number(literal), 1, integer_range(type_))
        case types.DecimalType(precision=precision, scale=scale):
            number = _decimal(literal)
            limit = 10**precision - 1
            unscaled = _place_number(number, 10**scale, (-limit, limit))
            return (
                unscaled
                if unscaled.value is None
                else BoundLiteralValue(unscaled.where, decimal_of(unscaled.value, scale))
            )
        case types.DoubleType():
            return _place_double(_number(literal))
        case types.FloatType():
            return _place_float(_place_double(_number(literal)))
        case types.DateType():
            return _place_nanos(_nanos(literal, text=_DATE_ONLY), _NANOS_PER_DAY, _INT_RANGE)
        case types.TimestampType():
            return _place_nanos(_nanos(literal, text=_WITHOUT_ZONE), 1000, _LONG_RANGE)
        case types.TimestamptzType():
            return _place_nanos(_nanos(literal, text=_ANY_ZONE), 1000, _LONG_RANGE)
        case types.TimestampNsType():
            return _place_nanos(_nanos(literal, text=_WITHOUT_ZONE), 1, _LONG_RANGE)
        case types.TimestamptzNsType():
            return _place_nanos(_nanos(literal, text=_ANY_ZONE), 1, _LONG_RANGE)
        case types.TimeType() if isinstance(literal, str | clock_time):
            return BoundLiteralValue("at", _micros_of_day(literal))
        case types.StringType() if isinstance(literal, str):
            return BoundLiteralValue("at", literal)
        case types.UUIDType() if isinstance(literal, uuid.UUID | str):
            uuid_value = uuid.UUID(literal) if isinstance(literal, str) else literal
            return BoundLiteralValue("at", uuid_value.bytes)
        case types.BinaryType() | types.FixedType() | types.UUIDType() if isinstance(
            literal, bytes | bytearray | memoryview
        ):
            return BoundLiteralValue("at", _check_length(type_, bytes(literal)))
        case _:
            raise TypeError(f"{type(literal).__name__} cannot be compared with {type_}")


def integer_range(type_: types.Type) -> tuple[int, int]:
    """Return the least and greatest value of int (and date) or long (and time, timestamps)."""
    return _INT_RANGE if isinstance(type_, types.IntegerType | types.DateType) else _LONG_RANGE


def _number(literal: Any) -> int | float | Decimal:
    if isinstance(literal, bool):
        raise TypeError("a boolean is not a number")
    if isinstance(literal, Decimal):
        return literal
    if isinstance(literal, numbers.Integral):
        return int(literal)
    if isinstance(literal, numbers.Real):
        return float(literal)
    raise TypeError(f"{type(literal).__name__} is not a number")


def _decimal(literal: Any) -> int | float | Decimal:
    if isinstance(literal, str):
        try:
            decimal = Decimal(literal.strip())
        except InvalidOperation:
            raise ValueError(f"{literal!r} is not a decimal number") from None
        if not decimal.is_finite():
            raise ValueError(f"{literal!r} is not a decimal number")
        return decimal
    number = _number(literal)
    # 0.1 means one tenth, as in Spark's comparison of a decimal with a double
    return Decimal(repr(number)) if isinstance(number, float) and math.isfinite(number) else number


def _place_number(
    number: int | float | Decimal, per_unit: int, limits: tuple[int, int]
) -> BoundLiteralValue:
    """Place a number among the multiples of 1/per_unit; the result's `value` is the multiple."""
    if number != number or number == math.inf:
        return _ABOVE  # Spark compares with NaN as double, and NaN is the greatest double
    if number == -math.inf:
        return _BELOW
    if isinstance(number, Decimal) and number and abs(number.adjusted()) > 100:
        # far outside the range, or far below the resolution: do not build the enormous fraction
        sign = -1 if number.is_signed() else 1
        number = Decimal(sign * 10**100) if number.adjusted() > 0 else Decimal(sign).scaleb(-100)
    exact = Fraction(number) * per_unit
    floor = math.floor(exact)
    low, high = limits
    if exact > high:
        return _ABOVE
    if exact < low:
        return _BELOW
    return BoundLiteralValue("at" if exact == floor else "after", floor)


def _place_double(number: int | float | Decimal) -> BoundLiteralValue:
    """Place a number among doubles as Spark casts it, at the nearest double."""
    try:
        value = float(number)
    except OverflowError:
        value = math.inf if number > 0 else -math.inf
    return BoundLiteralValue("nan") if math.isnan(value) else BoundLiteralValue("at", value)


def _place_float(double: BoundLiteralValue) -> BoundLiteralValue:
    """Place a double among floats; Spark compares both as doubles, so nothing is rounded."""
    if double.where == "nan":
        return double
    value: float = double.value
    nearest = nearest_float(value)
    if nearest == value:
        return BoundLiteralValue("at", nearest)
    return BoundLiteralValue("after", nearest if nearest < value else _float_before(nearest))


def nearest_float(value: float) -> float:
    """Return the 32-bit float nearest to a number; an infinity beyond the largest one.

    >>> nearest_float(0.1)
    0.10000000149011612
    """
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _float_before(value: float) -> float:
    """Return the largest 32-bit float less than `value`, which must not be -infinity."""
    bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
    if value == 0:
        bits = -0x80000000 + 1  # the smallest negative subnormal
    else:
        bits += -1 if value > 0 else 1
    before: float = struct.unpack("<f", struct.pack("<i", bits))[0]
    return before


_DATE_ONLY = "a date, as in '2026-01-31'"
_WITHOUT_ZONE = "a timestamp without zone, as in '2026-01-31 10:00:00'"
_ANY_ZONE = "a timestamp, as in '2026-01-31T10:00:00+00:00'"


def _nanos(literal: Any, *, text: str) -> int:
    """Return nanoseconds since 1970; `text` tells which texts are allowed."""
    match literal:
        case datetime():
            aware = literal if literal.tzinfo else literal.replace(tzinfo=timezone.utc)
            micros: int = (aware - _EPOCH) // timedelta(microseconds=1)
            return micros * 1000
        case date():
            return (literal - _EPOCH.date()).days * _NANOS_PER_DAY
        case str():
            nanos, has_clock, has_zone = parse_timestamp(literal)
            if (text is _DATE_ONLY and has_clock) or (text is _WITHOUT_ZONE and has_zone):
                raise ValueError(f"{literal!r} is not {text}")
            return nanos
        case _:
            raise TypeError(f"{type(literal).__name__} is not a date or timestamp")


def parse_timestamp(text: str) -> tuple[int, bool, bool]:
    """Return an ISO text's nanoseconds since 1970 in UTC, and whether it has a time and a zone.

    >>> parse_timestamp("1970-01-01T01:00:00.000000001+01:00")
    (1, True, True)
    """
    m = _TEXT_TIMESTAMP.fullmatch(text.strip())
    if m is None:
        raise ValueError(f"{text!r} is not a date or timestamp, as in '2026-01-31 10:00:00'")
    year, month, day = map(int, m["date"].split("-"))
    hour, minute, second, *_ = [*map(int, (m["clock"] or "0").split(":")), 0, 0]
    moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    nanos = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    nanos += int((m["fraction"] or "").ljust(9, "0"))
    zone = m["zone"]
    if zone and zone[0] in "+-":
        offset = int(zone[1:3]) * 60 + int(zone[-2:])
        nanos -= (offset if zone[0] == "+" else -offset) * 60_000_000_000
    return nanos, m["clock"] is not None, zone is not None


def _place_nanos(nanos: int, per_unit: int, limits: tuple[int, int]) -> BoundLiteralValue:
    floor, rest = divmod(nanos, per_unit)
    low, high = limits
    if floor > high or (floor == high and rest):
        return _ABOVE
    if floor < low:
        return _BELOW
    return BoundLiteralValue("after" if rest else "at", floor)


def _micros_of_day(literal: str | clock_time) -> int:
    if isinstance(literal, str):
        if len(literal.partition(".")[2]) > 6:
            raise ValueError(f"{literal!r} has a higher precision than microseconds")
        micros: int = value_from_json(types.TimeType(), literal.strip())
        return micros
    if literal.tzinfo is not None:
        raise ValueError(f"{literal} has a zone, a time column has none")
    seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
    return seconds * 1_000_000 + literal.microsecond


def _check_length(type_: types.Type, value: bytes) -> bytes:
    length = type_.length if isinstance(type_, types.FixedType) else 16
    if not isinstance(type_, types.BinaryType) and len(value) != length:
        raise ValueError(f"{value.hex()} has {len(value)} bytes, {type_} has {length}")
    return value
