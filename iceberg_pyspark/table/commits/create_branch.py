"""Creates a branch, as a step of a commit: at a snapshot, or in a table without snapshots.

A reference needs a snapshot (specification, "Snapshot References"), so a branch of a table without
snapshots gets a new one without files, as in Java; `main` stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit import Clock, with_changes
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import LateSnapshotStep, SnapshotStep


class CreateBranchStep(LateSnapshotStep):
    """A `CommitStep` that creates a branch; `create` builds the reference, at an optional id."""

    def __init__(
        self,
        name: str,
        create: Callable[[TableMetadata, int | None], Changes],
        io: FileIO,
        *,
        table_uuid: str | None,
        clock: Clock,
    ) -> None:
        self._name = name
        self._create = create
        self._io = io
        self._table_uuid = table_uuid
        self._clock = clock

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        if metadata.current_snapshot_id is not None or self._name in metadata.refs:
            return self._create(metadata, None)
        if self._snapshot_step is None:
            self._snapshot_step = SnapshotStep(
                AppendFiles(data_files=(), merge=False),
                self._io,
                CommitOptions(branch=self._name, creates_branch=True, stages_only=True),
                table_uuid=self._table_uuid,
                clock=self._clock,
            )
        snapshot_changes = self._snapshot_step.changes(metadata)
        with_snapshot = with_changes(metadata, snapshot_changes, self._clock)
        reference_changes = self._create(with_snapshot, with_snapshot.snapshots[-1].snapshot_id)
        return replace(
            snapshot_changes, updates=(*snapshot_changes.updates, *reference_changes.updates)
        )
