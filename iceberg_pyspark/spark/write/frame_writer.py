"""Writes the rows of a DataFrame to data files, and chooses the writer.

This process writes the few rows of a local relation, without a job. Spark's own Parquet writer
writes other rows if its files are correct for the table; otherwise Python writes them in Spark's
tasks.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spark.bridge.features import NATIVE_WRITE, WRITE_LAYOUT
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    distribute_and_sort,
    no_distribution,
)
from iceberg_pyspark.spark.write.file_job import write_frame
from iceberg_pyspark.spark.write.native_writer import write_natively
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.sorting import UNSORTED
from iceberg_pyspark.storage.files.file_io import FileIO


def write_files(
    bridge: Bridge,
    frame: DataFrame,
    context: WriteContext,
    distribution: WriteDistribution,
    io: FileIO,
) -> list[DataFile]:
    """Write the rows; without a distribution if the frame lacks columns that the distribution
    needs.
    """
    if not (bridge.has(WRITE_LAYOUT) and _has_columns_of(frame, distribution)):
        # Columns that the frame leaves out are null in every row.
        distribution = no_distribution(distribution.schema, distribution.spec)
        context = replace(context, sort_order_id=UNSORTED.order_id)
    if not distribution.sorts_rows and (rows := _local_rows(bridge, frame)) is not None:
        return write_data_files(context, rows.to_batches(), io, partition_id=0, task_id=0)
    files = None
    if bridge.has(NATIVE_WRITE):
        files = write_natively(bridge, frame, context, distribution, io)
    if files is None:
        files = write_frame(distribute_and_sort(bridge, frame, distribution), context, io)
    return files


def _has_columns_of(frame: DataFrame, distribution: WriteDistribution) -> bool:
    """Return whether the frame has the columns by which rows are distributed and sorted."""
    schema = distribution.schema
    sort_source_ids = {f.source_id for f in distribution.ordering}
    sort_source_ids |= {f.source_id for f in distribution.spec.fields}
    while enclosing := {schema.parent_by_id.get(i, i) for i in sort_source_ids} - sort_source_ids:
        sort_source_ids |= enclosing
    names = {f.name.lower() for f in schema.fields if f.field_id in sort_source_ids}
    return names <= {name.lower() for name in frame.columns}


_MAX_ROWS = 1000
# Types whose Python values equal Arrow's; not timestamps, which Python shows in a time zone.
_TYPES_EQUAL_IN_ARROW = (
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


def _local_rows(bridge: Bridge, frame: DataFrame) -> pa.Table | None:
    """Return the rows that the plan contains, as in `VALUES (...)`, or None if a job must compute
    them.
    """
    if not all(isinstance(f.dataType, _TYPES_EQUAL_IN_ARROW) for f in frame.schema.fields):
        return None
    if not bridge.holds_rows(frame, _MAX_ROWS):
        return None
    rows = frame.collect()
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    columns = [pa.array([r[i] for r in rows], f.type) for i, f in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)
