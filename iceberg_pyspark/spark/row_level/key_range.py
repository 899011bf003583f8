"""Limits the table's rows of a join to the key range of the source.

The source is the source of a merge, or a subquery in the condition that selects the rows to change.
If the condition equates a column with an expression of the source, the minimum and maximum of the
expression (and its values, if there are few and the table is partitioned by the column) become a
filter on the table, by which Spark's scan skips files. This evaluates the source once more, so it
is done only if Spark considers the source deterministic and small.

The same filter tells whether rows that others have added meanwhile are a conflict. For that, it is
evaluated after the job, and only if there are such rows: running the whole operation again would
take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import and_
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.bridge.call_arguments import StatementExpression
from iceberg_pyspark.spark.bridge.py4j_names import Py4JError
from iceberg_pyspark.spark.bridge.spark_conditions import inclusive_predicate_of
from iceberg_pyspark.spark.row_level.target import Target

_log = get_logger(__name__)

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


Source: TypeAlias = tuple[DataFrame, Sequence[Key]]
"""The rows of a source, and the equalities of a row of the table and a row of the source."""


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

    def has_few_values(key: Key) -> bool:
        return key.name in target.partition_columns and (
            key.name not in target.alike_columns
            or bridge.joins.is_cheap(source, SMALL_SOURCE_BYTES)
        )

    return rows.where(_in_range(source, keys, has_few_values))


def subqueries_of(target: Target, rows: DataFrame, condition: Column) -> list[Source]:
    """Return the subqueries of a condition of which each selected row must match a row."""
    return [
        (target.pin(source), [Key(*key) for key in keys])
        for source, keys in target.session.bridge.joins.subquery_keys(rows, condition)
    ]


def rows_that_sources_select(
    target: Target, sources_of: Callable[[DataFrame], Iterable[Source]]
) -> Predicate:
    """Return a bound predicate that a row of the table fulfils if it matches a row of each source.

    Sources that may give other rows than before, or are not small, limit nothing.
    """
    bridge = target.session.bridge
    if target.reads.reads_itself:
        # New rows may change the source too.
        return AlwaysTrue()
    try:
        rows = target.rows()
        predicates: list[Predicate] = []
        for source, source_keys in sources_of(rows):
            # A new DataFrame, for which Spark looks for cached rows again.
            frame = source.select("*")
            keys = [k for k in source_keys if _has_range(k.type)]
            if keys and bridge.joins.is_cheap(frame, MAX_SOURCE_BYTES):
                selected = rows.where(_in_range(frame, keys, lambda key: True))
                condition = bridge.row_changes.condition_of(selected)
                predicates.append(inclusive_predicate_of(condition, target.schema))
        return and_(*predicates)
    except (PySparkException, Py4JError) as e:
        # The operation runs again, and will meet and report the same error.
        _log.info("the key range of a source of %s is unknown: %s", target.name, e)
        return AlwaysTrue()


def _in_range(
    source: DataFrame, keys: Sequence[Key], has_few_values: Callable[[Key], bool]
) -> Column:
    """Return the condition that rows of the table have keys in the range of the source's keys.

    The source's values of a key are collected, too, if `has_few_values` and they are few. Dates
    beyond Python's calendar limit nothing.
    """
    limits: list[Column] = []
    try:
        bounds = source.agg(
            *(f(k.value.column()).alias(f"{n}{i}") for i, k in enumerate(keys) for n, f in _BOUNDS)
        ).collect()[0]
        for i, key in enumerate(keys):
            least, greatest = bounds[2 * i], bounds[2 * i + 1]
            if least is None:
                return sql.lit(False)
            column = key.column.column()
            limits += [column >= sql.lit(least), column <= sql.lit(greatest)]
            if least != greatest and has_few_values(key):
                limits += _few_values(source, key)
    except (ValueError, OverflowError):
        return sql.lit(True)
    return reduce(lambda a, b: a & b, limits)


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
