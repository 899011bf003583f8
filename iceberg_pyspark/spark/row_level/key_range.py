"""Limits the table's rows of a join to the key range of the source.

The source is the source of a merge, or a subquery in the condition that selects the rows to change.
If the condition equates a column with an expression of the source, the minimum and maximum of the
expression (and its values, if there are few and the table is partitioned by the column) become a
filter on the table, by which Spark's scan skips files. This evaluates the source once more, so it
is done only if Spark considers the source deterministic and small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.values import StatementExpression
from iceberg_pyspark.spark.row_level.target import Target

MAX_SOURCE_BYTES = 256 * 1024 * 1024
MAX_VALUES = 256
SMALL_SOURCE_BYTES = 1024 * 1024
"""A larger source is assumed to have too many values if only few values would prune files."""

MIN_TABLE_BYTES = 128 * 1024 * 1024
"""Reading a smaller table is faster than evaluating the source, unless partitions are pruned."""

OPEN_FILE_BYTES = 4 * 1024 * 1024
"""The number of bytes that are read in the time of opening a file, as Spark also assumes."""

_RANGE_TYPES = (
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.DecimalType,
    spark_types.DateType,
    spark_types.StringType,
)


@dataclass(frozen=True)
class Key:
    """An equality of a join: the table's `column`, perhaps widened, equals the source's `value`."""

    name: str
    column: StatementExpression
    value: StatementExpression
    type: spark_types.DataType


def keys_of(target: Target, rows: DataFrame, source: DataFrame, condition: Column) -> Sequence[Key]:
    """Return the equalities in the condition; `rows` are the target's rows."""
    return [
        Key(*key) for key in target.session.bridge.joins.equi_join_keys(rows, source, condition)
    ]


def prune_by_key_range(
    target: Target, rows: DataFrame, source: DataFrame, keys: Sequence[Key]
) -> DataFrame:
    """Return the rows within the key range of the source, or all rows if that is not cheap."""
    bridge = target.session.bridge
    keys = [k for k in keys if _has_range(k.type)]
    size = target.size_in_bytes + target.file_count * OPEN_FILE_BYTES
    if size < MIN_TABLE_BYTES:
        keys = [k for k in keys if k.name in target.partition_columns]
    if not keys or target.file_count < 2 or not bridge.joins.is_cheap(source, MAX_SOURCE_BYTES):
        return rows
    bounds = source.agg(
        *(f(k.value.column()).alias(f"{n}{i}") for i, k in enumerate(keys) for n, f in _BOUNDS)
    ).collect()[0]
    limits: list[Column] = []
    for i, key in enumerate(keys):
        least, greatest = bounds[2 * i], bounds[2 * i + 1]
        if least is None:
            return rows.where(sql.lit(False))
        column = key.column.column()
        limits += [column >= sql.lit(least), column <= sql.lit(greatest)]
        if key.name in target.partition_columns and least != greatest:
            alike = key.name in target.alike_columns
            if not alike or bridge.joins.is_cheap(source, SMALL_SOURCE_BYTES):
                limits += _few_values(source, key)
    return rows.where(reduce(lambda a, b: a & b, limits))


def prune_by_subqueries(target: Target, rows: DataFrame, condition: Column) -> DataFrame:
    """Return the rows that some subquery of the condition may select."""
    for source, keys in target.session.bridge.joins.subquery_keys(rows, condition):
        source = target.pin(source)
        rows = prune_by_key_range(target, rows, source, [Key(*key) for key in keys])
    return rows


_BOUNDS = (("least", sql.min), ("greatest", sql.max))


def rows_with_source_keys(
    target: Target, rows: DataFrame, source: DataFrame, keys: Sequence[Key], *, outer: bool
) -> DataFrame:
    """Return the rows that have the keys of some source row, if finding them first is cheaper.

    `outer` means that the later join keeps source rows without a match.
    """
    bridge = target.session.bridge
    matching_rows: DataFrame = bridge.joins.semi_join_on_keys(
        rows,
        source,
        [(k.column, k.value) for k in keys],
        outer=outer,
        records=target.record_count,
        size_in_bytes=target.size_in_bytes,
    )
    return matching_rows


def _has_range(type_: spark_types.DataType) -> bool:
    # Collated strings can be equal although their bytes differ.
    if isinstance(type_, spark_types.StringType):
        return type_ == spark_types.StringType()
    return isinstance(type_, _RANGE_TYPES)


def _few_values(source: DataFrame, key: Key) -> list[Column]:
    values = source.select(key.value.column().alias("v")).distinct().limit(MAX_VALUES + 1).collect()
    keys = [r[0] for r in values if r[0] is not None]
    return [key.column.column().isin(keys)] if len(values) <= MAX_VALUES else []
