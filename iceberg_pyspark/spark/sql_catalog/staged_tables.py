"""Tables that CREATE TABLE AS SELECT and REPLACE TABLE are about to make: nothing until committed.

Spark stages a table, has its rows written, and then commits or aborts it. Here that is metadata in
memory and data files that no one knows; the commit makes table and rows at once, the abort removes
the files.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.properties import storage_properties
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.changes import Changes
from iceberg_pyspark.commits.manifest_changes import RemoveAll
from iceberg_pyspark.commits.new_table import new_table_metadata
from iceberg_pyspark.commits.outcomes import NeverSent
from iceberg_pyspark.commits.replaced_table import replace_table
from iceberg_pyspark.commits.snapshot_changes import AppendFiles, OverwriteFiles, SnapshotAction
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.write.command import WriteCommand, commit_options, write_rows_of
from iceberg_pyspark.spark.write.settings import write_settings
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.changes.commit import (
    SYSTEM_CLOCK,
    CommitStep,
    MetadataStep,
    commit_steps,
)
from iceberg_pyspark.table.changes.commit_files import CommitOptions
from iceberg_pyspark.table.changes.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.changes.create_table import create_table_with
from iceberg_pyspark.table.changes.written_files import WrittenFiles
from iceberg_pyspark.table.table_storage import table_io


@dataclass(kw_only=True)
class StagedTable:
    """One such table; `changes` are those of a table there is, None for a new one.

    `planned` is the table as it will be but for the rows; `rows` are the files and what their
    snapshot says, None where the statement has no query.
    """

    catalog: Catalog
    planned: LoadedTable
    existing: LoadedTable | None
    changes: Callable[[TableMetadata], Changes] | None
    rows: tuple[list[DataFile], SnapshotAction, CommitOptions] | None = field(default=None)

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


def stage_new(
    catalog: Catalog,
    identifier: TableIdentifier,
    schema: Schema,
    spec: PartitionSpec,
    *,
    location: str | None,
    properties: Mapping[str, str],
) -> StagedTable:
    """A table that is not there yet."""
    metadata = new_table_metadata(
        schema,
        spec,
        None,
        location or catalog.default_table_location(identifier),
        properties,
        table_uuid=str(uuid.uuid4()),
        now_ms=SYSTEM_CLOCK.now_ms(),
    )
    planned = LoadedTable(
        identifier=identifier,
        metadata=metadata,
        metadata_location="",
        config=storage_properties(catalog.properties),
    )
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
        metadata=_applied(existing.metadata, changes(existing.metadata)),
        metadata_location=existing.metadata_location,
        config=existing.config,
    )
    return StagedTable(catalog=catalog, planned=planned, existing=existing, changes=changes)


def write_staged(bridge: Bridge, staged: StagedTable, command: WriteCommand) -> None:
    """Write the rows of the statement's query; they wait for the commit."""
    metadata = staged.planned.metadata
    settings = write_settings(command.options, command.environment.session, metadata.properties)
    if settings.wap_id is not None or settings.branch != "main":
        raise InvalidRequestError(
            f"the rows of {staged.name} go to branch main of the new table; unset spark.wap.id, "
            "spark.wap.branch and the option branch"
        )
    io = table_io(staged.planned, staged.catalog)
    files = write_rows_of(bridge, command.frame, staged.name, metadata, settings, io)
    action: SnapshotAction = AppendFiles(data_files=tuple(files))
    if command.kind == "overwrite":
        # Spark replaces a table by overwriting all of the new one
        action = OverwriteFiles(removal=RemoveAll(), data_files=tuple(files))
    staged.rows = (files, action, commit_options(command.environment, settings, metadata))


def commit_staged(staged: StagedTable) -> None:
    """Make the table, with its rows, in one commit."""
    io = table_io(staged.planned, staged.catalog)
    written = WrittenFiles(io)
    steps: list[CommitStep] = []
    if staged.rows is not None:
        files, action, options = staged.rows
        written.add(files)
        steps.append(
            SnapshotStep(
                action,
                io,
                table_uuid=staged.planned.metadata.table_uuid,
                clock=SYSTEM_CLOCK,
                write_id=options.write_id,
                snapshot_properties=options.snapshot_properties,
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
        io = table_io(staged.planned, staged.catalog)
        WrittenFiles(io, staged.rows[0]).remove(NeverSent())


def _same_ids(staged: StagedTable, metadata: TableMetadata) -> Changes:
    """The replacement of what is there now, which gives columns the ids that the files have."""
    assert staged.changes is not None, "a table that is there is replaced by changes"
    changes = staged.changes(metadata)
    now, then = _applied(metadata, changes), staged.planned.metadata
    same = (
        now.current_schema.fields == then.current_schema.fields
        and now.default_spec == then.default_spec
        and now.location == then.location
    )
    if not same:
        raise ConcurrentChangeError(
            f"table {staged.name} was changed while its replacement was written: its columns have "
            "other ids now; run the statement again"
        )
    return changes


def _applied(metadata: TableMetadata, changes: Changes) -> TableMetadata:
    return apply_updates(
        metadata, changes.updates, now_ms=SYSTEM_CLOCK.now_ms(), previous_metadata_location=None
    )
