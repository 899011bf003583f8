"""Questions about scans: plans, and statistics and aggregates that Spark gets before it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message, PartsAnswer, Question
from iceberg_pyspark.spark.bridge.protocol.values import Expression, WireValue


class ScannedTable(Message, frozen=True, kw_only=True):
    """The table that a session scans: a catalog's table, or a relation of format `iceberg-py`."""

    session: str
    handle: str | None
    """The handle of a catalog's table; None for a relation."""

    source: str | None
    """The serialized `IcebergDataSource`."""

    locations: Mapping[str, str]
    """The session's settings of the locations that tables may read."""


class RowCondition(Message, frozen=True, kw_only=True):
    """One condition on the rows of a scan, and the columns that it uses."""

    condition: Expression
    columns: tuple[str, ...]


class ScanQuestion(Message, frozen=True, kw_only=True):
    """The columns, conditions and limit of a query's scan."""

    table: ScannedTable
    schema: str
    """The columns, as a Spark schema in JSON."""

    conditions: tuple[RowCondition, ...]
    """All conditions of the query, which itself evaluates those that the answer does not prove."""

    needed: tuple[str, ...] | None
    """The columns that are needed for more than conditions; None means all columns."""

    limit: int | None
    """The greatest number of rows that the query takes, which may be any rows of the scan."""

    grouped: bool
    """Whether files of equal partition values form one group."""


class ScanParts(Question, frozen=True, kw_only=True):
    """The request for the plan of a scan."""

    scan: ScanQuestion


class PlannedScan(PartsAnswer, frozen=True, kw_only=True):
    """The parts of a scan, each (plan, condition that keeps live rows, anti-joins)."""

    proven: tuple[int, ...] = ()
    """The indexes of the conditions that all rows of the parts fulfil."""


class ScanRuntimeFilter(Question, frozen=True, kw_only=True):
    """The question which files of a planned scan remain after run-time filters."""

    scan: ScanQuestion
    filters: tuple[Expression, ...]


class RemainingFiles(Answer, frozen=True, kw_only=True):
    """The locations of the remaining files, as the table has them; None: all files remain."""

    locations: tuple[str, ...] | None


class AggregateFunction(Message, frozen=True, kw_only=True):
    """An aggregate: `rows` counts rows and has no column, `count` counts the values of a column."""

    kind: Literal["rows", "count", "min", "max"]
    column: str | None


class ScanAggregate(Question, frozen=True, kw_only=True):
    """The request for aggregates of a scan's rows by groups."""

    table: ScannedTable
    columns: str
    """The columns that are named, as a Spark schema in JSON."""

    groups: tuple[str, ...]
    aggregates: tuple[AggregateFunction, ...]
    condition: Expression | None


class KnownAggregates(Answer, frozen=True, kw_only=True):
    """A row for each group, its values and its aggregates; None if data files must be read."""

    rows: tuple[tuple[WireValue, ...], ...] | None


class ScanStatistics(Question, frozen=True, kw_only=True):
    """The request for column statistics of a catalog's table, for Spark's estimates."""

    table: ScannedTable


class ColumnFacts(Message, frozen=True, kw_only=True):
    """The statistics of a column's values."""

    column: str
    type: str
    distinct_count: int
    null_count: int
    least: WireValue
    greatest: WireValue


class KnownStatistics(Answer, frozen=True, kw_only=True):
    """The statistics of the columns that have any."""

    columns: tuple[ColumnFacts, ...]
