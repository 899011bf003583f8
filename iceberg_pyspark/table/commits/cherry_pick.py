"""Applies one snapshot's changes again on `main`, as a step of a commit.

`changes/cherry_picks.py` decides which snapshots can be picked and how; this module reads the
snapshot's manifests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.cherry_picks import (
    check_cherry_pick,
    check_is_unpublished,
    cherry_pick_action,
    cherry_pick_summary,
    is_fast_forward,
)
from iceberg_pyspark.changes.ref_changes import set_current_snapshot
from iceberg_pyspark.changes.snapshot_changes import check_columns_stay
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.spec.manifests import DataFile, EntryStatus, ManifestContent
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.commits.commit import LateSnapshotStep
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_root import removed_from_leaves
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep


class CherryPickStep(LateSnapshotStep):
    """A `CommitStep` that moves `main` to a snapshot or repeats the snapshot's changes there."""

    def __init__(
        self,
        find: Callable[[TableMetadata], Snapshot],
        io: FileIO,
        *,
        table_uuid: str | None,
        clock: Clock,
    ) -> None:
        self._find = find
        self._io = io
        self._table_uuid = table_uuid
        self._clock = clock

    def changes(self, metadata: TableMetadata) -> Changes:
        """See `CommitStep`."""
        source = self._find(metadata)
        check_is_unpublished(metadata, source)
        if source.schema_id is not None and source.schema_id in metadata.schema_by_id:
            check_columns_stay(metadata.schema_by_id[source.schema_id], metadata)
        if is_fast_forward(metadata, source):
            return set_current_snapshot(metadata, source.snapshot_id)
        check_cherry_pick(metadata, source)
        if self._snapshot_step is None:
            added_files, removed_files = self._files_of(metadata, source)
            self._snapshot_step = SnapshotStep(
                cherry_pick_action(source, added_files, removed_files),
                self._io,
                CommitOptions(snapshot_properties=cherry_pick_summary(source)),
                table_uuid=self._table_uuid,
                clock=self._clock,
            )
        return self._snapshot_step.changes(metadata)

    def _files_of(
        self, metadata: TableMetadata, source: Snapshot
    ) -> tuple[list[DataFile], list[DataFile]]:
        """Return the data files that a snapshot added, and the data files that it removed."""
        added_files: list[DataFile] = []
        removed_files: list[DataFile] = []
        for manifest in read_snapshot_manifests(self._io, source):
            if (
                manifest.content is not ManifestContent.DATA
                or manifest.added_snapshot_id != source.snapshot_id
            ):
                continue
            spec = metadata.spec_by_id[manifest.partition_spec_id]
            type_ = partition_type(spec, metadata.schemas_newest_first)
            for entry in read_manifest_entries(self._io, manifest, type_):
                if entry.snapshot_id != source.snapshot_id:
                    continue
                if entry.status is EntryStatus.ADDED:
                    # the new snapshot assigns new row ids
                    added_files.append(replace(entry.data_file, first_row_id=None))
                elif entry.status is EntryStatus.DELETED:
                    removed_files.append(entry.data_file)
        removed_files += [
            e.data_file
            for e in removed_from_leaves(self._io, metadata, source, ManifestContent.DATA)
        ]
        return added_files, removed_files
