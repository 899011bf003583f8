"""Opens the portable stream of a table: its options, its columns and how it loads the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spark.data_source.open_stream import APPENDS, OpenStream, no_stream
from iceberg_pyspark.spark.data_source.read_job import ReadJob
from iceberg_pyspark.spark.data_source.stream_reader import IcebergStreamReader
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.options.stream_options import (
    check_options_of_changes,
    parse_stream_options,
)
from iceberg_pyspark.spark.rows.spark_types import project_with_hidden_columns
from iceberg_pyspark.table.metadata_tables.lookup import CHANGES
from iceberg_pyspark.table.reading.stream_offsets import START

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
    from iceberg_pyspark.spark.data_source.table_state import StateReadJob

try:
    from iceberg_pyspark.spark.data_source.limited_stream_reader import LimitedStreamReader
except ImportError:  # before Spark 4.2
    LimitedStreamReader = IcebergStreamReader  # type: ignore[assignment, misc]


def open_stream_reader(
    options: Mapping[str, str],
    job: ReadJob | MetadataTableReadJob | StateReadJob,
    schema: StructType,
) -> IcebergStreamReader:
    """Return a reader of the columns of `schema`; raise `InvalidRequestError` for no stream."""
    stream_options = parse_stream_options(options)
    catalog, identifier = find_table(job.table)
    kind = APPENDS
    if not isinstance(job, ReadJob):
        kind = job.name
        if kind != CHANGES:
            raise no_stream(job.table.table)
        check_options_of_changes(options)
        identifier = job.loaded_table.identifier

    def load() -> LoadedTable:
        return load_table(catalog, identifier, job.table)

    stream = OpenStream(
        schema=job.loaded_table.metadata.current_schema,
        options=stream_options,
        loaded_table=job.loaded_table,
        load=load,
        kind=kind,
    )
    if isinstance(job, ReadJob):
        return LimitedStreamReader(stream, job.stream_scan_of(schema))
    scan, _ = stream.changes(
        START,
        lambda columns, metadata: project_with_hidden_columns(columns, schema, metadata),
    )
    return LimitedStreamReader(stream, scan)
