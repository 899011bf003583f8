"""Filters manifests by the partition summaries in their manifest list.

Specification, "Manifest Lists" (`field_summary`). The predicate is on partition fields, as
`projection.project_inclusive` creates it for the manifest's own spec.
"""

from __future__ import annotations

from collections.abc import Callable

from iceberg_pyspark.expressions.predicates import BoundColumn, Predicate
from iceberg_pyspark.expressions.value_ranges import ValueRange, compile_range_filter, decode_bound
from iceberg_pyspark.spec.manifests import PartitionFieldSummary
from iceberg_pyspark.spec.types import DoubleType, FloatType, StructType


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
