"""Tells by the statistics in a Parquet footer whether a row group may have a matching row.

A row group is left out only if its statistics prove that no row can match; missing or doubtful
statistics keep it. Only columns that are stored in exactly the column's type are used, because
their raw statistics compare as the specification orders values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.parquet as pq

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.values import unscaled_value

_INTEGERS = (
    types.IntegerType,
    types.LongType,
    types.DateType,
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNsType,
    types.TimestamptzNsType,
)


def compile_row_group_filter(
    predicate: predicates.Predicate, leaf_by_id: Mapping[int, int]
) -> Callable[[pq.RowGroupMetaData], bool]:
    """Return a function that tells whether a row group may hold a matching row.

    `leaf_by_id` has the leaf column of every predicate column whose statistics can be trusted.
    """
    return lambda group: _may_match(predicate, group, leaf_by_id)


def _may_match(
    predicate: predicates.Predicate, group: pq.RowGroupMetaData, leaf_by_id: Mapping[int, int]
) -> bool:
    match predicate:
        case predicates.AlwaysFalse():
            return False
        case predicates.And(left=left, right=right):
            return _may_match(left, group, leaf_by_id) and _may_match(right, group, leaf_by_id)
        case predicates.Or(left=left, right=right):
            return _may_match(left, group, leaf_by_id) or _may_match(right, group, leaf_by_id)
        case predicates.BoundUnary() | predicates.BoundLiteral() | predicates.BoundSet():
            leaf = leaf_by_id.get(predicate.column.field_id)
            if leaf is None or isinstance(predicate.column, predicates.ExtractedColumn):
                return True
            chunk = group.column(leaf)
            if not chunk.is_stats_set or chunk.statistics is None:
                return True
            return _leaf_may_match(predicate, chunk, group.num_rows)
        case _:
            return True


def _leaf_may_match(
    predicate: predicates.BoundUnary | predicates.BoundLiteral | predicates.BoundSet,
    chunk: pq.ColumnChunkMetaData,
    rows: int,
) -> bool:
    statistics = chunk.statistics
    nulls = statistics.null_count if statistics.has_null_count else None
    if isinstance(predicate, predicates.BoundUnary):
        return _test_may_match(predicate.op, nulls, rows)
    if nulls == rows:
        return False  # a comparison with null is never true
    bounds = _bounds(predicate.column, chunk)
    if bounds is None:
        return True
    lower, upper = bounds
    to_raw = _raw_literal(predicate.column.type)
    if isinstance(predicate, predicates.BoundSet):
        return predicate.op != "in" or any(lower <= to_raw(v) <= upper for v in predicate.literals)
    return _comparison_may_match(predicate, to_raw(predicate.literal), lower, upper)


def _test_may_match(op: predicates.Test, nulls: int | None, rows: int) -> bool:
    match op:
        case "is_null":
            return nulls != 0
        case "not_null" | "is_nan":
            return nulls != rows
        case _:
            return True


def _comparison_may_match(
    predicate: predicates.BoundLiteral, literal: Any, lower: Any, upper: Any
) -> bool:
    op: predicates.Comparison = predicate.op
    match op:
        case "lt":
            return bool(lower < literal)
        case "lt_eq":
            return bool(lower <= literal)
        case "gt" | "gt_eq" if isinstance(
            predicate.column.type, types.FloatType | types.DoubleType
        ):
            return True  # NaN is greater than all numbers and is in no statistics
        case "gt":
            return bool(upper > literal)
        case "gt_eq":
            return bool(upper >= literal)
        case "eq":
            return bool(lower <= literal <= upper)
        case "starts_with":
            # truncated statistics are still bounds; cut both to the length of the prefix
            return bool(lower[: len(literal)] <= literal <= upper[: len(literal)])
        case _:
            return True


def _bounds(
    column: predicates.BoundColumn, chunk: pq.ColumnChunkMetaData
) -> tuple[Any, Any] | None:
    """Return the bounds as raw values that compare like the column's values, or None."""
    statistics = chunk.statistics
    if not statistics.has_min_max or chunk.physical_type == "INT96":
        return None
    lower, upper = statistics.min_raw, statistics.max_raw
    if lower > upper:
        return None  # one of them is wrong
    match column.type:
        case types.FloatType() | types.DoubleType():
            # a NaN in the bounds shows that the writer did not exclude NaNs
            return None if lower != lower or upper != upper else (lower, upper)
        case types.DecimalType():
            # old writers ordered decimals in bytes as unsigned numbers
            return (lower, upper) if isinstance(lower, int) else None
        case types.StringType() | types.BinaryType():
            return (lower, upper) if isinstance(lower, bytes) else None
        case type_ if isinstance(type_, _INTEGERS):
            return lower, upper
        case _:
            return None


def _raw_literal(type_: types.Type) -> Callable[[Any], Any]:
    match type_:
        case types.DecimalType():
            return unscaled_value
        case types.StringType():
            return lambda text: text.encode()
        case _:
            return lambda value: value
