"""The metadata tables as methods that return Arrow tables, each read again."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.table.metadata_tables.rows import MetadataTable
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector


class OpenMetadataTable(Protocol):
    """A function that returns a metadata table by its name, of the selected snapshot."""

    def __call__(self, name: str, *, selector: SnapshotSelector | None = None) -> MetadataTable:
        """Return the metadata table; raise `NoSuchSnapshotError`."""
        ...


@checked_methods
class Inspection:
    """The metadata tables of one table; without `snapshot_id`, those of the current snapshot.

    `Table.metadata_table` returns the same rows as a stream, and of a branch, tag or time.
    """

    def __init__(self, open_table: OpenMetadataTable) -> None:
        self._open = open_table

    def snapshots(self) -> pa.Table:
        """Return the snapshots: commit time, id, parent, operation and summary."""
        return self._read("snapshots")

    def history(self) -> pa.Table:
        """Return which snapshot was current since when."""
        return self._read("history")

    def refs(self) -> pa.Table:
        """Return the branches and tags."""
        return self._read("refs")

    def metadata_log_entries(self) -> pa.Table:
        """Return the metadata files and the snapshots that were current in them."""
        return self._read("metadata_log_entries")

    def partitions(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the partitions with their numbers of rows, files and deletes."""
        return self._read("partitions", snapshot_id)

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the data and delete files, with the metrics of their columns."""
        return self._read("files", snapshot_id)

    def data_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the data files."""
        return self._read("data_files", snapshot_id)

    def delete_files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the delete files and deletion vectors."""
        return self._read("delete_files", snapshot_id)

    def position_deletes(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the positions that position delete files and deletion vectors delete."""
        return self._read("position_deletes", snapshot_id)

    def entries(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the entries of the manifests: files with status and sequence numbers."""
        return self._read("entries", snapshot_id)

    def manifests(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the manifests."""
        return self._read("manifests", snapshot_id)

    def all_files(self) -> pa.Table:
        """Return the files of all snapshots."""
        return self._read("all_files")

    def all_data_files(self) -> pa.Table:
        """Return the data files of all snapshots."""
        return self._read("all_data_files")

    def all_delete_files(self) -> pa.Table:
        """Return the delete files of all snapshots."""
        return self._read("all_delete_files")

    def all_entries(self) -> pa.Table:
        """Return the entries of the manifests of all snapshots."""
        return self._read("all_entries")

    def all_manifests(self) -> pa.Table:
        """Return the manifests of all snapshots."""
        return self._read("all_manifests")

    def changes(self) -> pa.Table:
        """Return the rows that the snapshots of main have added and removed."""
        return self._read("changes")

    def _read(self, name: str, snapshot_id: int | None = None) -> pa.Table:
        selector = None if snapshot_id is None else SnapshotSelector(snapshot_id=snapshot_id)
        return self._open(name, selector=selector).to_arrow()
