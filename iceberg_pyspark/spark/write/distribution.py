"""Distributes rows to the tasks of a write, and sorts them.

The modes and their defaults are the reference implementation's (`write.distribution-mode`): `range`
for a sorted table, `hash` for a partitioned table, else `none`. Rows are rebalanced, not strictly
distributed: Spark may merge small groups, and split a group that would take a task too long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.write.transform_expressions import transform_expression
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import (
    UNSORTED,
    SortField,
    SortOrder,
    partition_sort_fields,
)
from iceberg_pyspark.spec.table_properties import (
    ADVISORY_PARTITION_SIZE,
    DISTRIBUTION_MODE,
    FANOUT,
    PARQUET_COMPRESSION,
)
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.sql_text.names import quoted_name

DistributionMode: TypeAlias = Literal["none", "hash", "range"]

_SPARK_ADVISORY_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_AIMED_FILE_SIZE = 134_217_728
# How much larger rows are in a shuffle than in a file, by the file's codec.
_SHRINK_FACTOR = {"zstd": 3, "gzip": 3}
_OTHER_SHRINK_FACTOR = 2


@dataclass(frozen=True, kw_only=True)
class WriteDistribution:
    """The distribution of rows over tasks, and their order in each task.

    `sort_order` is the sort order of each task's rows, or `UNSORTED`. `ordering` begins with the
    partition, so that a task writes one partition after the other. `advised_bytes` is the size of
    shuffle partitions that the user has set, else None; `partition_bytes` is at least what they
    should have.
    """

    mode: DistributionMode
    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    ordering: tuple[SortField, ...]
    sorts_rows: bool
    partition_bytes: int | None
    advised_bytes: int | None = None


def write_distribution(
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder,
    properties: Mapping[str, str],
) -> WriteDistribution:
    """Return the distribution and order that the properties of a table and of a write require.

    An order that cannot be computed is ignored.
    """
    if any(isinstance(f.transform, UnknownTransform) for f in sort_order.fields):
        sort_order = UNSORTED
    # Void fields are dropped: rows in any order are sorted by void.
    sorted_by = [f for f in sort_order.fields if not isinstance(f.transform, VoidTransform)]
    ordering = (*_partition_ordering(spec, sort_order), *sorted_by)
    fans_out = FANOUT.of(properties)
    codec = PARQUET_COMPRESSION.of(properties)
    return WriteDistribution(
        mode=_mode(properties, spec, sort_order),
        schema=schema,
        spec=spec,
        sort_order=sort_order,
        ordering=ordering,
        sorts_rows=bool(ordering) and (bool(sort_order.fields) or not fans_out),
        partition_bytes=_AIMED_FILE_SIZE * _SHRINK_FACTOR.get(codec, _OTHER_SHRINK_FACTOR),
        advised_bytes=ADVISORY_PARTITION_SIZE.of(properties) or None,
    )


def no_distribution(schema: Schema, spec: PartitionSpec) -> WriteDistribution:
    """Return the distribution that keeps rows in their tasks and in their order."""
    return WriteDistribution(
        mode="none",
        schema=schema,
        spec=spec,
        sort_order=UNSORTED,
        ordering=(),
        sorts_rows=False,
        partition_bytes=None,
    )


def distribute_and_sort(
    bridge: Bridge, frame: DataFrame, distribution: WriteDistribution
) -> DataFrame:
    """Return the rows distributed and sorted; the frame may have more columns than the table."""
    return sort_within_tasks(bridge, distribute(bridge, frame, distribution), distribution)


def distribute(
    bridge: Bridge, frame: DataFrame, distribution: WriteDistribution, hash_by: Sequence[str] = ()
) -> DataFrame:
    """Return the rows distributed to tasks; `hash_by` are columns with the partition values."""
    by = [_sort_column(bridge, f, distribution.schema) for f in distribution.ordering]
    if distribution.mode == "hash":
        by = [F.col(name) for name in hash_by] or [
            transform_of_field(bridge, f.source_id, f.transform, distribution.schema)
            for f in distribution.spec.fields
            if not isinstance(f.transform, VoidTransform)
        ]
    if distribution.mode == "none" or not by:
        return frame
    size = distribution.advised_bytes or max(
        distribution.partition_bytes or 0, bridge.bytes_of(_SPARK_ADVISORY_SIZE, "64MB")
    )
    return bridge.writes.rebalance(frame, by, size)


def sort_within_tasks(
    bridge: Bridge, frame: DataFrame, distribution: WriteDistribution, first: Sequence[str] = ()
) -> DataFrame:
    """Return the rows sorted within each task, by the columns of `first` before all others."""
    if not distribution.sorts_rows:
        return frame
    sort_columns = [_sort_column(bridge, f, distribution.schema) for f in distribution.ordering]
    return frame.sortWithinPartitions(*first, *sort_columns)


def _mode(
    properties: Mapping[str, str], spec: PartitionSpec, sort_order: SortOrder
) -> DistributionMode:
    if DISTRIBUTION_MODE.name in properties:
        mode = DISTRIBUTION_MODE.of(properties)
    else:
        mode = "range" if sort_order.fields else "hash"
    if spec.is_unpartitioned and (mode == "hash" or not sort_order.fields):
        return "none"
    return cast("DistributionMode", mode)


def _partition_ordering(spec: PartitionSpec, order: SortOrder) -> Sequence[SortField]:
    """Return the partition fields by which rows in that order are not already grouped."""
    return [
        f
        for f in partition_sort_fields(spec)
        if not any(
            s.source_ids == f.source_ids and _keeps_order_of(s.transform, f.transform)
            for s in order.fields
        )
    ]


_TIME = (YearTransform, MonthTransform, DayTransform, HourTransform)


def _keeps_order_of(sorted_by: Transform, partitioned_by: Transform) -> bool:
    """Return whether rows sorted by one transform of a column are also sorted by another.

    >>> _keeps_order_of(DayTransform(), MonthTransform())
    True
    >>> _keeps_order_of(TruncateTransform(2), TruncateTransform(4))
    False
    """
    if sorted_by == partitioned_by:
        return True
    match sorted_by, partitioned_by:
        case IdentityTransform(), TruncateTransform() | YearTransform() | MonthTransform():
            return True
        case IdentityTransform(), DayTransform() | HourTransform():
            return True
    if isinstance(sorted_by, _TIME) and isinstance(partitioned_by, _TIME):
        return _TIME.index(type(sorted_by)) >= _TIME.index(type(partitioned_by))
    return False


def _sort_column(bridge: Bridge, field: SortField, schema: Schema) -> Column:
    column = transform_of_field(bridge, field.source_id, field.transform, schema)
    match field.direction, field.null_order:
        case "asc", "nulls-first":
            return column.asc_nulls_first()
        case "asc", "nulls-last":
            return column.asc_nulls_last()
        case "desc", "nulls-first":
            return column.desc_nulls_first()
    return column.desc_nulls_last()


def transform_of_field(
    bridge: Bridge, source_id: int, transform: Transform, schema: Schema
) -> Column:
    """Return the transform of a table's column, for rows with the table's columns."""
    column = column_of(source_id, schema)
    return transform_expression(bridge, transform, column, schema.field_by_id[source_id].type)


def column_of(field_id: int, schema: Schema) -> Column:
    """Return the column of a field that is not inside a list or map."""
    path = [schema.field_by_id[field_id].name]
    parent = schema.parent_by_id.get(field_id)
    while parent is not None:
        path.insert(0, schema.field_by_id[parent].name)
        parent = schema.parent_by_id.get(parent)
    return F.col(quoted_name(path))
