"""The write: files made by tasks on executors, collected and committed once on the driver.

Only the messages of the attempts that Spark chose reach `commit`, so a retried or speculative task
never doubles rows; file names carry the task attempt, so that attempts do not meet. Spark asks
nobody how rows should be distributed: each task fans out by partition with a bound on open files.
Executors import this module to run `write`, so what only the driver needs before is elsewhere
(`prepare_write.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.arrow.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    IcebergError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spark.options import TableOptions, WriteOptions
from iceberg_pyspark.spark.table_access import find_table, load_table
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.commit_files import (
    CommitOptions,
    OverwriteMode,
    commit_append,
    commit_overwrite,
)
from iceberg_pyspark.table.create_table import create_namespace_if_absent
from iceberg_pyspark.table.write_rows import delete_written


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """The complete data files of one task."""

    data_files: tuple[DataFile, ...]


@dataclass(frozen=True, kw_only=True)
class PreparedWrite:
    """What driver and tasks of one job share.

    `table_uuid` is that of the table the files are written for, `new_table` its metadata if it is
    still to be created.
    """

    table: TableOptions
    options: WriteOptions
    context: WriteContext
    io: FileIO
    overwrite: OverwriteMode | None
    table_uuid: str | None
    new_table: TableMetadata | None = field(repr=False)


class IcebergWriter(DataSourceArrowWriter):
    """One write job."""

    def __init__(self, prepared: PreparedWrite) -> None:
        self._prepared = prepared

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on an executor; a failure leaves none of its files."""
        task = TaskContext.get()
        assert task is not None, "Spark runs write() in a task"
        files = write_data_files(
            self._prepared.context,
            iterator,
            self._prepared.io,
            partition_id=task.partitionId(),
            task_id=task.taskAttemptId(),
        )
        return WrittenFiles(tuple(files))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit all files as one snapshot; a refused commit leaves none of them."""
        prepared = self._prepared
        files = _files_of(messages)
        io = prepared.io
        options = CommitOptions(
            branch=prepared.options.branch or MAIN,
            snapshot_properties=prepared.options.snapshot_properties,
            write_id=prepared.context.write_id,
        )
        try:
            catalog, loaded = self._committed_table()
            if prepared.overwrite is None:
                commit_append(catalog, loaded, io, files, options)
            else:
                commit_overwrite(catalog, loaded, io, files, prepared.overwrite, options)
        except IcebergError as e:
            if e.safe_to_clean_up:
                # refused: no snapshot has these files, and their names carry this job's id alone
                delete_written(io, files)
            raise

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose commit never ran.

        Spark calls this after a failed commit too, which may have succeeded in truth. Only a
        missing message proves that a task failed and commit was not reached.
        """
        if None in messages:
            delete_written(self._prepared.io, _files_of(messages))

    def _committed_table(self) -> tuple[Catalog, LoadedTable]:
        """The table to commit to, created now if this job is its first."""
        prepared = self._prepared
        catalog, identifier = find_table(prepared.table)
        if prepared.new_table is None:
            loaded = load_table(catalog, identifier, prepared.table)
            # a table of version 1 may have none yet
            if prepared.table_uuid not in (None, loaded.metadata.table_uuid):
                raise ConcurrentChangeError(
                    f"table {prepared.table.table} was dropped and created anew while this job "
                    "ran; run the job again to write into the new table"
                )
            return catalog, loaded
        try:
            create_namespace_if_absent(catalog, identifier.namespace)
            return catalog, catalog.create_table(identifier, prepared.new_table)
        except TableAlreadyExistsError:
            loaded = load_table(catalog, identifier, prepared.table)
        _check_same_layout(loaded.metadata, prepared.new_table, prepared.table.table)
        return catalog, loaded


def _check_same_layout(found: TableMetadata, expected: TableMetadata, table: str) -> None:
    """Files written for a table to be created fit one created meanwhile only if its ids are the
    same.
    """
    same = (
        found.current_schema.fields == expected.current_schema.fields
        and found.default_spec.same_fields(expected.default_spec)
        and found.location == expected.location
    )
    if not same:
        raise ConcurrentChangeError(
            f"table {table} was created by another writer while this job ran, with another schema, "
            "partitioning or location; run the job again to write into that table"
        )


def _files_of(messages: Sequence[WriterCommitMessage | None]) -> tuple[DataFile, ...]:
    return tuple(f for m in messages if isinstance(m, WrittenFiles) for f in m.data_files)
