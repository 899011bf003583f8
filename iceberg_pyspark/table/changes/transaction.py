"""Several changes of one table, committed together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.commits.outcomes import NeverSent
from iceberg_pyspark.commits.snapshot_changes import AppendFiles, SnapshotAction
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import (
    SYSTEM_CLOCK,
    Clock,
    CommitStep,
    MetadataStep,
    commit_steps,
    with_changes,
)
from iceberg_pyspark.table.changes.commit_options import CommitOptions
from iceberg_pyspark.table.changes.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.changes.new_data import Rows, write_rows
from iceberg_pyspark.table.changes.pending_changes import (
    BuildChanges,
    ManageSnapshots,
    ReplaceSortOrder,
    UpdateLocation,
    UpdateProperties,
    UpdateSchema,
    UpdateSpec,
)
from iceberg_pyspark.table.changes.written_files import WrittenFiles
from iceberg_pyspark.table.table_storage import check_new_location


class Transaction:
    """Collects changes; `commit()`, or leaving its `with` block without an error, commits them.

    Each change sees the metadata as the ones before it leave it. `metadata` shows it, snapshots
    excepted: those are made when the transaction commits.
    """

    def __init__(
        self, catalog: Catalog, table: LoadedTable, io: FileIO, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._catalog = catalog
        self._table = table
        self._io = io
        self._clock = clock
        self._metadata = table.metadata
        self._steps: list[CommitStep] = []
        self._written = WrittenFiles(io)
        self._begun = False

    @property
    def metadata(self) -> TableMetadata:
        """The metadata with the changes made so far."""
        return self._metadata

    def update_schema(self, *, allow_incompatible_changes: bool = False) -> UpdateSchema:
        """Change columns; its `commit()` hands the changes to this transaction."""
        return UpdateSchema(
            self._stage,
            self._metadata,
            allow_incompatible_changes=allow_incompatible_changes,
        )

    def update_spec(self) -> UpdateSpec:
        """Change partitioning."""
        return UpdateSpec(self._stage, self._metadata)

    def replace_sort_order(self) -> ReplaceSortOrder:
        """Change the sort order."""
        return ReplaceSortOrder(self._stage, self._metadata)

    def update_properties(self) -> UpdateProperties:
        """Change properties."""
        return UpdateProperties(self._stage)

    def update_location(self) -> UpdateLocation:
        """Change where new files go."""
        return UpdateLocation(self._stage, partial(check_new_location, self._table))

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches and tags; what is cherry-picked is so when the transaction commits."""
        return ManageSnapshots(self._stage_steps, self._metadata, lambda: self._io, self._clock)

    def append(
        self,
        rows: Rows,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows now, by the metadata so far, and add them when the transaction commits."""
        write_id, files = write_rows(self._table.identifier, self._metadata, self._io, rows)
        self._written.add(files)
        self.add_snapshot(
            AppendFiles(data_files=tuple(files)),
            branch=branch,
            snapshot_properties=snapshot_properties,
            write_id=write_id,
        )

    def add_snapshot(
        self,
        action: SnapshotAction,
        *,
        branch: str = MAIN,
        snapshot_properties: Mapping[str, str] | None = None,
        write_id: str | None = None,
    ) -> None:
        """Make a snapshot of files that are written already, when the transaction commits."""
        self._add_step(
            SnapshotStep(
                action,
                self._io,
                CommitOptions(
                    branch=branch,
                    write_id=write_id,
                    snapshot_properties=snapshot_properties or {},
                ),
                table_uuid=self._table.metadata.table_uuid,
                clock=self._clock,
                written=self._written,
            )
        )

    def commit(self) -> LoadedTable:
        """Commit everything at once; a transaction commits once."""
        self._refuse_after_commit()
        self._begun = True
        if not self._steps:
            return self._table
        return commit_steps(
            self._catalog, self._table, self._steps, written=self._written, clock=self._clock
        )

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # once a commit has begun, it alone knows what may be deleted
        if self._begun:
            return
        if exc_type is None:
            self.commit()
        else:
            self._written.remove(NeverSent())

    def _stage(self, builds: Sequence[BuildChanges]) -> None:
        self._stage_steps([MetadataStep(build) for build in builds])

    def _stage_steps(self, steps: Sequence[CommitStep]) -> None:
        for step in steps:
            if isinstance(step, MetadataStep):
                changes = step.changes(self._metadata)
                self._metadata = with_changes(self._metadata, changes, self._clock)
            self._add_step(step)

    def _add_step(self, step: CommitStep) -> None:
        self._refuse_after_commit()
        self._steps.append(step)

    def _refuse_after_commit(self) -> None:
        if self._begun:
            raise InvalidRequestError(
                f"the transaction on {self._table.identifier} is over; begin another one"
            )
