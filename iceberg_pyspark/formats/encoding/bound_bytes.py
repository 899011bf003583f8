"""Converts column bounds between typed values and the binary single values of older manifests.

Specification, Appendix D "Binary Single-Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.evaluation import decode_bound
from iceberg_pyspark.formats.encoding.physical_types import logical_array, logical_type
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import twos_complement

_NUMBERS: Mapping[type[types.Type], tuple[np.dtype[Any], pa.DataType]] = {
    class_: (np.dtype(format_), logical_type(class_()))
    for format_, classes in {
        "<i4": (types.IntegerType, types.DateType),
        "<i8": (
            *(types.LongType, types.TimeType, types.TimestampType, types.TimestamptzType),
            *(types.TimestampNsType, types.TimestamptzNsType),
        ),
        "<f4": (types.FloatType,),
        "<f8": (types.DoubleType,),
    }.items()
    for class_ in classes
}
"""The types whose binary single values are numbers, the numbers' format and their Arrow type."""
_DECIMAL_BYTES = 16
_MAX_PRECISION = 38


def bound_bytes(bounds: pa.Array) -> pa.Array:
    """Return the bounds as binary single values; raise `TypeError` if the type has no such form."""
    if isinstance(bounds, pa.ExtensionArray):
        bounds = bounds.storage
    type_ = bounds.type
    if pa.types.is_binary(type_) or pa.types.is_string(type_):
        return bounds.cast(pa.binary())
    if pa.types.is_fixed_size_binary(type_):
        return bounds.cast(pa.binary())
    if pa.types.is_boolean(type_):
        return pc.if_else(bounds, pa.scalar(b"\x01"), pa.scalar(b"\x00"))
    if pa.types.is_decimal(type_) and type_.precision <= _MAX_PRECISION:
        return _decimal_bytes(bounds)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_temporal(type_):
        if pa.types.is_time32(type_):
            bounds = bounds.cast(pa.time64("us"))
        # both Arrow's numbers and binary single values are little-endian
        return bounds.view(pa.binary(bounds.type.bit_width // 8)).cast(pa.binary())
    raise TypeError(f"bounds of type {type_} have no binary form")


def _decimal_bytes(bounds: pa.Array) -> pa.Array:
    """Return each unscaled value as big-endian two's complement in the fewest bytes."""
    bounds = bounds.cast(pa.decimal128(bounds.type.precision, bounds.type.scale))
    data = memoryview(bounds.buffers()[1] or b"")[bounds.offset * _DECIMAL_BYTES :]
    values = list[bytes | None]()
    for i, is_present in enumerate(bounds.is_valid().to_pylist()):
        raw = data[i * _DECIMAL_BYTES : (i + 1) * _DECIMAL_BYTES]
        unscaled = int.from_bytes(raw, "little", signed=True)
        values.append(twos_complement(unscaled) if is_present else None)
    return pa.array(values, pa.binary())


def typed_bounds(bounds: Sequence[bytes | None], type_: types.Type) -> pa.Array:
    """Return binary single values as an array of the column's type, in its `logical_type`.

    Widths from before a type promotion are accepted. A bound becomes null, for unknown, if it
    cannot be read as the type or is NaN, which is not a valid bound. Raises `TypeError` for a type
    whose bounds are not values of the type.
    """
    if type(type_) in _NUMBERS:
        numbers = _numbers(bounds, type_)
        if numbers is not None:
            return numbers
    match type_:
        case types.VariantType() | types.GeometryType() | types.GeographyType():
            raise TypeError(f"type {type_} has no bounds that are values")
        case types.DecimalType(precision=precision, scale=scale):
            return _decimals(bounds, precision, scale)
        case types.BinaryType():
            return pa.array(bounds, pa.binary())
        case types.StringType():
            try:
                return pa.array(bounds, pa.string())
            except pa.ArrowInvalid:  # not UTF-8
                pass
        case types.FixedType(length=length) if length:
            return logical_array([_pad_bound(b, length) for b in bounds], type_)
    return logical_array([decode_bound(type_, b) for b in bounds], type_)


def _numbers(bounds: Sequence[bytes | None], type_: types.Type) -> pa.Array | None:
    """Convert all bounds at once; return None if some have another width than the type."""
    format_, logical = _NUMBERS[type(type_)]
    present_bounds = [b for b in bounds if b is not None]
    if not {format_.itemsize}.issuperset(map(len, present_bounds)):
        return None
    data = b"".join(present_bounds)
    values = np.frombuffer(data, format_)
    may_be_nan = format_.kind == "f"
    if len(present_bounds) == len(bounds) and not (may_be_nan and np.isnan(values).any()):
        # both Arrow's numbers and binary single values are little-endian
        return pa.Array.from_buffers(logical, len(bounds), [None, pa.py_buffer(data)])
    is_present = np.array([b is not None for b in bounds], np.bool_)
    numbers = np.zeros(len(bounds), format_)
    numbers[is_present] = values
    if may_be_nan:
        is_present[is_present] = ~np.isnan(values)
    return logical_array(pa.array(numbers, mask=~is_present), type_)


def _decimals(bounds: Sequence[bytes | None], precision: int, scale: int) -> pa.Array:
    """Convert big-endian two's complement to decimals; values with too many digits become null."""
    limit = 10**precision
    zero = bytes(_DECIMAL_BYTES)
    values = list[bytes]()
    is_present = np.zeros(len(bounds), np.bool_)
    for i, bound in enumerate(bounds):
        unscaled = int.from_bytes(bound, "big", signed=True) if bound else limit
        is_present[i] = -limit < unscaled < limit
        values.append(
            unscaled.to_bytes(_DECIMAL_BYTES, "little", signed=True) if is_present[i] else zero
        )
    type_ = pa.decimal128(precision, scale)
    array = pa.Array.from_buffers(type_, len(bounds), [None, pa.py_buffer(b"".join(values))])
    return pc.if_else(pa.array(is_present), array, pa.scalar(None, type_))


def _pad_bound(bound: bytes | None, length: int) -> bytes | None:
    """Return a bound with the length of its column, padded with zeros; None if it is longer.

    Writers truncate bounds and round upper bounds up, so zeros at the end keep both kinds correct.
    """
    return None if bound is None or len(bound) > length else bound.ljust(length, b"\0")
