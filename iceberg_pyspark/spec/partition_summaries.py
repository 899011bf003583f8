"""The partition field summaries of a manifest. Specification, "Manifest Lists"."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from iceberg_pyspark.spec.manifests import PartitionFieldSummary
from iceberg_pyspark.spec.types import DoubleType, FloatType, StructType, Type, UUIDType
from iceberg_pyspark.spec.values import may_bound_uuids, value_to_bytes


def summarise_partitions(
    partition_type: StructType, partitions: Iterable[tuple[Any, ...]]
) -> tuple[PartitionFieldSummary, ...] | None:
    """Return one summary per partition field over the partition tuples of all entries.

    Bounds are not truncated. Returns None if `may_bound_uuids` forbids bounds for a field: a
    summary without bounds would mean that all values are null.
    """
    values: list[set[Any]] = [set() for _ in partition_type.fields]
    zeros: list[set[float]] = [set() for _ in partition_type.fields]
    for partition in partitions:
        for i, value in enumerate(partition):
            if value == 0 and isinstance(value, float):
                # a set would keep only one of -0.0 and 0.0, because they are equal
                zeros[i].add(math.copysign(1.0, value))
            else:
                values[i].add(value)
    summaries = tuple(
        _summary(f.type, values[i], zeros[i]) for i, f in enumerate(partition_type.fields)
    )
    unbounded = any(
        isinstance(f.type, UUIDType)
        and s.lower_bound is not None
        and s.upper_bound is not None
        and not may_bound_uuids(s.lower_bound, s.upper_bound)
        for f, s in zip(partition_type.fields, summaries, strict=True)
    )
    return None if unbounded else summaries


def _summary(
    type_: Type, values: Collection[Any], zero_signs: Collection[float]
) -> PartitionFieldSummary:
    floating = isinstance(type_, FloatType | DoubleType)
    comparable = [v for v in values if v is not None and not (floating and math.isnan(v))]
    comparable += [math.copysign(0.0, sign) for sign in zero_signs]
    # the specification: a lower bound of zero must be -0.0 if it occurs, an upper bound +0.0
    key = _total_order if floating else None
    return PartitionFieldSummary(
        contains_null=None in values,
        contains_nan=floating and any(v is not None and math.isnan(v) for v in values),
        lower_bound=value_to_bytes(type_, min(comparable, key=key)) if comparable else None,
        upper_bound=value_to_bytes(type_, max(comparable, key=key)) if comparable else None,
    )


def _total_order(value: float) -> tuple[float, float]:
    return value, math.copysign(1.0, value)
