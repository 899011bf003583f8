"""Filters of files by metrics and by partition summaries, and what remains of a filter then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from iceberg_pyspark.expressions.evaluation import (
    ValueRange,
    compile_range_filter,
    decode_bound,
    evaluate,
)
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    ExtractedColumn,
    Not,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.projection import project_inclusive, project_strict
from iceberg_pyspark.expressions.rewriting import and_, or_, push_not
from iceberg_pyspark.expressions.variant_fields import field_range
from iceberg_pyspark.spec.manifests import DataFile, PartitionFieldSummary
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.types import DoubleType, FloatType, StructType

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
    if isinstance(column, ExtractedColumn):
        lows, highs = file.lower_bounds or {}, file.upper_bounds or {}
        lower, upper = field_range(column, lows.get(field_id), highs.get(field_id))
        return ValueRange(lower=lower, upper=upper)
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


_Simplify: TypeAlias = Callable[[Mapping[int, Any]], Predicate]


def compile_residual(
    predicate: Predicate, spec: PartitionSpec, partition_type: StructType
) -> Callable[[Sequence[Any]], Predicate]:
    """Return a function from partition values to a simpler predicate that selects the same rows.

    The predicate is projected once for all partitions of the spec.
    """
    simplify = _compile(push_not(predicate), spec, partition_type)
    ids = [f.field_id for f in spec.fields]
    return lambda partition_values: simplify(dict(zip(ids, partition_values, strict=True)))


def _compile(predicate: Predicate, spec: PartitionSpec, partition_type: StructType) -> _Simplify:
    match predicate:
        case And(left, right):
            first = _compile(left, spec, partition_type)
            second = _compile(right, spec, partition_type)
            return lambda values: and_(first(values), second(values))
        case Or(left, right):
            first = _compile(left, spec, partition_type)
            second = _compile(right, spec, partition_type)
            return lambda values: or_(first(values), second(values))
        case AlwaysTrue() | AlwaysFalse() | Not():
            return lambda values: predicate
    strict = project_strict(predicate, spec, partition_type)
    inclusive = project_inclusive(predicate, spec, partition_type)

    def simplify(values: Mapping[int, Any]) -> Predicate:
        if evaluate(strict, values) is True:
            return AlwaysTrue()
        return predicate if evaluate(inclusive, values) is True else AlwaysFalse()

    return simplify


def compile_manifest_filter(
    predicate: Predicate, partition_type: StructType
) -> Callable[[tuple[PartitionFieldSummary, ...] | None], bool]:
    """Return a function that tells from a manifest's summaries whether a partition may match.

    In manifest lists of some old writers, summaries are None; such a manifest is kept.
    """
    may_match = compile_range_filter(predicate)
    position_by_id = {f.field_id: i for i, f in enumerate(partition_type.fields)}

    def manifest_may_match(summaries: tuple[PartitionFieldSummary, ...] | None) -> bool:
        if summaries is None or len(summaries) != len(position_by_id):
            return True
        return may_match(
            lambda column: summary_range(summaries[position_by_id[column.field_id]], column)
        )

    return manifest_may_match


def summary_range(summary: PartitionFieldSummary, column: BoundColumn) -> ValueRange:
    """Return the range of a partition field in a summary."""
    no_bounds = summary.lower_bound is None and summary.upper_bound is None
    has_nan = isinstance(column.type, FloatType | DoubleType)
    if no_bounds and not summary.contains_null and not (has_nan and summary.contains_nan):
        # no bounds mean that all values are null or NaN; a summary that denies both is not trusted
        return ValueRange()
    return ValueRange(
        lower=decode_bound(column.type, summary.lower_bound),
        upper=decode_bound(column.type, summary.upper_bound),
        may_be_null=summary.contains_null,
        may_be_nan=has_nan and summary.contains_nan is not False,
        may_be_value=not no_bounds,
    )
