"""Tables that CREATE TABLE AS SELECT and REPLACE TABLE are about to make: nothing until committed.

Spark stages a table, has its rows written, and then commits or aborts it. Here that is metadata in
memory and data files that no one knows; the commit makes table and rows at once, the abort removes
the files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.commits.changes import Changes
from iceberg_pyspark.commits.outcomes import NeverSent
from iceberg_pyspark.commits.replaced_table import replace_table
from iceberg_pyspark.commits.snapshot_changes import SnapshotAction
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.write.command import WriteCommand, write_rows
from iceberg_pyspark.spark.write.session_write import SessionWrite, session_write
from iceberg_pyspark.spark.write.settings import write_settings
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.changes.commit import (
    SYSTEM_CLOCK,
    CommitStep,
    MetadataStep,
    commit_steps,
    with_changes,
)
from iceberg_pyspark.table.changes.commit_files import OverwriteMode, write_action
from iceberg_pyspark.table.changes.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.changes.create_table import create_table_with, takes_files_of
from iceberg_pyspark.table.changes.written_files import WrittenFiles


@dataclass(frozen=True, kw_only=True)
class StagedRows:
    """The rows of a statement's query, written for a staged table, and what commits them."""

    write: SessionWrite
    files: Sequence[DataFile]
    action: SnapshotAction


@dataclass(kw_only=True)
class StagedTable:
    """One such table; `changes` are those of a table there is, None for a new one.

    `planned` is the table as it will be but for the rows; `rows` are None where the statement has
    no query.
    """

    catalog: Catalog
    planned: LoadedTable
    existing: LoadedTable | None
    changes: Callable[[TableMetadata], Changes] | None
    rows: StagedRows | None = None

    @property
    def name(self) -> str:
        """Its name in Spark."""
        return f"{self.catalog.name}.{self.planned.identifier}"


class StagedTables:
    """The staged tables of a session by handle."""

    def __init__(self) -> None:
        self._staged: dict[str, StagedTable] = {}

    def add(self, catalog_handle: str, staged: StagedTable) -> str:
        """Keep one until it is committed or aborted; its handle."""
        handle = json.dumps([catalog_handle, "staged", str(uuid.uuid4())])
        self._staged[handle] = staged
        return handle

    def get(self, handle: str) -> StagedTable | None:
        """The one of that handle."""
        return self._staged.get(handle)

    def take(self, handle: str) -> StagedTable | None:
        """The one of that handle, which is over now."""
        return self._staged.pop(handle, None)


def stage_new(catalog: Catalog, planned: LoadedTable) -> StagedTable:
    """A table that is not there yet."""
    return StagedTable(catalog=catalog, planned=planned, existing=None, changes=None)


def stage_replacement(
    catalog: Catalog,
    existing: LoadedTable,
    schema: Schema,
    spec: PartitionSpec,
    *,
    location: str | None,
    properties: Mapping[str, str],
) -> StagedTable:
    """A table in the place of one that is there, with its history."""

    def changes(metadata: TableMetadata) -> Changes:
        return replace_table(metadata, schema, spec, location=location, properties=properties)

    planned = LoadedTable(
        identifier=existing.identifier,
        metadata=with_changes(existing.metadata, changes(existing.metadata)),
        metadata_location=existing.metadata_location,
        config=existing.config,
    )
    return StagedTable(catalog=catalog, planned=planned, existing=existing, changes=changes)


def write_staged(bridge: Bridge, staged: StagedTable, command: WriteCommand) -> None:
    """Write the rows of the statement's query; they wait for the commit."""
    metadata = staged.planned.metadata
    settings = write_settings(command.options, command.environment.session, metadata.properties)
    if settings.wap_id is not None or settings.branch != MAIN:
        raise InvalidRequestError(
            f"the rows of {staged.name} go to branch main of the new table; unset spark.wap.id, "
            "spark.wap.branch and the option branch"
        )
    write = session_write(staged.catalog, staged.planned, settings, command.environment)
    files = write_rows(bridge, command.frame, staged.name, metadata, write)
    # Spark replaces a table by overwriting all of the new one
    mode: OverwriteMode | None = "static" if command.kind == "overwrite" else None
    action = write_action(staged.planned, files, mode)
    staged.rows = StagedRows(write=write, files=files, action=action)


def commit_staged(staged: StagedTable) -> None:
    """Make the table, with its rows, in one commit."""
    steps: list[CommitStep] = []
    written = None
    if staged.rows is not None:
        write = staged.rows.write
        written = WrittenFiles(write.io, staged.rows.files)
        steps.append(
            SnapshotStep(
                staged.rows.action,
                write.io,
                write.options,
                table_uuid=write.metadata.table_uuid,
                clock=SYSTEM_CLOCK,
                written=written,
            )
        )
    if staged.existing is None:
        identifier, metadata = staged.planned.identifier, staged.planned.metadata
        create_table_with(staged.catalog, identifier, metadata, steps, written=written)
    else:
        steps = [MetadataStep(lambda m: _same_ids(staged, m)), *steps]
        commit_steps(staged.catalog, staged.existing, steps, written=written)


def abort_staged(staged: StagedTable) -> None:
    """Remove the files that were written; Spark aborts what it has not asked to commit."""
    if staged.rows is not None:
        WrittenFiles(staged.rows.write.io, staged.rows.files).remove(NeverSent())


def _same_ids(staged: StagedTable, metadata: TableMetadata) -> Changes:
    """The replacement of what is there now, which gives columns the ids that the files have."""
    assert staged.changes is not None, "a table that is there is replaced by changes"
    changes = staged.changes(metadata)
    if not takes_files_of(with_changes(metadata, changes), staged.planned.metadata):
        raise ConcurrentChangeError(
            f"table {staged.name} was changed while its replacement was written: its columns have "
            "other ids now; run the statement again"
        )
    return changes
