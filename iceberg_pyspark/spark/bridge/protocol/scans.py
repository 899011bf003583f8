"""Scans: their plans, and the statistics and aggregates that Spark gets before it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message, PartsAnswer, Question
from iceberg_pyspark.spark.bridge.protocol.values import Expression, WireValue


class ScannedTable(Message, frozen=True, kw_only=True):
    """What a session scans: a table of a catalog, or a relation of the format `iceberg-py`."""

    session: str
    handle: str | None
    """That of a catalog's table."""

    source: str | None
    """The serialized `IcebergDataSource`."""

    locations: Mapping[str, str]
    """The session's settings of the locations that tables may read."""


class RowCondition(Message, frozen=True, kw_only=True):
    """One of the conditions on the rows of a scan, and the columns that it is on."""

    condition: Expression
    columns: tuple[str, ...]


class ScanQuestion(Message, frozen=True, kw_only=True):
    """The columns, conditions and limit of a query's scan."""

    table: ScannedTable
    schema: str
    """The columns, as a schema of Spark's."""

    conditions: tuple[RowCondition, ...]
    """All of them: the query evaluates those that are not proven."""

    needed: tuple[str, ...] | None
    """The columns that are needed for more than conditions; None: all."""

    limit: int | None
    """The query takes any rows, up to this number."""

    grouped: bool
    """Whether files of equal partition values form one group."""


class ScanParts(Question, frozen=True, kw_only=True):
    """The plan of a scan."""

    scan: ScanQuestion


class PlannedScan(PartsAnswer, frozen=True, kw_only=True):
    """The parts of a scan, each (plan, condition that keeps live rows, anti-joins)."""

    proven: tuple[int, ...] = ()
    """Which conditions all rows of the parts fulfil."""


class ScanRuntimeFilter(Question, frozen=True, kw_only=True):
    """The files of a planned scan that remain after run-time filters."""

    scan: ScanQuestion
    filters: tuple[Expression, ...]


class RemainingFiles(Answer, frozen=True, kw_only=True):
    """The locations of the remaining files, as the JVM opens them; None: all files remain."""

    locations: tuple[str, ...] | None


class AggregateFunction(Message, frozen=True, kw_only=True):
    """`rows` counts rows and has no column, `count` counts values of one."""

    kind: Literal["rows", "count", "min", "max"]
    column: str | None


class ScanAggregate(Question, frozen=True, kw_only=True):
    """Aggregates of a scan's rows, by groups."""

    table: ScannedTable
    columns: str
    """Those that are named, as a schema of Spark's."""

    groups: tuple[str, ...]
    aggregates: tuple[AggregateFunction, ...]
    condition: Expression | None


class KnownAggregates(Answer, frozen=True, kw_only=True):
    """A row for each group, its values and its aggregates; None where data must be read."""

    rows: tuple[tuple[WireValue, ...], ...] | None


class ScanStatistics(Question, frozen=True, kw_only=True):
    """Statistics of the columns of a catalog's table, for estimates."""

    table: ScannedTable


class ColumnFacts(Message, frozen=True, kw_only=True):
    """Statistics of the values of a column."""

    column: str
    type: str
    distinct_count: int
    null_count: int
    least: WireValue
    greatest: WireValue


class KnownStatistics(Answer, frozen=True, kw_only=True):
    """The columns with statistics."""

    columns: tuple[ColumnFacts, ...]
