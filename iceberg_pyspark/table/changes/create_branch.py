"""A branch begun, as a step of a commit: at a snapshot, or at none.

A reference names a snapshot (specification, "Snapshot References"), so the branch of a table that
has none gets one without files, as Java's does; main stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.changes import Changes
from iceberg_pyspark.commits.outcomes import NotCommitted, Refused
from iceberg_pyspark.commits.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import Clock
from iceberg_pyspark.table.changes.commit_snapshot import SnapshotStep


class CreateBranchStep:
    """A `CommitStep`: `create` makes the reference, at that snapshot id if one is given."""

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
        self._empty: SnapshotStep | None = None

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        if metadata.current_snapshot_id is not None or self._name in metadata.refs:
            return self._create(metadata, None)
        if self._empty is None:
            self._empty = SnapshotStep(
                AppendFiles(data_files=(), merge=False),
                self._io,
                table_uuid=self._table_uuid,
                clock=self._clock,
                branch=self._name,
                creates_branch=True,
                stages_only=True,
            )
        made = self._empty.changes(metadata)
        there = apply_updates(
            metadata, made.updates, now_ms=self._clock.now_ms(), previous_metadata_location=None
        )
        named = self._create(there, there.snapshots[-1].snapshot_id)
        return replace(made, updates=(*made.updates, *named.updates))

    def is_in(self, metadata: TableMetadata) -> bool:
        """See `CommitStep`."""
        return self._empty is not None and self._empty.is_in(metadata)

    def attempt_failed(self, proof: Refused) -> None:
        """See `CommitStep`."""
        if self._empty is not None:
            self._empty.attempt_failed(proof)

    def refused(self, proof: NotCommitted) -> None:
        """See `CommitStep`."""
        if self._empty is not None:
            self._empty.refused(proof)

    def committed(self, metadata: TableMetadata) -> None:
        """See `CommitStep`."""
        if self._empty is not None:
            self._empty.committed(metadata)
