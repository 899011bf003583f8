"""Commits a statistics file for its snapshot, whatever other writers commit meanwhile."""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.changes import (
    Changes,
    SetPartitionStatistics,
    SetStatistics,
    TableUpdate,
    same_table,
)
from iceberg_pyspark.changes.outcomes import NeverSent, NotCommitted
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit import CommitStep, MetadataStep, commit_steps
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.written_files import remove_files


def commit_statistics(
    table: MaintainedTable, newest: LoadedTable, file: StatisticsFile | PartitionStatisticsFile
) -> LoadedTable:
    """Commit this file as the statistics of its snapshot, and return the table as committed.

    Takes ownership of the file: it is removed if the commit is refused, and stays after
    `CommitStateUnknownError`. Raises `ConcurrentChangeError` if the snapshot has expired meanwhile,
    and `CommitConflictError`.
    """
    step = _StatisticsStep(newest, table.io, file)
    return commit_steps(table.catalog, newest, [step], start="newest", clock=table.clock)


class _StatisticsStep(CommitStep):
    """A step that sets the statistics file of a snapshot; each attempt commits the same file."""

    def __init__(
        self, table: LoadedTable, io: FileIO, file: StatisticsFile | PartitionStatisticsFile
    ) -> None:
        self._table = table
        self._io = io
        self._file = file
        self._uuid = table.metadata.table_uuid
        # a version 1 table without a UUID gets one
        self._set = MetadataStep(self._changes)

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        return self._set.changes(metadata)

    def _changes(self, metadata: TableMetadata) -> Changes:
        if self._file.snapshot_id not in metadata.snapshot_by_id:
            raise ConcurrentChangeError(
                f"table {self._table.identifier}: snapshot {self._file.snapshot_id} expired while "
                "its statistics were computed; compute the statistics of the current snapshot"
            )
        update: TableUpdate = (
            SetStatistics(self._file)
            if isinstance(self._file, StatisticsFile)
            else SetPartitionStatistics(self._file)
        )
        return Changes(updates=(update,), requirements=same_table(self._uuid))

    def is_in(self, metadata: TableMetadata) -> bool:
        """See `CommitStep`; no other commit refers to this file."""
        files = (
            metadata.statistics
            if isinstance(self._file, StatisticsFile)
            else metadata.partition_statistics
        )
        return any(f.statistics_path == self._file.statistics_path for f in files)

    def after_refusal(self, proof: NotCommitted) -> None:
        """See `CommitStep`."""
        remove_files(self._io, [self._file.statistics_path], proof)


def remove_unfinished_file(io: FileIO, location: str) -> None:
    """Delete a statistics file whose writing failed before a commit was sent."""
    remove_files(io, [location], NeverSent())
