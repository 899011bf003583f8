"""Decodes the bounds of many files at once: binary single values become typed Arrow arrays.

Specification, Appendix D "Binary single-value serialization", including the widths of values
written before a type promotion. `expressions/evaluation.decode_bound` is the counterpart for one
value; tests check that both agree. A bound that cannot be read or is NaN becomes null, and null
means unknown.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.evaluation import decode_bound, java_uuid_key
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import decimal_of

Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_MICROS_PER_DAY = 86_400_000_000
_DECIMAL_BYTES = 16


def decode_bounds(bounds: pa.Array, type_: types.Type) -> pa.Array:
    """Decode the bounds of a column to an Arrow type that compares in the order of `type_`."""
    match type_:
        case types.IntegerType() | types.DateType():
            return _numbers(bounds, {4: "<i4"}, np.int64)
        case types.LongType() | types.TimeType():
            return _numbers(bounds, {4: "<i4", 8: "<i8"}, np.int64)
        case types.TimestampType():
            return _times(bounds, _MICROS_PER_DAY)
        case types.TimestampNsType():
            return _times(bounds, _MICROS_PER_DAY * 1000)
        case types.TimestamptzType() | types.TimestamptzNsType():
            return _numbers(bounds, {8: "<i8"}, np.int64)
        case types.FloatType():
            return _numbers(bounds, {4: "<f4"}, np.float64)
        case types.DoubleType():
            return _numbers(bounds, {4: "<f4", 8: "<f8"}, np.float64)
        case types.DecimalType(precision=precision, scale=scale):
            return _decimals(bounds, precision, scale)
        case types.StringType():
            try:
                return bounds.cast(pa.string())
            except pa.ArrowInvalid:
                return _one_by_one(bounds, type_, pa.string())
        case types.UUIDType():
            return pc.if_else(pc.equal(pc.binary_length(bounds), 16), bounds, None)
        case types.FixedType() | types.BinaryType():
            return bounds
        case types.BooleanType():
            return _one_by_one(bounds, type_, pa.bool_())
        case _:
            # bounds of a variant are of its shredded fields, those of a geometry are box corners
            return pa.nulls(len(bounds), pa.bool_())


def comparable_values(values: pa.Array, type_: types.Type) -> pa.Array:
    """Return partition values as the Arrow type that `decode_bounds` returns for their type."""
    match type_:
        case types.DecimalType(scale=scale):
            return values.cast(pa.decimal128(38, scale))
        case types.StringType():
            return values.cast(pa.string())
        case types.BooleanType():
            return values.cast(pa.bool_())
        case types.FloatType() | types.DoubleType():
            return values.cast(pa.float64())
        case types.BinaryType() | types.FixedType() | types.UUIDType():
            return values
        case _:
            return values.cast(pa.int64())


def arrow_literal(type_: types.Type, value: Any) -> pa.Scalar:
    """Return a literal in the Arrow type that `decode_bounds` returns for its type."""
    match type_:
        case types.DecimalType(scale=scale):
            return pa.scalar(value, pa.decimal128(38, scale))
        case types.FloatType() | types.DoubleType():
            return pa.scalar(value, pa.float64())
        case _ if isinstance(value, int) and not isinstance(value, bool):
            return pa.scalar(value, pa.int64())
        case _:
            return pa.scalar(value)


def java_uuid_keys(bounds: pa.Array) -> pa.Array:
    """Return the `expressions/evaluation.java_uuid_key` of each uuid bound."""
    return pa.array(
        [None if b is None else java_uuid_key(b) for b in bounds.to_pylist()], pa.binary()
    )


def _one_by_one(bounds: pa.Array, type_: types.Type, arrow_type: pa.DataType) -> pa.Array:
    return pa.array([decode_bound(type_, b) for b in bounds.to_pylist()], arrow_type)


def _layout(bounds: pa.Array) -> tuple[Numbers, Numbers, Numbers]:
    """Return the start of each value, its length (-1 for null), and all bytes."""
    _, offsets_buffer, data_buffer = bounds.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[
        bounds.offset : bounds.offset + len(bounds) + 1
    ]
    lengths = np.diff(offsets)
    if bounds.null_count:
        lengths = np.where(_bools(pc.is_null(bounds)), -1, lengths)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    return offsets[:-1], lengths, data


def _bytes_of(starts: Numbers, width: int, data: Numbers) -> Numbers:
    """Return a matrix whose rows are the values of `width` bytes at each start."""
    if len(starts) and starts[-1] - starts[0] == width * (len(starts) - 1):
        # one value follows the other, so a million of them are no million copies
        return data[starts[0] : starts[-1] + width].reshape(-1, width)
    return np.ascontiguousarray(data[starts[:, None] + np.arange(width)])


def _numbers(bounds: pa.Array, formats: dict[int, str], dtype: Any) -> pa.Array:
    starts, lengths, data = _layout(bounds)
    out = np.zeros(len(bounds), dtype)
    is_known = np.zeros(len(bounds), np.bool_)
    for width, format_ in formats.items():
        at = lengths == width
        if at.all():
            out = _bytes_of(starts, width, data).view(format_).reshape(-1).astype(dtype)
            is_known = at
        elif at.any():
            out[at] = _bytes_of(starts[at], width, data).view(format_).reshape(-1)
            is_known |= at
    if np.issubdtype(dtype, np.floating):
        is_known &= ~np.isnan(out)
    return pa.array(out, mask=~is_known)


def _times(bounds: pa.Array, per_day: int) -> pa.Array:
    """Decode timestamps; a value of 4 bytes is a date that was promoted."""
    _, lengths, _ = _layout(bounds)
    out = _numbers(bounds, {4: "<i4", 8: "<i8"}, np.int64)
    is_promoted = lengths == 4
    if not is_promoted.any():
        return out
    numbers = out.fill_null(0).to_numpy()
    # days beyond the range of timestamps become unknown instead of wrapping around
    fits = ~is_promoted | (np.abs(numbers) <= np.iinfo(np.int64).max // per_day)
    values = np.where(
        is_promoted & fits, numbers * np.where(is_promoted & fits, per_day, 1), numbers
    )
    return pa.array(values, mask=_bools(pc.is_null(out)) | ~fits)


def _decimals(bounds: pa.Array, precision: int, scale: int) -> pa.Array:
    """Decode two's complement of any width, most significant byte first.

    A bound with more digits than the type is null, because the bound says nothing about its values.
    """
    starts, lengths, data = _layout(bounds)
    out = np.zeros((len(bounds), _DECIMAL_BYTES), np.uint8)
    for width in range(1, _DECIMAL_BYTES + 1):
        at = lengths == width
        if at.any():
            unscaled = _bytes_of(starts[at], width, data)
            sign = np.where(unscaled[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
            wide_bytes = np.repeat(sign, _DECIMAL_BYTES, axis=1)
            wide_bytes[:, :width] = unscaled[:, ::-1]
            out[at] = wide_bytes
    is_known = (lengths >= 1) & (lengths <= _DECIMAL_BYTES)
    values = pa.Array.from_buffers(
        pa.decimal128(38, scale), len(bounds), [None, pa.py_buffer(out.tobytes())]
    )
    greatest = 10**precision - 1
    most, least = (pa.scalar(decimal_of(n, scale), values.type) for n in (greatest, -greatest))
    fits = pc.and_(pc.less_equal(values, most), pc.greater_equal(values, least))
    return pc.if_else(pc.and_(pa.array(is_known), fits), values, None)


def _bools(array: pa.Array) -> Numbers:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
