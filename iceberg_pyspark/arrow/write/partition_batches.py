"""Applies partition transforms to columns of rows, and splits rows by partition tuple.

Each row gets the result of `spec.transforms.apply_transform` for its value (specification,
"Partition Transforms" and Appendix B). Numbers are computed with numpy; hashing bytes and
truncating decimals runs once per distinct value. Tuples and their equality: "Partitioning".
`arrow/write/write_files.py` writes the pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.arrays import (
    Longs,
    as_integers,
    as_longs,
    number_array,
    raw_values,
    validity,
)
from iceberg_pyspark.arrow.arrow_schemas import arrow_type, value_of
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_type, source_type
from iceberg_pyspark.spec.schema import Schema
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
from iceberg_pyspark.spec.types import StructType, Type
from iceberg_pyspark.spec.values import value_to_bytes

PartitionTuple: TypeAlias = tuple[Any, ...]

_LARGEST_CODE = 2**62


def partition_batch(
    batch: pa.RecordBatch, spec: PartitionSpec, schemas: Sequence[Schema]
) -> list[tuple[PartitionTuple, pa.RecordBatch]]:
    """Split the batch into one piece per partition tuple; rows keep their order within a piece.

    An empty batch has no pieces. The batch has the columns of `schemas[0]`; older schemas follow.
    All pieces are slices of one batch. Tuples hold values as in `spec/values.py`; all NaNs are one
    value, -0.0 and 0.0 are two.
    """
    if not batch.num_rows:
        return []
    if not spec.fields:
        return [((), batch)]
    columns = [
        transform_array(f.transform, source_type(f, schemas), source)
        for f, source in zip(spec.fields, _sources(batch, spec, schemas), strict=True)
    ]
    types = [f.type for f in partition_type(spec, schemas).fields]
    codes = _codes(columns)
    if codes is None:
        return [(_tuple_at(columns, types, 0), batch)]
    starts, order = _groups(codes)
    rows = batch if order is None else batch.take(number_array(order))
    ends = [*starts[1:], batch.num_rows]
    return [
        (
            _tuple_at(columns, types, start if order is None else int(order[start])),
            rows.slice(start, end - start),
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _sources(
    batch: pa.RecordBatch, spec: PartitionSpec, schemas: Sequence[Schema]
) -> list[pa.Array]:
    columns = []
    for f in spec.fields:
        if isinstance(f.transform, VoidTransform):
            columns.append(pa.nulls(batch.num_rows))
        else:
            columns.append(
                source_column(batch, schemas[0], f.source_id, f"partition field '{f.name}'")
            )
    return columns


def source_column(
    batch: pa.RecordBatch, schema: Schema, source_id: int, needed_by: str
) -> pa.Array:
    """Return the batch's column for a field id of its schema; errors name `needed_by`."""
    path: list[str] = []
    current: int | None = source_id
    while current is not None:
        field = schema.field_by_id.get(current)
        current = schema.parent_by_id.get(current)
        parent = None if current is None else schema.field_by_id[current].type
        if field is None or not (parent is None or isinstance(parent, StructType)):
            raise InvalidRequestError(
                f"{needed_by} has no source column {source_id} to write with: it was "
                "dropped, or lies in a list or map; choose another column for it"
            )
        path.insert(0, field.name)
    column = batch.column(path[0])
    if len(path) > 1:
        # the values are also null where an enclosing struct is null
        column = pc.struct_field(column, path[1:])
    return column


def _codes(columns: Sequence[pa.Array]) -> NDArray[np.int64] | None:
    """Return one number per row, equal within a partition, or None for a single partition."""
    combined_codes: NDArray[np.int64] | None = None
    size = 1
    for column in columns:
        if column.null_count == len(column):
            continue
        # floats by their bits, so that -0.0 and 0.0 differ
        by_bits = as_integers(column) if pa.types.is_floating(column.type) else None
        dictionary = (column if by_bits is None else by_bits).dictionary_encode()
        distinct = len(dictionary.dictionary)
        if distinct + bool(dictionary.indices.null_count) <= 1:
            continue
        codes = raw_values(dictionary.indices).astype(np.int64)
        if dictionary.indices.null_count:
            codes[~validity(dictionary.indices)] = distinct
        if combined_codes is None:
            combined_codes, size = codes, distinct + 1
            continue
        if size * (distinct + 1) > _LARGEST_CODE:
            codes_in_use, combined_codes = np.unique(combined_codes, return_inverse=True)
            size = len(codes_in_use)
        combined_codes = combined_codes * (distinct + 1) + codes
        size *= distinct + 1
    return combined_codes


def _groups(codes: NDArray[np.int64]) -> tuple[list[int], NDArray[np.int64] | None]:
    """Return the start of each group, and the row order that makes groups contiguous.

    The order is None if the groups already are contiguous.
    """
    steps = np.diff(codes)
    order = None
    if (steps < 0).any():
        # numpy sorts 16-bit integers by radix, in linear time
        narrow = codes.astype(np.uint16) if codes.max() < 2**16 else codes
        order = np.argsort(narrow, kind="stable")
        steps = np.diff(codes[order])
    return [0, *(np.flatnonzero(steps) + 1).tolist()], order


def _tuple_at(columns: Sequence[pa.Array], types: Sequence[Type], row: int) -> PartitionTuple:
    return tuple(_one_nan(value_of(t, c[row])) for c, t in zip(columns, types, strict=True))


def _one_nan(value: Any) -> Any:
    return math.nan if isinstance(value, float) and math.isnan(value) else value


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
    return number_array(values, validity(column) if column.null_count else None).cast(type_)


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
