"""Applies partition transforms to whole columns of rows.

Returns for each row the result of `spec.transforms.apply_transform` for its value (specification,
"Partition Transforms" and Appendix B). Numbers are computed with numpy; hashing bytes and
truncating decimals runs once per distinct value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.arrays import Longs, as_longs
from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    accepts,
    apply_transform,
    result_type,
)
from iceberg_pyspark.spec.values import value_to_bytes

_MICROS_PER_HOUR = 3_600_000_000


def transform_array(transform: Transform, source: types.Type, column: pa.Array) -> pa.Array:
    """Transform a column of type `arrow_type(source)` to `arrow_type(result_type(...))`."""
    if isinstance(transform, VoidTransform):
        result = result_type(transform, source)
        return pa.nulls(len(column), arrow_type(result))
    if isinstance(transform, UnknownTransform):
        raise InvalidRequestError(f"cannot compute unknown transform '{transform}'")
    if not accepts(transform, source) or isinstance(source, types.UnknownType):
        raise InvalidRequestError(f"transform {transform} is not defined for type {source}")
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform(num_buckets=n):
            return _bucket(source, n, column)
        case TruncateTransform(width=width):
            return _truncate(transform, source, width, column)
        case _:
            return _time(transform, source, column)


def _with_nulls_of(column: pa.Array, values: NDArray[Any], type_: pa.DataType) -> pa.Array:
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(values, mask=mask).cast(type_)


def _bucket(source: types.Type, n: int, column: pa.Array) -> pa.Array:
    match source:
        case types.StringType() | types.BinaryType() | types.FixedType() | types.UUIDType():
            return _per_distinct(column, lambda v: (mmh3.hash(v) & 0x7FFFFFFF) % n, pa.int32())
        case types.DecimalType():
            return _per_distinct(
                column,
                lambda v: (mmh3.hash(value_to_bytes(source, v)) & 0x7FFFFFFF) % n,
                pa.int32(),
            )
        case _:
            numbers = as_longs(column)
            if isinstance(source, types.TimestampNsType | types.TimestamptzNsType):
                numbers = numbers // 1000
            buckets = (murmur3_of_longs(numbers) & np.uint32(0x7FFFFFFF)) % np.uint32(n)
            return _with_nulls_of(column, buckets, pa.int32())


def _per_distinct(column: pa.Array, function: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
    dictionary = column.dictionary_encode()
    try:
        values = pa.array([function(v) for v in dictionary.dictionary.to_pylist()], type=type_)
    except pa.ArrowInvalid as e:
        raise InvalidRequestError(f"a partition value does not fit {type_}: {e}") from e
    return values.take(dictionary.indices)


def murmur3_of_longs(values: Longs) -> NDArray[np.uint32]:
    """Return the Murmur3 hash (x86, 32 bits, seed 0) of the 8 little-endian bytes of each value.

    >>> murmur3_of_longs(np.array([34])).astype(np.int32).item()
    2017239379
    """
    bits = values.view(np.uint64)
    h = np.zeros(len(values), dtype=np.uint32)
    for word in (
        (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        (bits >> np.uint64(32)).astype(np.uint32),
    ):
        k = word * np.uint32(0xCC9E2D51)
        k = (k << np.uint32(15)) | (k >> np.uint32(17))
        h ^= k * np.uint32(0x1B873593)
        h = (h << np.uint32(13)) | (h >> np.uint32(19))
        h = h * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(8)
    h ^= h >> np.uint32(16)
    h = h * np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h = h * np.uint32(0xC2B2AE35)
    hashes: NDArray[np.uint32] = h ^ (h >> np.uint32(16))
    return hashes


def _truncate(
    transform: TruncateTransform, source: types.Type, width: int, column: pa.Array
) -> pa.Array:
    match source:
        case types.StringType():
            # pyarrow's "code units" are code points, which the specification requires
            return pc.utf8_slice_codeunits(column, 0, width)
        case types.BinaryType():
            return pc.binary_slice(column, 0, width)
        case types.IntegerType() | types.LongType():
            numbers = as_longs(column)
            remainders = numbers % width
            least = np.iinfo(np.int32 if isinstance(source, types.IntegerType) else np.int64).min
            if (numbers < least + remainders).any():
                raise InvalidRequestError(
                    f"{transform} of {numbers.min()} is below the least {source}; "
                    "such a row has no partition"
                )
            return _with_nulls_of(column, numbers - remainders, column.type)
        case _:
            return _per_distinct(
                column, lambda v: apply_transform(transform, source, v), column.type
            )


def _time(transform: TimeTransform, source: types.Type, column: pa.Array) -> pa.Array:
    numbers = as_longs(column)
    if isinstance(source, types.DateType):
        days = numbers
    else:
        nanos = isinstance(source, types.TimestampNsType | types.TimestamptzNsType)
        hours = numbers // (_MICROS_PER_HOUR * (1000 if nanos else 1))
        if isinstance(transform, HourTransform):
            return _hours(column, hours, transform)
        days = hours // 24
    match transform:
        case DayTransform():
            # int32 days reach beyond the range of timestamps
            return _with_nulls_of(column, days.astype(np.int32), pa.int32()).view(pa.date32())
        case MonthTransform():
            unit = "datetime64[M]"
        case YearTransform():
            unit = "datetime64[Y]"
        case HourTransform():
            raise InvalidRequestError("hour is not defined for date")
    units = days.astype("datetime64[D]").astype(unit).astype(np.int64)
    return _with_nulls_of(column, units, pa.int32())


def _hours(column: pa.Array, hours: Longs, transform: Transform) -> pa.Array:
    try:
        return _with_nulls_of(column, hours, pa.int32())
    except pa.ArrowInvalid as e:
        raise InvalidRequestError(
            f"{transform} of a timestamp does not fit an int: {e}; such a row has no partition"
        ) from e
