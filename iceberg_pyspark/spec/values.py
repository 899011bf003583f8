"""Values of Iceberg types, and their single-value binary and JSON forms (Appendix D).

Everywhere outside Arrow, this package represents values as these Python types:

- boolean: `bool`
- int, long: `int`
- float, double: `float`
- decimal: `decimal.Decimal` with exactly the type's scale
- date: `int` (days)
- time, timestamp, timestamptz: `int` (microseconds)
- timestamp_ns, timestamptz_ns: `int` (nanoseconds)
- string: `str`
- uuid: `bytes` (16, big-endian)
- fixed, binary, geometry, geography, variant: `bytes`
- struct: `dict` by field id
- list: `list`
- map: list of (key, value)

The values compare and hash in the order of the specification, except NaN and -0.0, which callers
must handle.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock_time
from decimal import Decimal, InvalidOperation
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.json_fields import is_text, short_text

_EPOCH_DATE = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - zone-free arithmetic; zones are in the types
_MICROSECOND = timedelta(microseconds=1)


def _pack(code: str) -> Callable[[Any], bytes]:
    packer = struct.Struct(code)
    return packer.pack


def twos_complement(unscaled: int) -> bytes:
    """Return the unscaled value of a decimal as big-endian two's complement in the fewest bytes.

    >>> twos_complement(127).hex(), twos_complement(128).hex()
    ('7f', '0080')
    """
    # the magnitude and one sign bit
    length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return unscaled.to_bytes(length, "big", signed=True)


def unscaled_value(value: Decimal) -> int:
    """Return the unscaled integer of a decimal: 14.20 -> 1420.

    >>> unscaled_value(Decimal("-14.20"))
    -1420
    """
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    return -unscaled if sign else unscaled


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return the decimal with an unscaled integer and a scale, whatever the context's precision.

    >>> decimal_of(-1420, 2)
    Decimal('-14.20')
    """
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


_TO_BYTES: Mapping[type[types.PrimitiveType], Callable[[Any], bytes]] = {
    types.BooleanType: lambda v: b"\x01" if v else b"\x00",
    types.IntegerType: _pack("<i"),
    types.LongType: _pack("<q"),
    types.FloatType: _pack("<f"),
    types.DoubleType: _pack("<d"),
    types.DecimalType: lambda value: twos_complement(unscaled_value(value)),
    types.DateType: _pack("<i"),
    types.TimeType: _pack("<q"),
    types.TimestampType: _pack("<q"),
    types.TimestamptzType: _pack("<q"),
    types.TimestampNsType: _pack("<q"),
    types.TimestamptzNsType: _pack("<q"),
    types.StringType: lambda v: v.encode("utf-8"),
    types.UUIDType: bytes,
    types.FixedType: bytes,
    types.BinaryType: bytes,
    types.GeometryType: bytes,
    types.GeographyType: bytes,
    types.VariantType: bytes,
}


def value_to_bytes(type_: types.Type, value: Any) -> bytes:
    """Return the binary single-value form, which bounds and partition summaries use.

    >>> value_to_bytes(DecimalType(9, 2), Decimal("1.28")).hex()
    '0080'
    """
    to_bytes = _TO_BYTES.get(type(type_))  # type: ignore[arg-type]
    if to_bytes is None:
        raise InvalidMetadataError(f"{type_} has no binary single-value form")
    return to_bytes(value)


def value_from_bytes(type_: types.Type, data: bytes) -> Any:
    """Parse a binary single value of the type; raise `InvalidMetadataError` for invalid bytes.

    Widths from before a type promotion are accepted: 4 bytes for long, double and timestamps (from
    int, float, date), any width for decimals (Appendix D, and "Schema Evolution").
    """
    size = len(data)
    try:
        match type_:
            case types.BooleanType():
                return data != b"\x00"
            case types.IntegerType() | types.DateType():
                return int(struct.unpack("<i", data)[0])
            case types.LongType() | types.TimeType():
                return int.from_bytes(_check_size(data, 4, 8), "little", signed=True)
            case types.TimestampType() | types.TimestampNsType() if size == 4:
                days = int.from_bytes(data, "little", signed=True)
                per_day = 86_400_000_000
                since = days * (
                    per_day if isinstance(type_, types.TimestampType) else per_day * 1000
                )
                if not -(2**63) <= since < 2**63:
                    raise ValueError(f"day {days} is out of range")
                return since
            case (
                types.TimestampType()
                | types.TimestamptzType()
                | types.TimestampNsType()
                | types.TimestamptzNsType()
            ):
                return int(struct.unpack("<q", data)[0])
            case types.FloatType():
                return float(struct.unpack("<f", data)[0])
            case types.DoubleType():
                return float(struct.unpack("<f" if size == 4 else "<d", data)[0])
            case types.DecimalType(precision=precision, scale=scale):
                if not data:
                    raise ValueError("no bytes, but zero has one byte")
                unscaled = int.from_bytes(data, "big", signed=True)
                if abs(unscaled) >= 10**precision:
                    raise ValueError(f"more than {precision} digits")
                return decimal_of(unscaled, scale)
            case types.StringType():
                return data.decode("utf-8")
            case types.UnknownType():
                return None
            case types.UUIDType():
                return bytes(_check_size(data, 16))
            case types.PrimitiveType():
                return bytes(data)
            case _:
                raise InvalidMetadataError(f"{type_} has no binary single-value form")
    except (struct.error, ValueError) as e:
        raise InvalidMetadataError(f"{data[:40].hex()} is not a binary {type_}: {e}") from e


