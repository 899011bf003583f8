"""The rows that snapshots added and removed, as a stream of Arrow batches.

Unlike the metadata table `changes`, which shows what Java shows, this leaves out the rows that
copy-on-write only copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.metadata_columns import COMMIT_COLUMNS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.change_feed.carried_rows import without_carried_rows
from iceberg_pyspark.table.change_feed.change_stream import as_insert
from iceberg_pyspark.table.metadata_tables.changes_table import (
    ChangePlan,
    ChangeRows,
    ChangeScanTask,
    changes_schema,
)
from iceberg_pyspark.table.metadata_tables.lookup import changing_snapshots
from iceberg_pyspark.table.reading.row_stream import RowStream
from iceberg_pyspark.table.reading.snapshot_selection import (
    SnapshotSelector,
    Version,
    milliseconds_of,
)
from iceberg_pyspark.table.reading.table_scan import scan_table


@checked_methods
@dataclass(frozen=True, kw_only=True)
class TableChanges(RowStream):
    """The rows that snapshots of one lineage changed; created by `Table.changes` and `follow`.

    The snapshots come one after another, each with its `DELETE` rows first. Applied in this order
    to the rows at the start, the changes give the rows at the end. Compaction changes no row.
    """

    name: str
    snapshots: tuple[Snapshot, ...]
    """The snapshots, the oldest first, also those that changed no row."""

    metadata: TableMetadata = field(repr=False)
    io: FileIO = field(repr=False)

    @property
    def schema(self) -> Schema:
        """The columns of the table and of the change."""
        of_changes = changes_schema(self.metadata)
        names = {f.name for f in of_changes.fields}
        for f in COMMIT_COLUMNS:
            if f.name in names:
                raise InvalidRequestError(
                    f"table {self.name} has a column {f.name}, which changes have too; rename it"
                )
        return Schema(fields=(*of_changes.fields, *COMMIT_COLUMNS))

    @property
    def snapshot(self) -> Snapshot | None:
        """The last snapshot, whose id is the start of the next read; None if there is none."""
        return self.snapshots[-1] if self.snapshots else None

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the changes as a stream, in bounded memory.

        Raise `NoSuchSnapshotError` if the snapshot before one of the snapshots has expired, unless
        that has only appended rows.
        """
        return pa.RecordBatchReader.from_batches(to_arrow_schema(self.schema), self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        fields = self.schema.fields
        plan = ChangePlan(self.io, self.metadata, self.name, self.snapshots[::-1])
        for snapshot, deletes, inserts in plan.of_each_snapshot():
            yield from without_carried_rows(
                self._read,
                fields,
                deletes=deletes,
                inserts=inserts,
                compared=len(self.metadata.current_schema.fields),
                sequence_number=snapshot.sequence_number,
            )

    def _read(
        self, tasks: Sequence[ChangeScanTask], fields: Sequence[NestedField]
    ) -> Iterator[pa.RecordBatch]:
        reader = ChangeRows(context=scan_table(self.name, self.metadata, self.io).context)
        projection = Schema(fields=tuple(fields))
        for task in tasks:
            yield from reader.read(self.io, task, projection)


OpenChanges: TypeAlias = Callable[[LoadedTable, Sequence[Snapshot]], TableChanges]
"""Returns the changes of some snapshots, the newest first."""


def changes_between(
    table: LoadedTable,
    io: FileIO,
    *,
    start: Version | None,
    end: Version | None,
    branch: str | None,
) -> TableChanges:
    """Return the changes after `start` up to `end`, as `Table.changes` describes."""
    metadata = table.metadata
    start_id, start_ms = _bound(start, metadata)
    end_id, end_ms = _bound(end, metadata)
    selector = SnapshotSelector(
        branch=branch,
        start_snapshot_id=start_id,
        start_timestamp_ms=start_ms,
        end_snapshot_id=end_id,
        end_timestamp_ms=end_ms,
    )
    return changes_of(table, io, changing_snapshots(table, selector))


def changes_of(table: LoadedTable, io: FileIO, snapshots: Sequence[Snapshot]) -> TableChanges:
    """Return the changes of some snapshots, which are given with the newest first."""
    return TableChanges(
        name=str(table.identifier),
        snapshots=tuple(reversed(snapshots)),
        metadata=table.metadata,
        io=io,
    )


def rows_as_changes(table: LoadedTable, io: FileIO, snapshot: Snapshot) -> TableChanges:
    """Return all rows of a snapshot as if it had inserted them."""
    return changes_of(table, io, [as_insert(snapshot)])


def _bound(version: Version | None, metadata: TableMetadata) -> tuple[int | None, int | None]:
    """Return the id of a snapshot, or a time in milliseconds."""
    if isinstance(version, datetime):
        return None, milliseconds_of(version)
    if isinstance(version, str):
        version = metadata.ref_snapshot(version).snapshot_id
    return version, None
