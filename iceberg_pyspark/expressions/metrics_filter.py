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
    return lambda file: matches(lambda column: column_range(file, column))


def column_range(file: DataFile, column: BoundColumn) -> ValueRange:
    """Return the metrics of a column in a file; a missing map or entry means unknown.

    So do counts that contradict each other, the number of rows or the bounds: a reader cannot tell
    which of them is wrong, and some writers count only the values that are not null.
    """
    field_id = column.field_id
    values = _count(file.value_counts, field_id)
    nulls = _count(file.null_value_counts, field_id)
    nans = _count(file.nan_value_counts, field_id)
    if not isinstance(column.type, FloatType | DoubleType):
        nans = 0
    # files that old writers imported have a negative record count, which means unknown
    records = file.record_count if file.record_count >= 0 else None
    limit = values if records is None else records
    special = (nulls or 0) + (nans or 0)
    most = [n for n in (values, limit) if n is not None]
    if most and (special > min(most) or (values or 0) > most[-1]):
        values = nulls = nans = None
    lower = decode_bound(column.type, _get(file.lower_bounds, field_id))
    upper = decode_bound(column.type, _get(file.upper_bounds, field_id))
    is_complete = values is not None and values == limit and lower is None and upper is None
    return ValueRange(
        lower=lower,
        upper=upper,
        # value_counts include nulls and NaNs; in an uncounted row, an enclosing struct is null
        may_be_null=nulls != 0 or (values is not None and values != limit),
        may_be_nan=nans != 0 and not (is_complete and nulls == values),
        may_be_value=not (is_complete and special == values),
    )


def _count(counts: Mapping[int, int] | None, field_id: int) -> int | None:
    """Return a count, or None if it is unknown; some writers store a negative number then."""
    count = _get(counts, field_id)
    return None if count is None or count < 0 else count


def _get(metrics: Mapping[int, _V] | None, field_id: int) -> _V | None:
    return None if metrics is None else metrics.get(field_id)
