"""Splits rows by partition tuple.

Specification, "Partitioning" (tuples and their equality). `arrow/write/column_transforms.py`
computes the transforms; `arrow/write/write_files.py` writes the pieces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.arrays import as_integers
from iceberg_pyspark.arrow.scalars import value_of
from iceberg_pyspark.arrow.write.column_transforms import transform_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionSpec, partition_type, source_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import VoidTransform
from iceberg_pyspark.spec.types import StructType, Type

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
    rows = batch if order is None else batch.take(pa.array(order))
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
        codes = (
            dictionary.indices.fill_null(distinct)
            .to_numpy(zero_copy_only=False)
            .astype(np.int64, copy=False)
        )
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
