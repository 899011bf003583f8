"""What Spark's cost-based optimizer is told of the columns of a table, as the bridge takes it."""

from __future__ import annotations

import json

from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.native_constants import value_cell
from iceberg_pyspark.spark.types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.table.column_statistics import column_statistics
from iceberg_pyspark.table.scan import TableScan


def shown_column_statistics(scan: TableScan) -> str:
    """By column its type, and as cells: distinct values, nulls, the least value, the greatest."""
    schema = scan.context.schemas[0]
    found = column_statistics(scan, schema.as_struct.fields)
    shown = {}
    for f in schema.as_struct.fields:
        known = found.get(f.field_id)
        if known is None:
            continue
        (own,) = to_spark_schema(Schema(fields=(f,))).fields
        type_ = own.dataType
        if isinstance(type_, spark_types.StringType) and type_ != spark_types.StringType():
            continue  # of collated texts Spark estimates nothing
        cells = (known.distinct_count, known.null_count, known.least, known.greatest)
        shown[f.name] = [type_.json(), *map(value_cell, cells)]
    return json.dumps(shown)
