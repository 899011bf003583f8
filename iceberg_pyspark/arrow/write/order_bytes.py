"""Encodes columns as byte strings of equal length whose order is the order of the values.

Specification, "Sorting": NaN is the greatest number, -0.0 is less than 0.0, decimals compare by
value and strings by their bytes. Only a prefix of a string is encoded, so different values may have
equal bytes; values with different bytes are ordered as their bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.integers import as_longs
from iceberg_pyspark.errors import InvalidRequestError

Bytes: TypeAlias = NDArray[np.uint8]
"""An array with one row of bytes per value; its shape is (values, bytes per value)."""

_SIGN = np.uint64(1 << 63)


def order_bytes(
    column: pa.Array, *, is_descending: bool, nulls_first: bool, text_bytes: int
) -> Bytes:
    """Return a null flag and the bytes of each value; at most `text_bytes` bytes of a text."""
    parts = _value_bytes(column, text_bytes)
    if is_descending:
        parts = ~parts
    is_null = np.zeros(len(column), np.bool_)
    if column.null_count:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        parts = np.where(is_null[:, None], np.uint8(0), parts)
    flags = (~is_null if nulls_first else is_null).astype(np.uint8)
    return np.concatenate([flags[:, None], parts], axis=1)


def is_whole(type_: pa.DataType, text_bytes: int) -> bool:
    """Return whether two values of the type with the same bytes are always equal."""
    if pa.types.is_fixed_size_binary(type_):
        return bool(type_.byte_width <= text_bytes)
    return not _is_text(type_)


def as_texts(rows: Bytes) -> NDArray[np.bytes_]:
    """Return each row as a numpy byte string; byte strings compare in the order of the rows."""
    texts: NDArray[np.bytes_] = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)
    return texts


def ordered_floats(column: pa.Array) -> pa.Array:
    """Return integers in the order of a column's floating-point numbers; null stays null."""
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    bits = _float_bits(column)
    return pa.array((bits ^ _SIGN).view(np.int64), mask=mask)


def _value_bytes(column: pa.Array, text_bytes: int) -> Bytes:
    type_ = column.type
    if pa.types.is_boolean(type_):
        flags = column.fill_null(False).to_numpy(zero_copy_only=False)
        one: Bytes = flags.astype(np.uint8)[:, None]
        return one
    if pa.types.is_floating(type_):
        return _big_endian(_float_bits(column))
    if pa.types.is_decimal128(type_):
        return _decimal_bytes(column)
    if _is_text(type_):
        return _first_bytes(column.cast(pa.large_binary()), text_bytes)
    if pa.types.is_fixed_size_binary(type_):
        return _first_bytes(column.cast(pa.large_binary()), min(text_bytes, type_.byte_width))
    if pa.types.is_integer(type_) or pa.types.is_temporal(type_):
        return _big_endian(as_longs(column).view(np.uint64) ^ _SIGN)
    raise InvalidRequestError(f"rows cannot be sorted by a column of type {type_}")


def _is_text(type_: pa.DataType) -> bool:
    is_large = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
    return bool(is_large or pa.types.is_string(type_) or pa.types.is_binary(type_))


def _big_endian(numbers: NDArray[np.uint64]) -> Bytes:
    big_endian: Bytes = numbers.astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    return big_endian


def _float_bits(column: pa.Array) -> NDArray[np.uint64]:
    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    # all NaNs become one value
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    bits = numbers.view(np.uint64)
    ordered_bits: NDArray[np.uint64] = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return ordered_bits


def _decimal_bytes(column: pa.Array) -> Bytes:
    plain = pa.concat_arrays([pc.fill_null(column, pa.scalar(Decimal(0), column.type))])
    start, size = plain.offset * 16, len(plain) * 16
    words = np.frombuffer(plain.buffers()[1], "<u8", count=size // 8, offset=start).reshape(-1, 2)
    high = _big_endian(words[:, 1] ^ _SIGN)
    return np.concatenate([high, _big_endian(words[:, 0].copy())], axis=1)


def _first_bytes(column: pa.Array, count: int) -> Bytes:
    plain = column.fill_null(b"")
    prefixes = np.zeros((len(plain), count), np.uint8)
    if not len(plain):
        return prefixes
    buffers: list[Any] = plain.buffers()
    ends = np.frombuffer(buffers[1], np.int64, count=len(plain) + 1, offset=plain.offset * 8)
    starts, sizes = ends[:-1], ends[1:] - ends[:-1]
    if buffers[2] is None:
        return prefixes
    data = np.frombuffer(buffers[2], np.uint8)
    for place in range(min(count, int(sizes.max()))):
        has = np.flatnonzero(sizes > place)
        prefixes[has, place] = data[starts[has] + place]
    return prefixes
