"""A stream of one query: the table as the query began with it, and as it is now.

A query may run for months, so a stream keeps the schema it began with, and nothing that grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import LoadedTable, check_same_table
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.options.stream_options import StreamOptions
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.reading.append_stream import AppendStream
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset
from iceberg_pyspark.table.reading.stream_scan import scan_of_batch
from iceberg_pyspark.table.reading.table_scan import TableScan
from iceberg_pyspark.table.table_storage import table_io


@dataclass(kw_only=True)
class OpenStream:
    """A stream of one query, which only the thread of the query uses."""

    schema: Schema
    """The table's schema when the query began, of which the query's plan has the columns."""

    options: StreamOptions
    loaded_table: LoadedTable
    """The table as it was last loaded."""

    load: Callable[[], LoadedTable]

    def refresh(self) -> None:
        """Load the table again; raise `TableRecreatedError` if another one has its name."""
        self.loaded_table = check_same_table(self.loaded_table, self.load())

    def appends(self) -> AppendStream:
        """Return the stream by the table as it was last loaded."""
        table = self.loaded_table
        return AppendStream(
            table=str(table.identifier),
            metadata=table.metadata,
            io=table_io(table),
            rules=self.options.rules,
            branch=self.options.branch,
        )

    def scan(
        self,
        start: StreamOffset,
        end: StreamOffset,
        projection: Callable[[Schema, TableMetadata], Schema],
    ) -> TableScan:
        """Return the scan of a batch; `projection` takes its columns from a schema."""
        if self.loaded_table.plan_scan is not None:
            raise UnsupportedFeatureError(
                f"table {self.loaded_table.identifier}: its catalog's server plans its scans, and "
                "a stream is planned here; set scan-planning-mode to client on the server or for "
                "the catalog"
            )
        if end != START and end.snapshot_id not in self.loaded_table.metadata.snapshot_by_id:
            self.refresh()
        stream = self.appends()
        batch = stream.batch(start, end)
        return scan_of_batch(
            stream, batch, self.schema, lambda schema: projection(schema, stream.metadata)
        )
