"""Filters data and delete files by the metrics in their manifest entries.

Specification, "Scan Planning" and "Data File Fields". `value_ranges.py` contains the rule; this
module converts counts and bounds to ranges. The planner filters whole columns of entries at once
(`planning/`); tests check that both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from iceberg_pyspark.expressions.predicates import BoundColumn, Predicate
from iceberg_pyspark.expressions.value_ranges import ValueRange, compile_range_filter, decode_bound
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.types import DoubleType, FloatType

_V = TypeVar("_V")


def compile_metrics_filter(
    predicate: Predicate, *, strict: bool = False
) -> Callable[[DataFile], bool]:
    """Return a function that tells whether some (or `strict`: every) row of a file matches."""
    matches = compile_range_filter(predicate, strict=strict)

    def file_matches(file: DataFile) -> bool:
        # files that old writers imported have a negative record count, which means unknown
        if file.record_count == 0:
            return strict
        return matches(lambda column: column_range(file, column))

    return file_matches


def column_range(file: DataFile, column: BoundColumn) -> ValueRange:
    """Return the metrics of a column in a file; a missing map or entry means unknown."""
    field_id = column.field_id
    values = _get(file.value_counts, field_id)
    nulls = _get(file.null_value_counts, field_id)
    nans = _get(file.nan_value_counts, field_id)
    if not isinstance(column.type, FloatType | DoubleType):
        nans = 0
    # value_counts include nulls and NaNs; in an uncounted row, an enclosing struct is null
    uncounted = values is not None and values < file.record_count
    return ValueRange(
        lower=decode_bound(column.type, _get(file.lower_bounds, field_id)),
        upper=decode_bound(column.type, _get(file.upper_bounds, field_id)),
        may_be_null=nulls != 0 or uncounted,
        may_be_nan=nans != 0 and (values is None or nulls is None or nulls < values),
        may_be_value=values is None or (nulls or 0) + (nans or 0) < values,
    )


def _get(metrics: Mapping[int, _V] | None, field_id: int) -> _V | None:
    return None if metrics is None else metrics.get(field_id)
