"""A write of Spark to a table, resolved before its first row: settings, store, snapshot.

Every kind of write is resolved here: `format("iceberg-py")`, writes through a catalog, staged
tables, row-level changes and equality deletes. An option (`spark/write/write_options.py`) takes
precedence over the session's setting (`spark.sql.iceberg.<option>`, `spark.wap.*`), and the
session's setting over the table's property.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.cherry_picks import WAP_ID
from iceberg_pyspark.changes.snapshot_changes import SnapshotAction
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.options.option_values import with_location_settings
from iceberg_pyspark.spark.write.write_options import (
    TXN_APP_ID,
    TXN_VERSION,
    WriteOptions,
    catalog_write_options,
)
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import WAP_ENABLED, check_set_properties
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit import CommitStep, snapshot_to_build_on
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.new_data import data_format, partition_spec, write_context_of
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.table_storage import table_io

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.protocol.write_messages import WriteEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """The settings of one write; `properties` are the table's, overridden by those of the write.

    With a `wap_id` the snapshot is staged and belongs to no branch. With `creates_branch` a missing
    branch is created at main's snapshot.
    """

    options: WriteOptions
    properties: Mapping[str, str]
    branch: str = MAIN
    creates_branch: bool = False
    wap_id: str | None = None


def write_settings(
    options: Mapping[str, str],
    session: Mapping[str, str],
    table_properties: Mapping[str, str],
    *,
    branch: str | None = None,
) -> WriteSettings:
    """Return the settings of a catalog write; `branch` is the branch in the table's name."""
    values = catalog_write_options(options, session)
    return resolve_settings(values, session, table_properties, branch=branch)


def resolve_settings(
    options: WriteOptions,
    session: Mapping[str, str],
    table_properties: Mapping[str, str],
    *,
    branch: str | None = None,
) -> WriteSettings:
    """Return the settings: options take precedence over the session, the session over the table."""
    properties = {**table_properties, **options.overrides}
    file_format = data_format(properties)
    of_format = {f"write.{file_format}.{o}": v for o, v in options.of_format.items()}
    check_set_properties(of_format)
    branch_in_name = _named_branch(branch, options.branch)
    wap_id, wap_branch = _write_audit_publish(session, properties)
    if branch_in_name is not None and wap_branch not in (None, branch_in_name):
        raise InvalidRequestError(
            f"the session writes to the branch '{wap_branch}' (spark.wap.branch), but the "
            f"statement names the branch '{branch_in_name}'; unset one of them"
        )
    return WriteSettings(
        options=options,
        properties={**properties, **of_format},
        branch=(wap_branch or MAIN) if branch_in_name is None else branch_in_name,
        creates_branch=wap_branch is not None,
        wap_id=wap_id,
    )


def _named_branch(branch_in_name: str | None, option: str | None) -> str | None:
    if branch_in_name is not None and option not in (None, branch_in_name):
        raise InvalidRequestError(
            f"the statement names the branch '{branch_in_name}', the option branch '{option}'; "
            "keep one"
        )
    return option if branch_in_name is None else branch_in_name


def _write_audit_publish(
    session: Mapping[str, str], properties: Mapping[str, str]
) -> tuple[str | None, str | None]:
    if not WAP_ENABLED.of(properties):
        return None, None
    wap_id, branch = session.get("spark.wap.id"), session.get("spark.wap.branch")
    if wap_id is not None and branch is not None:
        raise InvalidRequestError(
            f"spark.wap.id ('{wap_id}') and spark.wap.branch ('{branch}') are both set; unset one"
        )
    return wap_id, branch


