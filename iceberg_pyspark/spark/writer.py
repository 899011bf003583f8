"""The write: files made by tasks on executors, collected and committed once on the driver.

Only the messages of the attempts that Spark chose reach `commit`, so a retried or speculative task
never doubles rows; file names carry the task attempt, so that attempts do not meet. Spark asks
nobody how rows should be distributed: each task fans out by partition with a bound on open files.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.conform import check_write_schema
from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.arrow.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.commits.new_table import new_table_metadata
from iceberg_pyspark.errors import (
    CommitConflictError,
    ConcurrentChangeError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spark.options import TableOptions, WriteOptions
from iceberg_pyspark.spark.table_access import find_table, load_table
from iceberg_pyspark.spark.types import from_spark_schema
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.commit_files import (
    CommitOptions,
    OverwriteMode,
    commit_append,
    commit_overwrite,
)
from iceberg_pyspark.table.ddl_strings import parse_partitioning
from iceberg_pyspark.table.filter_strings import parse_filter
from iceberg_pyspark.table.new_data import write_context_of
from iceberg_pyspark.table.table_storage import table_io


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """The complete data files of one task."""

    data_files: tuple[DataFile, ...]


@dataclass(frozen=True, kw_only=True)
class PreparedWrite:
    """What driver and tasks of one job share; `new_table` is the metadata of a table to create."""

    table: TableOptions
    options: WriteOptions
    context: WriteContext
    io: FileIO
    overwrite: OverwriteMode | None
    new_table: TableMetadata | None = field(repr=False)


def prepare_write(
    table: TableOptions, options: WriteOptions, frame: StructType, overwrite: bool
) -> PreparedWrite:
    """Check the request and fix everything the tasks need, before any of them runs."""
    catalog, identifier = find_table(table)
    written = from_spark_schema(frame)
    new_table = None
    try:
        loaded = load_table(catalog, identifier, table)
        _check_partitioning(options, loaded.metadata, table.table)
    except NoSuchTableError:
        new_table = _new_metadata(
            catalog, identifier, options, from_spark_schema(frame, all_optional=True)
        )
        loaded = LoadedTable(
            identifier=identifier,
            metadata=new_table,
            metadata_location="",
            config=table.storage_properties,
        )
    metadata = loaded.metadata
    if (
        options.branch is not None
        and options.branch != MAIN
        and options.branch not in metadata.refs
    ):
        raise InvalidRequestError(
            f"table {table.table} has no branch '{options.branch}'; create it first"
        )
    schema = metadata.current_schema
    check_write_schema(written, schema, table=table.table, case_sensitive=False)
    context = write_context_of(
        table.table,
        metadata,
        write_id=str(uuid.uuid4()),
        overrides=options.write_properties,
        case_sensitive=False,
    )
    return PreparedWrite(
        table=table,
        options=options,
        context=context,
        io=table_io(loaded, table.storage_properties),
        overwrite=_overwrite_mode(options) if overwrite else None,
        new_table=new_table,
    )


def _overwrite_mode(options: WriteOptions) -> OverwriteMode:
    if options.overwrite_filter is not None:
        return parse_filter(options.overwrite_filter)
    return "dynamic" if options.overwrite_mode == "dynamic" else "static"


def _new_metadata(
    catalog: Catalog, identifier: TableIdentifier, options: WriteOptions, written: Schema
) -> TableMetadata:
    return new_table_metadata(
        written,
        parse_partitioning(options.partitioned_by, written),
        None,
        options.location or catalog.default_table_location(identifier),
        options.table_properties,
        table_uuid=str(uuid.uuid4()),
        now_ms=time.time_ns() // 1_000_000,
    )


def _check_partitioning(options: WriteOptions, metadata: TableMetadata, table: str) -> None:
    if not options.partitioned_by:
        return
    asked = parse_partitioning(options.partitioned_by, metadata.current_schema)
    has = metadata.default_spec
    if [(f.source_ids, str(f.transform)) for f in asked.fields] != [
        (f.source_ids, str(f.transform)) for f in has.fields
    ]:
        shown = ", ".join(f"{f.transform} of {f.name}" for f in has.fields) or "nothing"
        raise InvalidRequestError(
            f"table {table} exists and is partitioned by {shown}, not by "
            f"{', '.join(options.partitioned_by)}; leave the option partitioned-by out"
        )


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
        except (CommitConflictError, ConcurrentChangeError, InvalidRequestError):
            # refused: no snapshot has these files, and their names carry this job's id alone
            _delete(io, files)
            raise

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose commit never ran.

        Spark calls this after a failed commit too, which may have succeeded in truth. Only a
        missing message proves that a task failed and commit was not reached.
        """
        if None in messages:
            _delete(self._prepared.io, _files_of(messages))

    def _committed_table(self) -> tuple[Catalog, LoadedTable]:
        """The table to commit to, created now if this job is its first."""
        prepared = self._prepared
        catalog, identifier = find_table(prepared.table)
        if prepared.new_table is None:
            return catalog, load_table(catalog, identifier, prepared.table)
        try:
            _make_namespace(catalog, identifier)
            return catalog, catalog.create_table(identifier, prepared.new_table)
        except TableAlreadyExistsError:
            loaded = load_table(catalog, identifier, prepared.table)
        _check_same_layout(loaded.metadata, prepared.new_table, prepared.table.table)
        return catalog, loaded


def _make_namespace(catalog: Catalog, identifier: TableIdentifier) -> None:
    if identifier.namespace and not catalog.namespace_exists(identifier.namespace):
        try:
            catalog.create_namespace(identifier.namespace)
        except NamespaceAlreadyExistsError:
            return


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


def _delete(io: FileIO, files: Sequence[DataFile]) -> None:
    for f in files:
        io.delete(f.file_path)
