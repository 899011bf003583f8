"""Opens the portable stream of a table: its options, its columns and how it loads the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.open_stream import OpenStream
from iceberg_pyspark.spark.data_source.read_job import ReadJob
from iceberg_pyspark.spark.data_source.stream_reader import IcebergStreamReader
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.options.stream_options import parse_stream_options

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob

try:
    from iceberg_pyspark.spark.data_source.limited_stream_reader import LimitedStreamReader
except ImportError:  # before Spark 4.2
    LimitedStreamReader = IcebergStreamReader  # type: ignore[assignment, misc]


def open_stream_reader(
    options: Mapping[str, str], job: ReadJob | MetadataTableReadJob, schema: StructType
) -> IcebergStreamReader:
    """Return a reader of the columns of `schema`; raise `InvalidRequestError` for no stream."""
    stream_options = parse_stream_options(options)
    if not isinstance(job, ReadJob):
        raise InvalidRequestError(
            f"{job.table.table} is a metadata table, which is no stream: read it with spark.read, "
            "in a foreachBatch if need be"
        )
    catalog, identifier = find_table(job.table)

    def load() -> LoadedTable:
        return load_table(catalog, identifier, job.table)

    stream = OpenStream(
        schema=job.loaded_table.metadata.current_schema,
        options=stream_options,
        loaded_table=job.loaded_table,
        load=load,
    )
    return LimitedStreamReader(stream, job.stream_scan_of(schema))