def may_bound_uuids(low: bytes, high: bytes) -> bool:
    """Return whether all readers order the uuids from `low` to `high` in the same way.

    The specification orders uuids as unsigned bytes, but Java compares them as signed numbers
    (apache/iceberg#14216): for Java, nothing lies between bounds of different signs, and rows would
    be lost.
    """
    return low[0] >> 7 == high[0] >> 7


def _check_size(data: bytes, *sizes: int) -> bytes:
    if len(data) not in sizes:
        raise ValueError(f"{len(data)} bytes")
    return data


def value_to_json(type_: types.Type, value: Any) -> Any:
    """Return the JSON single-value form, which defaults and REST expressions use."""
    if value is None:
        return None
    match type_:
        case types.DecimalType():
            return f"{value:f}"
        case types.DateType():
            return (_EPOCH_DATE + timedelta(days=value)).isoformat()
        case types.TimeType():
            return _time_text(value)
        case types.TimestampType():
            return _timestamp_text(value)
        case types.TimestamptzType():
            return _timestamp_text(value) + "+00:00"
        case types.TimestampNsType():
            return _timestamp_text(value // 1000, value % 1000)
        case types.TimestamptzNsType():
            return _timestamp_text(value // 1000, value % 1000) + "+00:00"
        case types.UUIDType():
            return str(uuid.UUID(bytes=value))
        case types.FixedType() | types.BinaryType():
            return value.hex()
        case (
            types.GeometryType() | types.GeographyType() | types.VariantType() | types.UnknownType()
        ):
            raise InvalidMetadataError(f"{type_} has no JSON single-value form")
        case types.FloatType() | types.DoubleType():
            # other readers do not accept an integer as a floating point number
            return float(value)
        case types.StructType():
            # a missing field gets its own default; a field that is null does not
            return {
                str(f.field_id): value_to_json(f.type, value[f.field_id])
                for f in type_.fields
                if f.field_id in value
            }
        case types.ListType():
            return [value_to_json(type_.element_type, v) for v in value]
        case types.MapType():
            return {
                "keys": [value_to_json(type_.key_type, k) for k, _ in value],
                "values": [value_to_json(type_.value_type, v) for _, v in value],
            }
        case _:
            return value


def value_from_json(type_: types.Type, data: Any) -> Any:
    """Parse a JSON single value; raise `ValueError` or `TypeError` if the value is invalid."""
    if data is None:
        return None
    match type_:
        case types.BooleanType():
            return _of_kind(data, bool, "a boolean")
        case types.IntegerType() | types.LongType():
            bits = 31 if isinstance(type_, types.IntegerType) else 63
            number: int = _of_kind(data, int, "an integer")
            if not -(2**bits) <= number < 2**bits:
                raise ValueError(f"{number} does not fit {type_}")
            return number
        case types.FloatType() | types.DoubleType():
            return _float_from_json(type_, data)
        case types.DecimalType():
            return _decimal_from_json(type_, _of_kind(data, str, "a decimal in a string"))
        case types.StringType():
            return _of_kind(data, str, "a string")
        case types.ListType() | types.MapType() | types.StructType():
            return _nested_from_json(type_, data)
        case (
            types.UnknownType() | types.VariantType() | types.GeometryType() | types.GeographyType()
        ):
            raise ValueError(f"{type_} must default to null")
        case _:
            return _text_from_json(type_, _of_kind(data, str, "a string"))


def _of_kind(data: Any, kind: type, description: str) -> Any:
    wrong = isinstance(data, bool) and kind is not bool
    if wrong or not isinstance(data, kind) or (kind is str and not is_text(data)):
        raise TypeError(f"{short_text(data)} is not {description}")
    return data


def _float_from_json(type_: types.Type, data: Any) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise TypeError(f"{short_text(data)} is not a number")
    try:
        value = float(data)
        value_to_bytes(type_, value)
    except OverflowError as e:
        raise ValueError(f"{short_text(data)} does not fit {type_}") from e
    return value


def _decimal_from_json(type_: types.DecimalType, text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as e:
        raise ValueError(f"{text!r} is not a decimal") from e
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > type_.scale:
        raise ValueError(f"{text!r} does not have scale {type_.scale}")
    # check before the multiplication: the exponent may have any number of digits
    if value and value.adjusted() + 1 + type_.scale > type_.precision:
        raise ValueError(f"{text!r} has more digits than {type_}")
    if not value:
        return decimal_of(0, type_.scale)
    return decimal_of(unscaled_value(value) * 10 ** (type_.scale + exponent), type_.scale)


def _text_from_json(type_: types.Type, text: str) -> Any:
    match type_:
        case types.DateType():
            return (date.fromisoformat(text) - _EPOCH_DATE).days
        case types.TimeType():
            t = clock_time.fromisoformat(_pad_fraction(text)[0])
            return ((t.hour * 60 + t.minute) * 60 + t.second) * 1_000_000 + t.microsecond
        case types.TimestampType() | types.TimestamptzType():
            return _micros_of(text, zoned=isinstance(type_, types.TimestamptzType))[0]
        case types.TimestampNsType() | types.TimestamptzNsType():
            micros, nanos = _micros_of(text, zoned=isinstance(type_, types.TimestamptzNsType))
            if not -(2**63) <= micros * 1000 + nanos < 2**63:
                raise ValueError(f"{text!r} does not fit {type_}")
            return micros * 1000 + nanos
        case types.UUIDType():
            return uuid.UUID(text).bytes
        case types.FixedType(length=length):
            raw = bytes.fromhex(text)
            if len(raw) != length:
                raise ValueError(f"{text!r} is not {length} bytes")
            return raw
        case _:
            return bytes.fromhex(text)


def _nested_from_json(type_: types.StructType | types.ListType | types.MapType, data: Any) -> Any:
    match type_:
        case types.StructType():
            _of_kind(data, dict, "an object of values by field id")
            return {
                f.field_id: _part_from_json(f.name, f.type, data[str(f.field_id)], f.required)
                for f in type_.fields
                if str(f.field_id) in data
            }
        case types.ListType():
            _of_kind(data, list, "a list")
            return [
                _part_from_json(f"[{i}]", type_.element_type, v, type_.element_required)
                for i, v in enumerate(data)
            ]
        case types.MapType():
            _of_kind(data, dict, "an object of keys and values")
            keys, values = data.get("keys"), data.get("values")
            if not isinstance(keys, list) or not isinstance(values, list):
                raise TypeError(f"{short_text(data)} lacks a list of keys or of values")
            if len(keys) != len(values):
                raise ValueError(f"{len(keys)} keys, but {len(values)} values")
            if len({_key_text(k) for k in keys}) != len(keys):
                raise ValueError("a key occurs twice")
            return [
                (
                    _part_from_json(f"keys[{i}]", type_.key_type, k, True),
                    _part_from_json(f"values[{i}]", type_.value_type, v, type_.value_required),
                )
                for i, (k, v) in enumerate(zip(keys, values, strict=True))
            ]


def _key_text(data: Any) -> str:
    try:
        return json.dumps(data, sort_keys=True)
    except RecursionError:
        raise ValueError("a key is nested too deeply") from None


def _part_from_json(name: str, type_: types.Type, data: Any, required: bool) -> Any:
    if data is None and required:
        raise ValueError(f"{name}: null, and nulls are not allowed there")
    try:
        return value_from_json(type_, data)
    except (ValueError, TypeError) as e:
        raise type(e)(f"{name}: {e}") from e


def _time_text(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).time().isoformat()


def _timestamp_text(micros: int, nanos: int = 0) -> str:
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat()
    if nanos:
        text = (text if "." in text else text + ".000000") + f"{nanos:03d}"
    return text


def with_six_digits(text: str) -> tuple[str, str]:
    """Return a time's text with exactly six fraction digits, and the further digits.

    Python 3.10 parses only fractions of three or six digits.

    >>> with_six_digits("12:00:00.5+00:00"), with_six_digits("12:00:00.123456789")
    (('12:00:00.500000+00:00', ''), ('12:00:00.123456', '789'))
    """
    head, dot, tail = text.partition(".")
    rest = tail.lstrip("0123456789")
    fraction = tail[: len(tail) - len(rest)]
    return (f"{head}.{fraction[:6].ljust(6, '0')}{rest}" if dot else text), fraction[6:]


def _pad_fraction(text: str) -> tuple[str, int]:
    """Return the text with exactly six fraction digits, and the nanoseconds beyond them."""
    padded_text, further = with_six_digits(text)
    if len(further) > 3:
        raise ValueError(f"{text!r} has a higher precision than nanoseconds")
    return padded_text, int(further.ljust(3, "0"))


def _micros_of(text: str, *, zoned: bool) -> tuple[int, int]:
    padded_text, nanos = _pad_fraction(text.replace("Z", "+00:00"))
    time = datetime.fromisoformat(padded_text)
    if zoned != (time.tzinfo is not None):
        raise ValueError(f"{text!r} {'needs' if zoned else 'must not have'} a zone offset")
    if time.tzinfo is not None:
        time = time.astimezone(timezone.utc).replace(tzinfo=None)
    return (time - _EPOCH) // _MICROSECOND, nanos
