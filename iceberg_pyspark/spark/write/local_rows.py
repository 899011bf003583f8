"""Rows that a query's plan holds itself, `VALUES (...)` say: few, and there without a job."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from iceberg_pyspark.arrow.schemas import to_arrow_schema
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.rows.types import from_spark_schema

_MOST_ROWS = 1000
# values that Python holds as Arrow does: not timestamps, which it would show in a time zone
_PLAIN = (
    spark_types.BooleanType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.FloatType,
    spark_types.DoubleType,
    spark_types.DecimalType,
    spark_types.DateType,
    spark_types.StringType,
    spark_types.BinaryType,
)


def local_rows(bridge: Bridge, frame: DataFrame) -> pa.Table | None:
    """All rows of a DataFrame if they are such; None if a job must make them."""
    if not all(isinstance(f.dataType, _PLAIN) for f in frame.schema.fields):
        return None
    if not bridge.holds_rows(frame, _MOST_ROWS):
        return None
    rows = frame.collect()
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    columns = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)
