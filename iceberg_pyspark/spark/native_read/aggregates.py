"""Aggregates of scans, computed from metadata.

Only columns that Spark sees unchanged are supported, and only conditions with an exact predicate.

Statistics of a table's columns for Spark's cost-based optimizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.protocol.messages import wire_value
from iceberg_pyspark.spark.bridge.protocol.scan_messages import (
    AggregateRows,
    ColumnValueStatistics,
    ScanAggregate,
)
from iceberg_pyspark.spark.bridge.spark_conditions import comparable_predicate_of
from iceberg_pyspark.spark.rows.spark_types import struct_from_json, to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.reading.metadata_aggregates import (
    Aggregate,
    column_statistics,
    known_aggregates,
)
from iceberg_pyspark.table.reading.table_scan import TableScan


def spark_column_statistics(scan: TableScan) -> tuple[ColumnValueStatistics, ...]:
    """Return the statistics of the columns that have any."""
    schema = scan.context.schemas[0]
    statistics = column_statistics(scan, schema.as_struct.fields)
    columns = []
    for f in schema.as_struct.fields:
        of_column = statistics.get(f.field_id)
        if of_column is None:
            continue
        (own,) = to_spark_schema(Schema(fields=(f,))).fields
        type_ = own.dataType
        if isinstance(type_, spark_types.StringType) and type_ != spark_types.StringType():
            continue  # Spark makes no estimates for collated strings.
        columns.append(
            ColumnValueStatistics(
                column=f.name,
                type=type_.json(),
                distinct_count=of_column.distinct_count,
                null_count=of_column.null_count,
                min_value=wire_value(of_column.least),
                max_value=wire_value(of_column.greatest),
            )
        )
    return tuple(columns)


_UNKNOWN = AggregateRows(rows=None)


def aggregate_rows(scan: TableScan, request: ScanAggregate) -> AggregateRows:
    """Return the aggregates of a scan as far as metadata suffice to compute them."""
    rows = _aggregate_rows(scan, request)
    if rows is None:
        return _UNKNOWN
    return AggregateRows(rows=tuple(tuple(map(wire_value, row)) for row in rows))


def _aggregate_rows(scan: TableScan, request: ScanAggregate) -> Sequence[tuple[Any, ...]] | None:
    schema = scan.context.schemas[0]
    struct = struct_from_json(request.columns)
    columns = {f.name: _column(schema, f) for f in struct.fields}
    if any(c is None for c in columns.values()):
        return None
    aggregates = [
        Aggregate(kind=a.kind, column=None if a.column is None else columns[a.column])
        for a in request.aggregates
    ]
    if (
        request.condition is None
        and not request.groups
        and all(a.kind == "rows" for a in aggregates)
    ):
        # known_count() can also subtract the positions of deleted rows.
        count = scan.known_count()
        return None if count is None else [(count,) * len(aggregates)]
    predicate = comparable_predicate_of(request.condition, schema)
    if predicate is None:
        return None
    by = [c for c in (columns[g] for g in request.groups) if c is not None]
    return known_aggregates(scan.pruned_by(predicate), by, aggregates)


def _column(schema: Schema, as_spark_sees_it: spark_types.StructField) -> NestedField | None:
    """Return the table's column if Spark sees it with the same type, else None."""
    column = schema.as_struct.field_named(as_spark_sees_it.name)
    if column is None:
        return None
    (own,) = to_spark_schema(Schema(fields=(column,))).fields
    return column if own.dataType == as_spark_sees_it.dataType else None
