"""Computes the residual of a predicate for the rows of one partition.

Specification, "Scan Planning", note 1: parts that the strict projection proves for the partition
are true, parts that the inclusive projection rules out are false, and the rest is evaluated for
every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from iceberg_pyspark.expressions.partition_values import evaluate
from iceberg_pyspark.expressions.predicates import AlwaysFalse, AlwaysTrue, And, Not, Or, Predicate
from iceberg_pyspark.expressions.projection import project_inclusive, project_strict
from iceberg_pyspark.expressions.rewriting import and_, or_, push_not
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.types import StructType

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
