"""Staged tables of CREATE TABLE AS SELECT and REPLACE TABLE: nothing exists until the commit.

Spark stages a table, writes its rows, and then commits or aborts it. Until then there are only
metadata in memory and unreferenced data files; the commit creates table and rows at once, an abort
removes the files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.new_table import NewTable, replace_table
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.table_states import new_handle
from iceberg_pyspark.spark.write.command import WriteCommand, write_rows
from iceberg_pyspark.spark.write.resolved_write import resolve_write, write_settings
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit import (
    CommitStep,
    MetadataStep,
    commit_steps,
    with_changes,
)
from iceberg_pyspark.table.commits.commit_files import OverwriteMode, write_action
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.create_table import create_table_with, takes_files_of
from iceberg_pyspark.table.commits.written_files import WrittenFiles


@dataclass(frozen=True, kw_only=True)
class StagedRows:
    """The rows of a statement's query, written for a staged table, and the step that commits
    them.
    """

    step: SnapshotStep
    written_files: WrittenFiles


@dataclass(kw_only=True)
class StagedTable:
    """A staged table; `changes` replaces an existing table, and is None for a new table.

    `planned_table` is the resulting table without the rows. `rows` is None if the statement has no
    query.
    """

    catalog: Catalog
    planned_table: LoadedTable
    existing_table: LoadedTable | None
    changes: Callable[[TableMetadata], Changes] | None
    rows: StagedRows | None = None

    @property
    def name(self) -> str:
        """The table's name in Spark."""
        return f"{self.catalog.name}.{self.planned_table.identifier}"


class StagedTables:
    """The staged tables of a session, by handle."""

    def __init__(self) -> None:
        self._table_by_handle: dict[str, StagedTable] = {}

    def add(self, catalog_handle: str, staged_table: StagedTable) -> str:
        """Store a staged table until it is committed or aborted, and return its handle."""
        handle = new_handle(catalog_handle)
        self._table_by_handle[handle] = staged_table
        return handle

    def get(self, handle: str) -> StagedTable | None:
        """Return the staged table of a handle, or None."""
        return self._table_by_handle.get(handle)

    def take(self, handle: str) -> StagedTable | None:
        """Remove and return the staged table of a handle, or None."""
        return self._table_by_handle.pop(handle, None)


def stage_new(catalog: Catalog, planned_table: LoadedTable) -> StagedTable:
    """Return a staged table that does not exist yet."""
    return StagedTable(
        catalog=catalog, planned_table=planned_table, existing_table=None, changes=None
    )


def stage_replacement(catalog: Catalog, existing_table: LoadedTable, new: NewTable) -> StagedTable:
    """Return a staged table that replaces an existing table and keeps its history."""

    def changes(metadata: TableMetadata) -> Changes:
        return replace_table(
            metadata, new.schema, new.spec, location=new.location, properties=new.properties
        )

    planned_table = replace(
        existing_table,
        metadata=with_changes(existing_table.metadata, changes(existing_table.metadata)),
    )
    return StagedTable(
        catalog=catalog, planned_table=planned_table, existing_table=existing_table, changes=changes
    )


def write_staged_table(bridge: Bridge, staged_table: StagedTable, command: WriteCommand) -> None:
    """Write the rows of the statement's query, to be committed later."""
    metadata = staged_table.planned_table.metadata
    settings = write_settings(command.options, command.environment.session, metadata.properties)
    if settings.wap_id is not None or settings.branch != MAIN:
        raise InvalidRequestError(
            f"the rows of {staged_table.name} go to branch main of the new table; unset "
            "spark.wap.id, spark.wap.branch and the option branch"
        )
    write = resolve_write(
        staged_table.name,
        staged_table.catalog,
        staged_table.planned_table,
        settings,
        command.environment,
    )
    files = write_rows(bridge, command.frame, write)
    with WrittenFiles(write.io, files) as written_files:
        # Spark replaces a table with an overwrite of the whole new table.
        mode: OverwriteMode | None = "static" if command.kind == "overwrite" else None
        step = SnapshotStep(
            write_action(staged_table.planned_table, files, mode),
            write.io,
            write.options,
            table_uuid=metadata.table_uuid,
            clock=SYSTEM_CLOCK,
            written_files=written_files,
        )
        staged_table.rows = StagedRows(step=step, written_files=written_files)


def commit_staged_table(staged_table: StagedTable) -> None:
    """Create or replace the table, with its rows, in one commit."""
    rows = staged_table.rows
    steps: list[CommitStep] = [] if rows is None else [rows.step]
    written_files = None if rows is None else rows.written_files
    if staged_table.existing_table is None:
        identifier, metadata = (
            staged_table.planned_table.identifier,
            staged_table.planned_table.metadata,
        )
        create_table_with(
            staged_table.catalog, identifier, metadata, steps, written_files=written_files
        )
    else:
        steps = [MetadataStep(lambda m: _same_ids(staged_table, m)), *steps]
        commit_steps(
            staged_table.catalog, staged_table.existing_table, steps, written_files=written_files
        )


def abort_staged_table(staged_table: StagedTable) -> None:
    """Remove the written files of a staged table; nothing was sent to the catalog yet."""
    if staged_table.rows is not None:
        staged_table.rows.written_files.remove(NeverSent())


def _same_ids(staged_table: StagedTable, metadata: TableMetadata) -> Changes:
    """Return the replacement of the current table; its columns must have the ids in the files."""
    assert staged_table.changes is not None, "a table that is there is replaced by changes"
    changes = staged_table.changes(metadata)
    if not takes_files_of(with_changes(metadata, changes), staged_table.planned_table.metadata):
        raise ConcurrentChangeError(
            f"table {staged_table.name} was changed while its replacement was written: its columns "
            "have other ids now; run the statement again"
        )
    return changes
