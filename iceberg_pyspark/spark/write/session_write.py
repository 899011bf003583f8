"""A write of a session to a table, resolved before its first row: settings, store, snapshot.

It is used by writes through a catalog, staged tables, row-level changes and equality deletes. The
portable kind of write has no session: `spark/data_source/write_job.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.commits.cherry_picks import WAP_ID
from iceberg_pyspark.commits.snapshot_changes import SnapshotAction
from iceberg_pyspark.spark.bridge.protocol.writes import WriteEnvironment
from iceberg_pyspark.spark.native_read.location_settings import with_location_settings
from iceberg_pyspark.spark.write.options import TXN_APP_ID, TXN_VERSION
from iceberg_pyspark.spark.write.settings import WriteSettings
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import CommitStep
from iceberg_pyspark.table.changes.commit_files import commit_action
from iceberg_pyspark.table.changes.commit_options import CommitOptions
from iceberg_pyspark.table.changes.commit_snapshot import snapshot_to_build_on
from iceberg_pyspark.table.changes.written_files import WrittenFiles
from iceberg_pyspark.table.table_storage import table_io


@dataclass(frozen=True, kw_only=True)
class SessionWrite:
    """A resolved write of a session to a table; `base` is the snapshot that the write builds on.

    `write_id` is in the summary of the write's snapshot; `options` has the rest of the summary.
    """

    catalog: Catalog
    loaded_table: LoadedTable
    settings: WriteSettings
    write_id: str
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
        app, version = self.settings.options.transaction
        of_app = (s for s in self.metadata.snapshots if s.summary.get(TXN_APP_ID) == app)
        versions = (s.number(TXN_VERSION) for s in of_app)
        return any(v is not None and v >= version for v in versions)

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


def session_write(
    catalog: Catalog,
    loaded_table: LoadedTable,
    settings: WriteSettings,
    environment: WriteEnvironment,
) -> SessionWrite:
    """Resolve a write; raise an error for a tag, or for a missing branch that it may not create."""
    metadata = loaded_table.metadata
    base = snapshot_to_build_on(metadata, settings.branch, creates_branch=settings.creates_branch)
    write_id = str(uuid.uuid4())
    if settings.options.transaction is not None:
        app, version = settings.options.transaction
        # Equal for two racing writes, so that the second finds the first in the table.
        write_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{metadata.table_uuid}/{app}/{version}"))
    return SessionWrite(
        catalog=catalog,
        loaded_table=loaded_table,
        settings=settings,
        write_id=write_id,
        options=_commit_options(environment, settings, write_id),
        base=base,
        io=table_io(with_location_settings(loaded_table, environment.session), catalog),
    )


def _commit_options(
    environment: WriteEnvironment, settings: WriteSettings, write_id: str
) -> CommitOptions:
    summary = {**environment.application, **settings.options.snapshot_properties}
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
