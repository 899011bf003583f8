"""Variant values: from Python objects and JSON texts to the encoded bytes, and back.

Parquet specification, "Variant Encoding", version 1. A variant is two byte strings: the metadata,
which is a dictionary of field names, and the value. The Python objects are None, bool, int, float,
Decimal, str, bytes, date, time, datetime (with and without a zone), UUID, lists and dicts.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.values import decimal_of, unscaled_value

NULL = b"\x00"
"""The encoded null."""

EMPTY_METADATA = b"\x11\x00\x00"
"""The metadata of a value without field names."""

_EPOCH = dt.date(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_VERSION = 1
_SORTED = 16
_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
(
    NULL_,
    BOOLEAN,
    _FALSE,
    INT8,
    INT16,
    INT32,
    INT64,
    DOUBLE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DATE,
    TIMESTAMPTZ,
    TIMESTAMP,
    FLOAT,
    BINARY,
    TEXT,
    TIME,
    TIMESTAMPTZ_NS,
    TIMESTAMP_NS,
    UUID_,
) = range(21)
"""The types of primitive values; `BOOLEAN` is that of true, which stands for both here."""
OBJECT, ARRAY = 64, 65
"""Other types than primitive ones, which have no numbers in the specification."""

_LAYOUTS = {
    INT8: "<b",
    INT16: "<h",
    INT32: "<i",
    INT64: "<q",
    DOUBLE: "<d",
    FLOAT: "<f",
    DATE: "<i",
    TIMESTAMPTZ: "<q",
    TIMESTAMP: "<q",
    TIME: "<q",
    TIMESTAMPTZ_NS: "<q",
    TIMESTAMP_NS: "<q",
}
_DECIMAL_SIZES = {DECIMAL4: 4, DECIMAL8: 8, DECIMAL16: 16}


def encode_number(type_id: int, value: float) -> bytes:
    """Return an encoded number: days of a date, or micro- or nanoseconds of a time."""
    return bytes([type_id << 2]) + struct.pack(_LAYOUTS[type_id], value)


def encode_decimal(value: Decimal, scale: int, precision: int) -> bytes:
    """Return an encoded decimal, in the width that the precision needs."""
    type_id = DECIMAL4 if precision <= 9 else DECIMAL8 if precision <= 18 else DECIMAL16
    # the unscaled number is exact, whatever the precision of the decimal context
    shift = scale + int(value.as_tuple().exponent)
    unscaled = int(unscaled_value(value) * 10**shift)
    data = unscaled.to_bytes(_DECIMAL_SIZES[type_id], "little", signed=True)
    return bytes([type_id << 2, scale]) + data


def encode_boolean(value: bool) -> bytes:
    """Return an encoded boolean."""
    return bytes([(BOOLEAN if value else _FALSE) << 2])


def encode_text(text: str) -> bytes:
    """Return an encoded text."""
    data = text.encode()
    if len(data) < 64:
        return bytes([len(data) << 2 | _SHORT_TEXT]) + data
    return bytes([TEXT << 2]) + struct.pack("<I", len(data)) + data


def encode_bytes(data: bytes) -> bytes:
    """Return encoded bytes."""
    return bytes([BINARY << 2]) + struct.pack("<I", len(data)) + data


def encode_uuid(data: bytes) -> bytes:
    """Return an encoded UUID of 16 bytes."""
    return bytes([UUID_ << 2]) + data


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The dictionary of field names in a variant's metadata."""

    texts: tuple[bytes, ...]
    ids: Mapping[bytes, int]

    @staticmethod
    def of(metadata: bytes) -> FieldNames:
        """Return the names in encoded metadata."""
        size = (metadata[0] >> 6) + 1
        count = _uint(metadata, 1, size)
        start = 1 + size * (count + 2)
        ends = [_uint(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
        texts = tuple(metadata[start + a : start + b] for a, b in itertools.pairwise(ends))
        return FieldNames(texts, {text: i for i, text in enumerate(texts)})

    @staticmethod
    def sorted(names: Sequence[bytes]) -> FieldNames:
        """Return a dictionary of these names in the order of their bytes."""
        texts = tuple(sorted(names))
        return FieldNames(texts, {text: i for i, text in enumerate(texts)})

    def encoded(self) -> bytes:
        """Return the metadata with these names, which must be sorted."""
        ends = list(itertools.accumulate(map(len, self.texts), initial=0))
        size = _width(max(ends[-1], len(self.texts)))
        header = (size - 1) << 6 | _SORTED | _VERSION
        numbers = (n.to_bytes(size, "little") for n in (len(self.texts), *ends))
        return b"".join((bytes([header]), *numbers, *self.texts))


def _uint(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError("a number reaches past the end")
    return int.from_bytes(data[at : at + size], "little")


def _uints(data: bytes, at: int, size: int, count: int) -> Sequence[int]:
    if at + size * count > len(data):
        raise IndexError("numbers reach past the end")
    if size == 1:
        return data[at : at + count]
    return [
        int.from_bytes(data[i : i + size], "little") for i in range(at, at + size * count, size)
    ]


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def object_fields(value: bytes, names: FieldNames) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names and encoded values of an encoded object."""
    header = value[0] >> 2
    if value[0] & 3 != _OBJECT:
        raise InvalidMetadataError("a shredded variant has a value beside its fields: no object")
    offset_size, id_size = (header & 3) + 1, (header >> 2 & 3) + 1
    count_size = 4 if header >> 4 & 1 else 1
    count = _uint(value, 1, count_size)
    ids = 1 + count_size
    offsets = ids + count * id_size
    start = offsets + (count + 1) * offset_size
    begins = _uints(value, offsets, offset_size, count + 1)
    # values may be stored in another order than fields: each value ends where the next one begins
    ends = dict(itertools.pairwise(sorted(begins)))
    for name, begin in zip(_uints(value, ids, id_size, count), begins, strict=False):
        yield names.texts[name], value[start + begin : start + ends[begin]]


def array_elements(value: bytes) -> Iterator[bytes]:
    """Yield the encoded elements of an encoded array."""
    header = value[0] >> 2
    offset_size = (header & 3) + 1
    count_size = 4 if header >> 2 & 1 else 1
    count = _uint(value, 1, count_size)
    offsets = 1 + count_size
    start = offsets + (count + 1) * offset_size
    for a, b in itertools.pairwise(_uints(value, offsets, offset_size, count + 1)):
        yield value[start + a : start + b]


def _offsets(values: Sequence[bytes]) -> tuple[int, bytes]:
    ends = list(itertools.accumulate(map(len, values), initial=0))
    size = _width(ends[-1])
    return size, b"".join(end.to_bytes(size, "little") for end in ends)


def encode_object(fields: Mapping[bytes, bytes], names: FieldNames) -> bytes:
    """Return an object of encoded values by name; `names` must have each name."""
    in_order = sorted(fields)
    ids = [names.ids[name] for name in in_order]
    values = [fields[name] for name in in_order]
    id_size = _width(max(ids, default=0))
    offset_size, offsets = _offsets(values)
    large = len(ids) > 255
    header = (large << 4) | (id_size - 1) << 2 | (offset_size - 1)
    return b"".join(
        (
            bytes([header << 2 | _OBJECT]),
            len(ids).to_bytes(4 if large else 1, "little"),
            *(i.to_bytes(id_size, "little") for i in ids),
            offsets,
            *values,
        )
    )


def encode_array(values: Sequence[bytes]) -> bytes:
    """Return an array of encoded values."""
    offset_size, offsets = _offsets(values)
    large = len(values) > 255
    header = (large << 2) | (offset_size - 1)
    count = len(values).to_bytes(4 if large else 1, "little")
    return b"".join((bytes([header << 2 | _ARRAY]), count, offsets, *values))


def variant_of(value: Any) -> tuple[bytes, bytes]:
    """Return the metadata and the value of a Python object.

    Raises `InvalidRequestError` for an object of another type, and for a number that no variant
    can hold.

    >>> [part.hex() for part in variant_of({"a": 1})]
    ['1101000161', '020100000' '20c01']
    """
    try:
        names = FieldNames.sorted([*set(_names_in(value))])
        return names.encoded(), _encoded(value, names)
    except RecursionError as e:
        raise InvalidRequestError("a variant is nested too deeply: flatten it") from e


def variant_of_json(text: str) -> tuple[bytes, bytes]:
    """Return the metadata and the value of a JSON text.

    Numbers without exponent are integers or decimals while they have at most 38 digits, others are
    doubles, as in Spark. Raises `InvalidRequestError` for a text that is not JSON.
    """
    try:
        value = json.loads(
            text,
            parse_float=_json_number,
            parse_int=_json_number,
            parse_constant=_no_number,
            object_pairs_hook=_distinct_names,
        )
    except (ValueError, RecursionError) as e:
        raise InvalidRequestError(f"not a JSON text: {e}; correct it, or write null") from e
    return variant_of(value)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")


def _json_number(text: str) -> int | Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    number = Decimal(text)
    _, digits, exponent = number.as_tuple()
    scale = -int(exponent)
    if len(digits) > 38 or scale > 38:
        return float(text)
    return number if scale else int(text)


def _distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has a name twice")
    return fields


def _names_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(name, str):
                raise InvalidRequestError(
                    f"the names of a variant's fields are texts, not {type(name).__name__}: "
                    "convert them"
                )
            yield name.encode()
            yield from _names_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names_in(item)


def _encoded(value: Any, names: FieldNames) -> bytes:
    match value:
        case None:
            return NULL
        case bool():
            return encode_boolean(value)
        case int():
            return _encoded_integer(value)
        case float():
            return encode_number(DOUBLE, value)
        case Decimal():
            return _encoded_decimal(value)
        case str():
            return encode_text(value)
        case bytes():
            return encode_bytes(value)
        case dt.datetime():
            zone = dt.timezone.utc if value.tzinfo is not None else None
            micros = (value - dt.datetime(1970, 1, 1, tzinfo=zone)) // _MICRO
            return encode_number(TIMESTAMP if zone is None else TIMESTAMPTZ, micros)
        case dt.date():
            return encode_number(DATE, (value - _EPOCH).days)
        case dt.time() if value.tzinfo is None:
            since = dt.datetime.combine(_EPOCH, value) - dt.datetime.combine(_EPOCH, dt.time())
            return encode_number(TIME, since // _MICRO)
        case UUID():
            return encode_uuid(value.bytes)
        case Mapping():
            return encode_object({k.encode(): _encoded(v, names) for k, v in value.items()}, names)
        case list() | tuple():
            return encode_array([_encoded(v, names) for v in value])
    raise InvalidRequestError(
        f"a variant holds no Python object of type {type(value).__name__}: convert it to a dict, "
        "list, text or number"
    )


def _encoded_integer(value: int) -> bytes:
    for type_id, bits in ((INT8, 7), (INT16, 15), (INT32, 31), (INT64, 63)):
        if -(1 << bits) <= value < 1 << bits:
            return encode_number(type_id, value)
    return _encoded_decimal(Decimal(value))


def _encoded_decimal(value: Decimal) -> bytes:
    _, digits, exponent = value.as_tuple()
    if isinstance(exponent, int):
        scale = max(-exponent, 0)
        precision = max(len(digits) + max(exponent, 0), scale)
        if precision <= 38:
            return encode_decimal(value, scale, precision)
    raise InvalidRequestError(
        f"a variant holds decimals of at most 38 digits, not {value}: convert it to float or text"
    )


def metadata_length(data: bytes) -> int:
    """Return the length of the metadata at the start of bytes, or raise `InvalidMetadataError`."""
    try:
        size = (data[0] >> 6) + 1
        count = _uint(data, 1, size)
        return 1 + size * (count + 2) + _uint(data, 1 + size * (count + 1), size)
    except IndexError as e:
        raise InvalidMetadataError(f"a damaged variant: {e}") from e


def python_at(metadata: bytes, value: bytes, path: Sequence[str]) -> Any:
    """Return the Python object at a path of names in a variant; None if there is none.

    Raises `InvalidMetadataError` for damaged bytes.
    """
    try:
        names = FieldNames.of(metadata)
        for name in path:
            if value[0] & 3 != _OBJECT:
                return None
            found = dict(object_fields(value, names)).get(name.encode())
            if found is None:
                return None
            value = found
        return None if value[0] & 3 in (_OBJECT, _ARRAY) else _decoded(value, names)
    except (IndexError, KeyError, ValueError, struct.error, OverflowError) as e:
        raise InvalidMetadataError(f"a damaged variant: {type(e).__name__}: {e}") from e


def python_of(metadata: bytes, value: bytes) -> Any:
    """Return the Python object of a variant; raise `InvalidMetadataError` for damaged bytes."""
    try:
        return _decoded(value, FieldNames.of(metadata))
    except (IndexError, KeyError, ValueError, struct.error, RecursionError, OverflowError) as e:
        raise InvalidMetadataError(f"a damaged variant: {type(e).__name__}: {e}") from e


def _decoded(value: bytes, names: FieldNames) -> Any:
    kind, header = value[0] & 3, value[0] >> 2
    if kind == _OBJECT:
        return {n.decode(): _decoded(v, names) for n, v in object_fields(value, names)}
    if kind == _ARRAY:
        return [_decoded(v, names) for v in array_elements(value)]
    return _primitive(header if kind == _PRIMITIVE else TEXT, value)


def _taken(value: bytes, start: int, size: int) -> bytes:
    if start + size > len(value):
        raise IndexError("a value reaches past the end")
    return value[start : start + size]


def type_of(value: bytes) -> int:
    """Return the type of an encoded value, which may be one that this module does not know."""
    kind, header = value[0] & 3, value[0] >> 2
    if kind == _PRIMITIVE:
        return BOOLEAN if header == _FALSE else header
    return TEXT if kind == _SHORT_TEXT else OBJECT if kind == _OBJECT else ARRAY


def stored_value(value: bytes) -> Any:
    """Return the Python object of an encoded value that is primitive.

    It is a number for dates (days) and times (micro- or nanoseconds), and bytes for a UUID. Raises
    `UnsupportedFeatureError` for an unknown type, and errors of Python for damaged bytes.
    """
    kind, type_id = value[0] & 3, value[0] >> 2
    if kind == _SHORT_TEXT:
        return _taken(value, 1, type_id).decode()
    if type_id in (NULL_, BOOLEAN, _FALSE):
        return None if type_id == NULL_ else type_id == BOOLEAN
    if type_id in (BINARY, TEXT):
        data = _taken(value, 5, _uint(value, 1, 4))
        return data if type_id == BINARY else data.decode()
    if type_id == UUID_:
        return _taken(value, 1, 16)
    if (size := _DECIMAL_SIZES.get(type_id)) is not None:
        unscaled = int.from_bytes(_taken(value, 2, size), "little", signed=True)
        return decimal_of(unscaled, value[1])
    layout = _LAYOUTS.get(type_id)
    if layout is None:
        raise UnsupportedFeatureError(
            f"a variant has a value of the type {type_id}, which this release does not know; "
            "select the other columns"
        )
    (number,) = struct.unpack_from(layout, value, 1)
    return number


def _primitive(type_id: int, value: bytes) -> Any:
    number = stored_value(value)
    if type_id == UUID_:
        return UUID(bytes=number)
    if type_id in (TIMESTAMPTZ_NS, TIMESTAMP_NS):
        number, nanos = divmod(number, 1000)
        if nanos:
            raise UnsupportedFeatureError(
                "a variant has a time in nanoseconds, which Python's datetime cannot hold; "
                "read the column as bytes"
            )
    if type_id == DATE:
        return _EPOCH + dt.timedelta(days=number)
    if type_id == TIME:
        return (dt.datetime(1970, 1, 1) + number * _MICRO).time()  # noqa: DTZ001
    if type_id in (TIMESTAMPTZ, TIMESTAMPTZ_NS):
        return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + number * _MICRO
    if type_id in (TIMESTAMP, TIMESTAMP_NS):
        return dt.datetime(1970, 1, 1) + number * _MICRO  # noqa: DTZ001
    return number


def comparable_of(metadata: bytes, value: bytes) -> bytes:
    """Return bytes that are equal exactly if two variants hold the same values.

    Whole and decimal numbers are equal whatever their widths and scales, fields in any order; other
    types differ. All NaN are equal, 0.0 and -0.0 differ. Raise `InvalidMetadataError` for damaged
    bytes.
    """
    try:
        return _comparable(value, FieldNames.of(metadata))
    except (IndexError, KeyError, ValueError, struct.error, RecursionError, OverflowError) as e:
        raise InvalidMetadataError(f"a damaged variant: {type(e).__name__}: {e}") from e


def _comparable(value: bytes, names: FieldNames) -> bytes:
    kind, header = value[0] & 3, value[0] >> 2
    if kind == _OBJECT:
        fields = sorted(object_fields(value, names))
        return _joined(b"{", [part for n, v in fields for part in (n, _comparable(v, names))])
    if kind == _ARRAY:
        return _joined(b"[", [_comparable(v, names) for v in array_elements(value)])
    decoded = _decoded(value, names)
    if isinstance(decoded, str):
        return b"t" + decoded.encode()
    if isinstance(decoded, int | Decimal) and not isinstance(decoded, bool):
        sign, digits, exponent = Decimal(decoded).as_tuple()
        text = "".join(map(str, digits)).lstrip("0")
        shorter = text.rstrip("0")
        power = int(exponent) + len(text) - len(shorter)
        return f"#{'-' if sign and shorter else ''}{shorter}e{power if shorter else 0}".encode()
    if decoded != decoded:
        return b"nan" + bytes([header])
    return b"=" + bytes([header]) + (decoded if isinstance(decoded, bytes) else value[1:])


def _joined(tag: bytes, parts: Sequence[bytes]) -> bytes:
    return tag + b"".join(len(p).to_bytes(4, "big") + p for p in parts)
