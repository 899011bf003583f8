"""Decides whether all, some or no rows of a data file match a filter.

Specification, "Scan Planning": first by partition values, then by metrics. The planner does this
for columns of entries at once; a commit does it for a few files, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from iceberg_pyspark.changes.removals import Match
from iceberg_pyspark.expressions.file_filters import compile_metrics_filter, compile_residual
from iceberg_pyspark.expressions.predicates import AlwaysFalse, AlwaysTrue, Predicate
from iceberg_pyspark.spec.entry_columns import METRIC_MAPS
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata


def compile_file_match(
    predicate: Predicate, metadata: TableMetadata
) -> Callable[[DataFile], Match]:
    """Return a function that says which rows of a data file match a bound predicate."""
    residuals: dict[int, Callable[[Sequence[object]], Predicate]] = {}
    for spec in metadata.partition_specs:
        type_ = partition_type(spec, metadata.schemas_newest_first)
        residuals[spec.spec_id] = compile_residual(predicate, spec, type_)

    def match(f: DataFile) -> Match:
        simplify = residuals.get(f.spec_id)
        # A spec that was added later: its partition values cannot be evaluated, but the metrics
        # can.
        residual = predicate if simplify is None else simplify(f.partition)
        if isinstance(residual, AlwaysTrue):
            return "all"
        if isinstance(residual, AlwaysFalse) or not compile_metrics_filter(residual)(f):
            return "none"
        return "all" if compile_metrics_filter(residual, strict=True)(f) else "some"

    return match


def compile_may_match(predicate: Predicate, metadata: TableMetadata) -> Callable[[DataFile], bool]:
    """Return a function that says whether a file may hold or delete rows that match the predicate.

    Only the metrics of the columns that an equality delete compares describe the rows that it
    deletes (specification, "Equality Delete Files").
    """
    match = compile_file_match(predicate, metadata)
    return lambda f: (
        match(f if f.content is FileContent.DATA else _with_equality_metrics(f)) != "none"
    )


def _with_equality_metrics(f: DataFile) -> DataFile:
    """Return a delete file without the metrics of columns that it does not compare."""
    compared_ids = f.equality_ids if f.content is FileContent.EQUALITY_DELETES else None
    metrics: dict[str, Any] = {
        name: {i: value for i, value in by_id.items() if i in (compared_ids or ())}
        for name in METRIC_MAPS
        if (by_id := getattr(f, name)) is not None
    }
    return replace(f, **metrics)
