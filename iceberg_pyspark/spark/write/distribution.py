"""Distributes rows to the tasks of a write, and sorts them.

The modes and their defaults are the reference implementation's (`write.distribution-mode`): `range`
for a sorted table, `hash` for a partitioned table, else `none`. Rows are rebalanced, not strictly
distributed: Spark may merge small groups, and split a group that would take a task too long.

Partition transforms are expressions of Spark's own functions. Equal partition values give equal
columns, and greater values give greater columns, which is all that distribution and sorting need.
The numbers are the specification's ("Partition Transforms"), so that a hash of them spreads
partitions over tasks as evenly as the reference implementation does. The partition of each row is
determined by `arrow/write/partition_batches.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, TypeAlias, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortField, SortOrder, partition_sort_fields
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import (
    ADVISORY_PARTITION_SIZE,
    DISTRIBUTION_MODE,
    FANOUT,
    PARQUET_COMPRESSION,
)
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
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
from iceberg_pyspark.spec.values import decimal_of
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
    return _transform_expression(bridge, transform, column, schema.field_by_id[source_id].type)


def column_of(field_id: int, schema: Schema) -> Column:
    """Return the column of a field that is not inside a list or map."""
    path = [schema.field_by_id[field_id].name]
    parent = schema.parent_by_id.get(field_id)
    while parent is not None:
        path.insert(0, schema.field_by_id[parent].name)
        parent = schema.parent_by_id.get(parent)
    return F.col(quoted_name(path))


def context_and_distribution(
    write: ResolvedWrite, metadata: TableMetadata | None = None
) -> tuple[WriteContext, WriteDistribution]:
    """Return context and distribution for the options' spec and sort order, or the table's."""
    context = write.context(metadata)
    options = write.settings.options
    order = _sort_order(write.table, metadata or write.metadata, options.sort_order_id)
    if not options.uses_distribution:
        return context, no_distribution(context.schema, context.spec)
    return with_distribution(context, order)


def with_distribution(
    context: WriteContext, order: SortOrder
) -> tuple[WriteContext, WriteDistribution]:
    """Return the distribution that the context's properties require, and the context for it."""
    distribution = write_distribution(context.schema, context.spec, order, context.properties)
    return replace(context, sort_order_id=distribution.sort_order.order_id), distribution


def _sort_order(table: str, metadata: TableMetadata, order_id: int | None) -> SortOrder:
    if order_id is None:
        return metadata.default_sort_order
    order = {o.order_id: o for o in (UNSORTED, *metadata.sort_orders)}.get(order_id)
    if order is None:
        raise InvalidRequestError(
            f"table {table} has no sort order {order_id} (output-sort-order-id); it has "
            f"{', '.join(str(o.order_id) for o in metadata.sort_orders)}"
        )
    return order


_EPOCH_YEAR = 1970
_MICROS_PER_DAY = 86_400_000_000
_MICROS_PER_HOUR = 3_600_000_000


def _transform_expression(
    bridge: Bridge, transform: Transform, column: Column, type_: types.Type
) -> Column:
    """Return the transform of a column of that type."""
    if isinstance(transform, IdentityTransform):
        return column
    # The transforms of nanoseconds are those of their microseconds; the cast rounds down.
    match type_:
        case types.TimestampNsType():
            column, type_ = column.cast("timestamp_ntz"), types.TimestampType()
        case types.TimestamptzNsType():
            column, type_ = column.cast("timestamp_ltz"), types.TimestamptzType()
    match transform:
        case YearTransform():
            return F.year(_date(column, type_)) - _EPOCH_YEAR
        case MonthTransform():
            date = _date(column, type_)
            return (F.year(date) - _EPOCH_YEAR) * 12 + F.month(date) - 1
        case DayTransform():
            return _date(column, type_)
        case HourTransform() if isinstance(type_, types.TimestamptzType):
            return _floor_div(F.unix_micros(column), _MICROS_PER_HOUR)
        case HourTransform():
            return F.unix_date(column.cast("date")) * 24 + F.hour(column)
        case TruncateTransform(width):
            return _truncate(column, type_, width)
        case BucketTransform(count):
            bucket = _hash(bridge, column, type_).bitwiseAND(0x7FFFFFFF) % count
            return F.when(column.isNotNull(), bucket)
    raise UnsupportedFeatureError(f"rows cannot be distributed by the transform {transform}")


def _date(column: Column, type_: types.Type) -> Column:
    """Return the day in UTC, whatever the session's time zone is."""
    if isinstance(type_, types.TimestamptzType):
        days = _floor_div(F.unix_micros(column), _MICROS_PER_DAY)
        return F.date_from_unix_date(days.cast("int"))
    return column.cast("date")


def _floor_div(column: Column, divisor: int) -> Column:
    return F.call_function("div", column - F.pmod(column, F.lit(divisor)), F.lit(divisor))


def _truncate(column: Column, type_: types.Type, width: int) -> Column:
    if isinstance(type_, types.StringType | types.BinaryType):
        return F.substring(column, 1, width)
    step: int | Decimal = width
    if isinstance(type_, types.DecimalType):
        step = decimal_of(width, type_.scale)
    # The lowest values would overflow; they become null and so share a group of rows.
    return F.try_subtract(column, F.pmod(column, F.lit(step)))


def _hash(bridge: Bridge, column: Column, type_: types.Type) -> Column:
    match type_:
        case types.StringType():
            return bridge.writes.murmur3(column, "text")
        case types.BinaryType() | types.FixedType():
            return bridge.writes.murmur3(column, "bytes")
        case types.UUIDType():
            return bridge.writes.murmur3(F.unhex(F.replace(column, F.lit("-"))), "bytes")
        case types.DecimalType():
            return bridge.writes.murmur3(column, "decimal")
        case types.DateType():
            return bridge.writes.murmur3(F.unix_date(column).cast("long"), "long")
        case types.TimestamptzType():
            return bridge.writes.murmur3(F.unix_micros(column), "long")
        case types.TimestampType():
            return bridge.writes.murmur3(column, "long")
        case types.TimeType():
            micros = F.time_diff("microsecond", F.lit("00:00:00").cast("time(6)"), column)
            return bridge.writes.murmur3(micros, "long")
    return bridge.writes.murmur3(column.cast("long"), "long")
