"""Reads variant columns of Parquet and Avro files as structs of metadata and value.

Parquet specification, "Variant Encoding" and "Variant Shredding". A shredded column stores parts of
its values in typed columns. This module merges the parts value by value, so the result always has
whole values. The field names of a value stay those of its metadata.
"""

from __future__ import annotations

import datetime as dt
import itertools
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError

Encode: TypeAlias = Callable[[Any], bytes]
_EPOCH = dt.date(1970, 1, 1)
_NULL = b"\x00"
_EXACT = Context(prec=76)


def check_variant(stored_type: pa.DataType, where: str) -> None:
    """Raise unless a file's column holds variants; `where` is the start of the message."""
    if isinstance(stored_type, pa.BaseExtensionType):
        stored_type = stored_type.storage_type
    names = {f.name for f in stored_type} if pa.types.is_struct(stored_type) else set()
    if "metadata" not in names or not names & {"value", "typed_value"}:
        raise InvalidMetadataError(f"{where} is stored as {stored_type}, the table has a variant")
    if "typed_value" in names:
        _VariantMerger.of(_plain(stored_type), where)


def variant_array(array: pa.Array) -> pa.Array:
    """Return a file's column as `VARIANT`; `check_variant` must have accepted its type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    metadata = array.field("metadata")
    values = _whole_values(array) if _has(array.type, "typed_value") else array.field("value")
    mask = array.is_null() if array.null_count else None
    if mask is not None:
        metadata, values = (pc.fill_null(_binary(c), b"") for c in (metadata, values))
    return pa.StructArray.from_arrays(
        [_binary(metadata), _binary(values)], fields=list(VARIANT), mask=mask
    )


def _binary(array: pa.Array) -> pa.Array:
    return array if array.type == pa.binary() else array.cast(pa.binary())


def _has(type_: pa.DataType, name: str) -> bool:
    return bool(type_.get_field_index(name) >= 0)


def _plain(type_: pa.DataType) -> pa.StructType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def _whole_values(array: pa.StructArray) -> pa.Array:
    merger = _VariantMerger.of(array.type, "a variant")
    names: dict[bytes, _Names] = {}
    values: list[bytes | None] = []
    for row in array.to_pylist():
        if row is None:
            values.append(None)
            continue
        metadata = row["metadata"]
        name_list = names.get(metadata)
        if name_list is None:
            name_list = names[metadata] = _Names.of(metadata)
        # a variant at the top must have a value, so a missing value is read as variant null
        values.append(merger.whole(row, name_list) or _NULL)
    return pa.array(values, pa.binary())


@dataclass(frozen=True, slots=True)
class _Names:
    """The dictionary of field names in a value's metadata."""

    texts: tuple[bytes, ...]
    ids: Mapping[bytes, int]

    @staticmethod
    def of(metadata: bytes) -> _Names:
        size = (metadata[0] >> 6) + 1
        count = _uint(metadata, 1, size)
        start = 1 + size * (count + 2)
        ends = [_uint(metadata, 1 + size * (i + 1), size) for i in range(count + 1)]
        texts = tuple(metadata[start + a : start + b] for a, b in itertools.pairwise(ends))
        return _Names(texts, {text: i for i, text in enumerate(texts)})


@dataclass(frozen=True, slots=True)
class _VariantMerger:
    """A merger of a group's `value` and `typed_value` to one value; None for a missing value."""

    convert: Callable[[Any, bytes | None, _Names], bytes] | None

    @staticmethod
    def of(group: pa.StructType, where: str) -> _VariantMerger:
        if not _has(group, "typed_value"):
            return _VariantMerger(None)
        type_ = group.field("typed_value").type
        if pa.types.is_struct(type_):
            return _VariantMerger(
                _object_of({f.name: _VariantMerger.of(f.type, where) for f in type_})
            )
        if pa.types.is_list(type_):
            return _VariantMerger(_array_of(_VariantMerger.of(type_.value_type, where)))
        encode = _primitive_of(type_, where)
        return _VariantMerger(lambda value, _rest, _names: encode(value))

    def whole(self, group: Mapping[str, Any], names: _Names) -> bytes | None:
        """Return the merged value of a group, or None if the group has no value."""
        rest = group.get("value")
        typed_value = group.get("typed_value")
        if self.convert is None or typed_value is None:
            return rest
        return self.convert(typed_value, rest, names)


def _object_of(
    fields: Mapping[str, _VariantMerger],
) -> Callable[[Any, bytes | None, _Names], bytes]:
    keys = {name: name.encode() for name in fields}

    def whole(typed: Mapping[str, Any], rest: bytes | None, names: _Names) -> bytes:
        values: dict[bytes, bytes] = dict(_fields(rest, names)) if rest is not None else {}
        for name, field in fields.items():
            value = None if typed[name] is None else field.whole(typed[name], names)
            if value is not None:
                values[keys[name]] = value
        return _encoded_object(values, names)

    return whole


