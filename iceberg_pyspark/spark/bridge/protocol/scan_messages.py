"""Requests about scans: plans, and statistics and aggregates that Spark gets before it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.messages import (
    Expression,
    Message,
    Request,
    Response,
    ResponseWithParts,
    WireValue,
)


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


class StreamBatch(Message, frozen=True, kw_only=True):
    """A batch of an open stream."""

    stream: str
    start: str
    end: str


class RowOrder(Message, frozen=True, kw_only=True):
    """The first key of an order of rows: a column of the scan."""

    column: str
    descending: bool
    nulls_first: bool


class ScanDefinition(Message, frozen=True, kw_only=True):
    """The columns, conditions and limit of a query's scan."""

    table: ScannedTable
    schema: str
    """The columns, as a Spark schema in JSON."""

    conditions: tuple[RowCondition, ...]
    """All conditions of the query; it evaluates the conditions that the response does not prove."""

    required_columns: tuple[str, ...] | None
    """The columns that the query needs for more than conditions; None means all columns."""

    limit: int | None
    """The greatest number of rows that the query takes."""

    order: RowOrder | None
    """The order whose first rows the query takes, of those that fulfil its conditions; without one,
    it takes any rows, and has no conditions.
    """

    grouped: bool
    """Whether files of equal partition values form one group."""

    files: tuple[str, ...] | None = None
    """The locations of the only data files to scan; None: all."""

    batch: StreamBatch | None = None
    """The batch of a stream that is scanned; then `table` names no table."""


class ScanParts(Request, frozen=True, kw_only=True):
    """The request for the plan of a scan."""

    scan: ScanDefinition


class PlannedScan(ResponseWithParts, frozen=True, kw_only=True):
    """The parts of a scan, each (plan, condition that keeps live rows, anti-joins)."""

    proven_conditions: tuple[int, ...] = ()
    """The indexes of the conditions that all rows of the parts fulfil."""


class ScanRuntimeFilter(Request, frozen=True, kw_only=True):
    """The request for the files of a planned scan that remain after run-time filters."""

    scan: ScanDefinition
    filters: tuple[Expression, ...]


class RemainingFiles(Response, frozen=True, kw_only=True):
    """The locations of the remaining files, as the table has them; None: all files remain."""

    locations: tuple[str, ...] | None


class ScanFilterColumns(Request, frozen=True, kw_only=True):
    """The request for those of these columns by whose values most files can be skipped."""

    table: ScannedTable
    columns: tuple[str, ...]


class FilterColumns(Response, frozen=True, kw_only=True):
    """The columns whose bounds differ from file to file."""

    columns: tuple[str, ...]


class AggregateFunction(Message, frozen=True, kw_only=True):
    """An aggregate: `rows` counts rows and has no column, `count` counts the values of a column."""

    kind: Literal["rows", "count", "min", "max"]
    column: str | None


class ScanAggregate(Request, frozen=True, kw_only=True):
    """The request for aggregates of a scan's rows by groups."""

    table: ScannedTable
    columns: str
    """The columns that are named, as a Spark schema in JSON."""

    groups: tuple[str, ...]
    aggregates: tuple[AggregateFunction, ...]
    condition: Expression | None


class AggregateRows(Response, frozen=True, kw_only=True):
    """A row for each group, its values and its aggregates; None if all data files must be read."""

    rows: tuple[tuple[WireValue, ...], ...] | None
    other_files: tuple[str, ...] = ()
    """The locations of the files that the only row leaves out."""


class ScanStatistics(Request, frozen=True, kw_only=True):
    """The request for column statistics of a catalog's table, for Spark's estimates."""

    table: ScannedTable


class ColumnValueStatistics(Message, frozen=True, kw_only=True):
    """The statistics of a column's values."""

    column: str
    type: str
    distinct_count: int
    null_count: int
    min_value: WireValue
    max_value: WireValue


class TableStatistics(Response, frozen=True, kw_only=True):
    """The statistics of the columns that have any."""

    columns: tuple[ColumnValueStatistics, ...]
