"""A stream of one query: the table as the query began with it, and as it is now.

A query may run for months, so a stream keeps the schema it began with, and nothing that grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from iceberg_pyspark.catalogs.catalog import LoadedTable, check_same_table
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.options.stream_options import StreamOptions
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.change_feed.change_stream import ChangeStream
from iceberg_pyspark.table.change_feed.changelog_range import FORMS, feed_columns
from iceberg_pyspark.table.metadata_tables.changes_table import describing_columns
from iceberg_pyspark.table.reading.append_stream import AppendStream
from iceberg_pyspark.table.reading.snapshot_stream import SnapshotStream
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset
from iceberg_pyspark.table.reading.stream_scan import scan_of_batch, scan_of_stream
from iceberg_pyspark.table.reading.table_scan import TableScan
from iceberg_pyspark.table.table_storage import table_io

APPENDS = "appends"

Kind = TypeVar("Kind", AppendStream, ChangeStream)


def no_stream(name: str) -> InvalidRequestError:
    """Return the error for a metadata table that is read as a stream."""
    return InvalidRequestError(
        f"{name} is a metadata table, which is no stream: read it with spark.read, in a "
        "foreachBatch if need be; of the metadata tables, changes is a stream"
    )


@dataclass(kw_only=True)
class OpenStream:
    """A stream of one query, which only the thread of the query uses."""

    schema: Schema
    """The table's schema when the query began, of which the query's plan has the columns."""

    options: StreamOptions
    loaded_table: LoadedTable
    """The table as it was last loaded."""

    load: Callable[[], LoadedTable]
    kind: str = APPENDS
    """Which rows the stream has: appended ones, `changes`, or one of Spark's change feeds."""

    @property
    def has_changes(self) -> bool:
        """Whether the stream has deleted rows too."""
        return self.kind != APPENDS

    def refresh(self) -> None:
        """Load the table again; raise `TableRecreatedError` if another one has its name."""
        self.loaded_table = check_same_table(self.loaded_table, self.load())

    def offsets(self) -> SnapshotStream:
        """Return the stream by the table as it was last loaded."""
        return self._of(ChangeStream) if self.has_changes else self._of(AppendStream)

    def _of(self, kind: type[Kind]) -> Kind:
        table = self.loaded_table
        return kind(
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
        """Return the scan of a batch of appended rows, with its columns by `projection`."""
        self._prepare(end)
        stream = self._of(AppendStream)
        batch = stream.batch(start, end)
        return scan_of_batch(
            stream, batch, self.schema, lambda schema: projection(schema, stream.metadata)
        )

    def changes(
        self, end: StreamOffset, projection: Callable[[Schema, TableMetadata], Schema]
    ) -> tuple[TableScan, ChangeStream]:
        """Return a scan with the columns of a batch of changes, and the stream that plans it."""
        self._prepare(end)
        stream = self._of(ChangeStream)
        columns = self.described().fields
        scan = scan_of_stream(
            stream,
            self.schema,
            lambda schema: projection(
                replace(schema, fields=(*schema.fields, *columns)), stream.metadata
            ),
        )
        return scan, stream

    def described(self) -> Schema:
        """Return the columns that describe a change, of a stream that is not of appended rows."""
        if self.kind not in FORMS:
            return describing_columns(self.schema)
        table = self.loaded_table
        return feed_columns(str(table.identifier), table.metadata, self.schema)

    def _prepare(self, end: StreamOffset) -> None:
        """Load the table again if a batch ends after what is known of it."""
        if self.loaded_table.plan_scan is not None:
            raise UnsupportedFeatureError(
                f"table {self.loaded_table.identifier}: its catalog's server plans its scans, and "
                "a stream is planned here; set scan-planning-mode to client on the server or for "
                "the catalog"
            )
        if end != START and end.snapshot_id not in self.loaded_table.metadata.snapshot_by_id:
            self.refresh()