def _array_of(element: _VariantMerger) -> Callable[[Any, bytes | None, _Names], bytes]:
    def whole(typed: list[Any], _rest: bytes | None, names: _Names) -> bytes:
        return _encoded_array([element.whole(e, names) or _NULL for e in typed])

    return whole


def _uint(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _fields(value: bytes, names: _Names) -> Iterator[tuple[bytes, bytes]]:
    """Yield the names and encoded values of an encoded object."""
    header = value[0] >> 2
    if value[0] & 3 != 2:
        raise InvalidMetadataError("a shredded variant has a value beside its fields: no object")
    offset_size, id_size = (header & 3) + 1, (header >> 2 & 3) + 1
    count_size = 4 if header >> 4 & 1 else 1
    count = _uint(value, 1, count_size)
    ids = 1 + count_size
    offsets = ids + count * id_size
    start = offsets + (count + 1) * offset_size
    begins = [_uint(value, offsets + i * offset_size, offset_size) for i in range(count + 1)]
    # values may be stored in another order than fields: each value ends where the next one begins
    ends = dict(itertools.pairwise(sorted(begins)))
    for i in range(count):
        name = names.texts[_uint(value, ids + i * id_size, id_size)]
        yield name, value[start + begins[i] : start + ends[begins[i]]]


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _offsets(values: list[bytes]) -> tuple[int, bytes]:
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value))
    size = _width(ends[-1])
    return size, b"".join(end.to_bytes(size, "little") for end in ends)


def _encoded_object(fields: Mapping[bytes, bytes], names: _Names) -> bytes:
    field_ids = sorted(fields)
    ids = [names.ids[name] for name in field_ids]
    values = [fields[name] for name in field_ids]
    id_size = _width(max(ids, default=0))
    offset_size, offsets = _offsets(values)
    large = len(ids) > 255
    header = (large << 4) | (id_size - 1) << 2 | (offset_size - 1)
    return b"".join(
        (
            bytes([header << 2 | 2]),
            len(ids).to_bytes(4 if large else 1, "little"),
            *(i.to_bytes(id_size, "little") for i in ids),
            offsets,
            *values,
        )
    )


def _encoded_array(values: list[bytes]) -> bytes:
    offset_size, offsets = _offsets(values)
    large = len(values) > 255
    header = (large << 2) | (offset_size - 1)
    count = len(values).to_bytes(4 if large else 1, "little")
    return b"".join((bytes([header << 2 | 3]), count, offsets, *values))


def _pack(type_id: int, layout: str) -> Encode:
    pack = struct.Struct(layout).pack
    head = bytes([type_id << 2])
    return lambda value: head + pack(value)


def _encoded_text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 64:
        return bytes([len(data) << 2 | 1]) + data
    return bytes([16 << 2]) + struct.pack("<I", len(data)) + data


def _decimal_of(precision: int, scale: int) -> Encode:
    type_id, size = (8, 4) if precision <= 9 else (9, 8) if precision <= 18 else (10, 16)
    head = bytes([type_id << 2, scale])

    def encode(value: Decimal) -> bytes:
        return head + int(_EXACT.scaleb(value, scale)).to_bytes(size, "little", signed=True)

    return encode


def _primitive_of(type_: pa.DataType, where: str) -> Encode:
    """Return the encoder of a typed column's values."""
    t = pa.types
    for matches, type_id, layout in (
        (t.is_int8, 3, "<b"),
        (t.is_int16, 4, "<h"),
        (t.is_int32, 5, "<i"),
        (t.is_int64, 6, "<q"),
        (t.is_float64, 7, "<d"),
        (t.is_float32, 14, "<f"),
    ):
        if matches(type_):
            return _pack(type_id, layout)
    if t.is_boolean(type_):
        return lambda value: b"\x04" if value else b"\x08"
    if t.is_string(type_):
        return _encoded_text
    if t.is_decimal(type_):
        return _decimal_of(type_.precision, type_.scale)
    if t.is_date32(type_):
        pack_number = _pack(11, "<i")
        return lambda value: pack_number((value - _EPOCH).days)
    if t.is_binary(type_):
        return lambda value: bytes([15 << 2]) + struct.pack("<I", len(value)) + value
    if isinstance(type_, pa.UuidType):
        return lambda value: bytes([20 << 2]) + value.bytes
    if t.is_timestamp(type_) and type_.unit == "us":
        pack_number = _pack(13 if type_.tz is None else 12, "<q")
        return lambda value: pack_number(_micros(value))
    raise UnsupportedFeatureError(
        f"{where} is shredded into a column of type {type_}, which cannot be read; select the "
        "other columns"
    )


def _micros(value: dt.datetime) -> int:
    start = dt.datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else dt.timezone.utc)
    return (value - start) // dt.timedelta(microseconds=1)
