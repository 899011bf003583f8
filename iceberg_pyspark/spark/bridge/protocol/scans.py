"""Scans: their plans, and what Spark is told before it reads."""

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
    """What `IcebergDataSource` says of itself."""

    locations: Mapping[str, str]
    """What the session says of where tables may read, by the names of its settings."""


class RowCondition(Message, frozen=True, kw_only=True):
    """One of the conditions on the rows of a scan, and the columns that it is on."""

    condition: Expression
    columns: tuple[str, ...]


class ScanQuestion(Message, frozen=True, kw_only=True):
    """What a query wants of a scan."""

    table: ScannedTable
    wanted: str
    """The columns, as a schema of Spark's."""

    conditions: tuple[RowCondition, ...]
    """All of them: the query evaluates those that are not proven."""

    needed: tuple[str, ...] | None
    """The columns that are needed for more than conditions; None: all."""

    limit: int | None
    """Of so many rows any are as good."""

    grouped: bool
    """Whether files of equal partition values are wanted together."""


class ScanPlan(Question, frozen=True, kw_only=True):
    """The plan of a scan."""

    scan: ScanQuestion


class PlannedScan(PartsAnswer, frozen=True, kw_only=True):
    """The parts of a scan, each (plan, condition that keeps live rows, anti-joins)."""

    proven: tuple[int, ...] = ()
    """Which conditions all rows of the parts fulfil."""


class ScanRuntimeFilter(Question, frozen=True, kw_only=True):
    """Which files of a planned scan are left by filters that are known while it runs."""

    scan: ScanQuestion
    filters: tuple[Expression, ...]


class KeptFiles(Answer, frozen=True, kw_only=True):
    """Where the JVM finds the files that are left; None: all are."""

    locations: tuple[str, ...] | None


class AskedAggregate(Message, frozen=True, kw_only=True):
    """`rows` counts rows and has no column, `count` counts values of one."""

    kind: Literal["rows", "count", "min", "max"]
    column: str | None


class ScanAggregate(Question, frozen=True, kw_only=True):
    """Aggregates of a scan's rows, by groups."""

    table: ScannedTable
    columns: str
    """Those that are named, as a schema of Spark's."""

    groups: tuple[str, ...]
    aggregates: tuple[AskedAggregate, ...]
    condition: Expression | None


class KnownAggregates(Answer, frozen=True, kw_only=True):
    """A row for each group, its values and its aggregates; None where data must be read."""

    rows: tuple[tuple[WireValue, ...], ...] | None


class ScanStatistics(Question, frozen=True, kw_only=True):
    """What is known of the columns of a catalog's table, for estimates."""

    table: ScannedTable


class ColumnFacts(Message, frozen=True, kw_only=True):
    """What is known of the values of a column."""

    column: str
    type: str
    distinct_count: int
    null_count: int
    least: WireValue
    greatest: WireValue


class KnownStatistics(Answer, frozen=True, kw_only=True):
    """The columns of which something is known."""

    columns: tuple[ColumnFacts, ...]