@dataclass(frozen=True, kw_only=True)
class ResolvedWrite:
    """A resolved write to a table; `base` is the snapshot that the write builds on.

    `table` is the table's name in messages. `write_id` is in the summary of the write's snapshot;
    `options` has the rest of the summary. `file_id` is in the names of the write's data files.
    """

    table: str
    catalog: Catalog
    loaded_table: LoadedTable
    settings: WriteSettings
    write_id: str
    file_id: str
    options: CommitOptions
    base: Snapshot | None
    io: FileIO

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the table as it was loaded."""
        return self.loaded_table.metadata

    @property
    def is_committed(self) -> bool:
        """Whether the table already has a snapshot of the write's application and version, or
        later.
        """
        if self.settings.options.transaction is None:
            return False
        return (
            snapshot_of_transaction(self.metadata, *self.settings.options.transaction) is not None
        )

    def context(
        self, metadata: TableMetadata | None = None, *, spec: PartitionSpec | None = None
    ) -> WriteContext:
        """Return the context of tasks that write rows without an order, for a partition spec.

        `metadata` is the table's metadata after the commit, by default its metadata as it was
        loaded. `spec` is by default the spec that the options name, or else the table's.
        """
        metadata = metadata or self.metadata
        if spec is None:
            spec = partition_spec(self.table, metadata, self.settings.options.spec_id)
        return write_context_of(
            self.table,
            metadata,
            self.io,
            write_id=self.file_id,
            spec=spec,
            overrides=self.settings.properties,
            case_sensitive=False,
        )

    def commit(
        self,
        action: SnapshotAction,
        written_files: WrittenFiles | None = None,
        *,
        options: CommitOptions | None = None,
        before: Sequence[CommitStep] = (),
    ) -> LoadedTable:
        """Commit the action as one snapshot; if the commit is refused, remove the written files."""
        return commit_action(
            self.catalog,
            self.loaded_table,
            self.io,
            action,
            options or self.options,
            written_files=written_files,
            before=before,
        )


def snapshot_of_transaction(metadata: TableMetadata, app: str, version: int) -> Snapshot | None:
    """Return a snapshot of the application with this version or a later one, or None."""
    for snapshot in metadata.snapshots:
        if snapshot.has_value(TXN_APP_ID, app):
            own = snapshot.number(TXN_VERSION)
            if own is not None and own >= version:
                return snapshot
    return None


def resolve_write(
    table: str,
    catalog: Catalog,
    loaded_table: LoadedTable,
    settings: WriteSettings,
    environment: WriteEnvironment | None = None,
) -> ResolvedWrite:
    """Resolve a write; raise an error for a tag, or for a missing branch that it may not create.

    `environment` is None if Spark runs the write in a process without a session.
    """
    session = {} if environment is None else environment.session
    application = {} if environment is None else environment.application
    metadata = loaded_table.metadata
    base = snapshot_to_build_on(metadata, settings.branch, creates_branch=settings.creates_branch)
    write_id = file_id = str(uuid.uuid4())
    if settings.options.transaction is not None:
        app, version = settings.options.transaction
        # Equal for two racing writes, so that the second finds the first in the table. Their files
        # have different names, so that neither overwrites or removes files of the other.
        write_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{metadata.table_uuid}/{app}/{version}"))
    return ResolvedWrite(
        table=table,
        catalog=catalog,
        loaded_table=loaded_table,
        settings=settings,
        write_id=write_id,
        file_id=file_id,
        options=_commit_options(application, settings, write_id),
        base=base,
        io=table_io(with_location_settings(loaded_table, session), catalog),
    )


def _commit_options(
    application: Mapping[str, str], settings: WriteSettings, write_id: str
) -> CommitOptions:
    summary = {**application, **settings.options.snapshot_properties}
    if settings.options.transaction is not None:
        app, version = settings.options.transaction
        summary |= {TXN_APP_ID: app, TXN_VERSION: str(version)}
    if settings.wap_id is not None:
        summary[WAP_ID] = settings.wap_id
    return CommitOptions(
        branch=settings.branch,
        snapshot_properties=summary,
        write_id=write_id,
        creates_branch=settings.creates_branch,
        stages_only=settings.wap_id is not None,
    )
