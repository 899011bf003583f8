"""Decides from metadata which files have only rows that make a predicate true.

Specification, "Scan Planning". Each leaf of the predicate is proven by the partition or by the
metrics, so that `p = 1 AND id IS NOT NULL` needs both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundLeaf,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Not,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.projection import project_strict
from iceberg_pyspark.expressions.rewriting import not_, not_bound, or_, push_not
from iceberg_pyspark.planning.entry_filter import (
    Mask,
    MetricsFilter,
    PartitionLeaves,
    matching_partitions,
)
from iceberg_pyspark.planning.scan_plan import PlannedFiles


def proven_files(files: PlannedFiles, predicate: Predicate) -> Mask:
    """Return for each file whether every row makes the bound row predicate true.

    The entries must have been read with the metrics of the predicate's columns. Deleted rows count.
    """
    metrics = MetricsFilter(files.entries, PartitionLeaves(files.spec, files.partition_type))

    def proven(predicate: Predicate) -> Mask:
        match predicate:
            case And(left, right):
                return proven(left) & proven(right)
            case Or(left, right):
                return proven(left) | proven(right)
            case AlwaysTrue() | AlwaysFalse():
                return np.full(files.entries.num_rows, isinstance(predicate, AlwaysTrue))
            case BoundUnary() | BoundLiteral() | BoundSet():
                strict = project_strict(predicate, files.spec, files.partition_type)
                by_partition = matching_partitions(files.entries, strict)
                if by_partition.all():
                    return by_partition
                return by_partition | ~metrics.matching(_complement(predicate))
            case Not():
                return proven(push_not(predicate))
            case _:
                raise not_bound(predicate)

    return proven(predicate)


def _complement(leaf: BoundLeaf) -> Predicate:
    """Return a predicate for all rows for which a leaf is false or unknown."""
    match leaf:
        case BoundUnary(op="is_null" | "not_null"):
            return push_not(not_(leaf))
        case BoundLiteral(op="eq", column=column):
            # Bounds can show smaller and greater values, but never that a value differs.
            opposite = or_(replace(leaf, op="lt"), replace(leaf, op="gt"))
        case BoundUnary(column=column) | BoundLiteral(column=column) | BoundSet(column=column):
            opposite = push_not(not_(leaf))
    return or_(opposite, BoundUnary("is_null", column))
