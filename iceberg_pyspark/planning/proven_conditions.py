"""Finds conditions that hold for every row of the planned files, by partitions or column bounds.

This is the strict counterpart of pruning: such conditions need not be evaluated per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iceberg_pyspark.expressions.predicates import BoundLiteral, BoundSet, BoundUnary, Predicate
from iceberg_pyspark.expressions.projection import project_strict
from iceberg_pyspark.planning.entry_filter import MetricsFilter, matching_partitions
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.partitioning import identity_source_ids


def proven_conditions(files: Iterable[PlannedFiles], conditions: Sequence[Predicate]) -> set[int]:
    """Return the positions of the conditions that every row of all files fulfils.

    The conditions are bound row predicates; the entries have the metrics of their columns.
    """
    unproven = dict(enumerate(conditions))
    for manifest_files in files:
        metrics = MetricsFilter(manifest_files.entries, identity_source_ids(manifest_files.spec))
        for number, condition in list(unproven.items()):
            strict = project_strict(condition, manifest_files.spec, manifest_files.partition_type)
            is_proven = matching_partitions(manifest_files.entries, strict)
            if not is_proven.all():
                is_proven |= metrics.proven_mask(condition)
            if not is_proven.all():
                del unproven[number]
        if not unproven:
            break
    return set(unproven)


def never_null(conditions: Iterable[Predicate]) -> frozenset[int]:
    """Return the ids of columns that are never null in a row that fulfils all conditions."""
    return frozenset(
        leaf.column.field_id
        for leaf in conditions
        if isinstance(leaf, BoundLiteral | BoundSet)
        or (isinstance(leaf, BoundUnary) and leaf.op == "not_null")
    )
