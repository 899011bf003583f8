"""Values of literals in SQL text: numbers, and texts with a type such as `DATE'2026-01-31'`.

A value that a literal cannot have is a `ValueError`, `InvalidOperation` or `OverflowError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeAlias

from iceberg_pyspark.expressions.literals import parse_timestamp

Number: TypeAlias = int | float | Decimal

_BITS_BY_INTEGER_TYPE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NUMBER_TYPES = frozenset({*_BITS_BY_INTEGER_TYPE, "DOUBLE", "FLOAT", "DECIMAL"})
_TIMESTAMP_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MAX_DIGITS = 1000


def number_of(text: str) -> Number:
    """Return the number of a literal; a number with very many digits becomes a decimal."""
    if text.isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def negated(value: Number) -> Number:
    """Return the number with the other sign; the operator `-` rounds decimals to 28 digits."""
    return value.copy_negate() if isinstance(value, Decimal) and value else -value


def is_number_type(name: str) -> bool:
    """Return whether a type, as sqlglot names it, may have a number as literal."""
    return name in _NUMBER_TYPES


def typed_value(name: str, text: str, parameters: Sequence[int] = ()) -> Any:
    """Return the value of a typed literal: DATE'..', CAST('..' AS DATE), 5L, 1.5D, 1.5BD.

    None: there are no literals of this type.
    """
    if name in _BITS_BY_INTEGER_TYPE:
        value = int(text)
        value.to_bytes(_BITS_BY_INTEGER_TYPE[name] // 8, "big", signed=True)
        return value
    if name == "DOUBLE":
        return float(text)
    if name == "FLOAT":
        return struct.unpack("<f", struct.pack("<f", float(text)))[0]
    if name == "DECIMAL":
        return _decimal(text, parameters)
    if name == "TIME":
        return time.fromisoformat(text)
    if name != "DATE" and name not in _TIMESTAMP_TYPES:
        return None
    nanos, has_clock, has_zone = parse_timestamp(text)
    if nanos % 1000:
        raise ValueError(
            "it has a higher precision than microseconds; compare with a plain string instead"
        )
    moment = _EPOCH + timedelta(microseconds=nanos // 1000)
    if name == "DATE":
        if has_clock:
            raise ValueError("a date has no time of day")
        return moment.date()
    if has_zone:
        if name == "TIMESTAMPNTZ":
            raise ValueError("TIMESTAMP_NTZ has no zone")
        return moment
    return moment.replace(tzinfo=None)


def _decimal(text: str, parameters: Sequence[int]) -> Decimal:
    value = Decimal(text)
    precision, scale = [*parameters, 0][:2] if parameters else (10, 0)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > scale or value.adjusted() >= precision - scale:
        raise ValueError(f"it does not fit decimal({precision}, {scale})")
    return value
