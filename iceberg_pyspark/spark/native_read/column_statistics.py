"""Statistics of a table's columns for Spark's cost-based optimizer."""

from __future__ import annotations

from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.protocol.scans import ColumnValueStatistics
from iceberg_pyspark.spark.bridge.protocol.values import wire_value
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.table.reading.column_statistics import column_statistics
from iceberg_pyspark.table.reading.scan import TableScan


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
