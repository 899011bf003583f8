"""Decides which snapshots can be cherry-picked onto `main`, and how.

Specification, "Snapshots" and Appendix F; the rules are Java's. A child of the current snapshot
becomes the current snapshot itself. Of other snapshots, an append or a dynamic overwrite is applied
again. A staged snapshot (`wap.id`) can be published once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import AppendFiles, OverwriteFiles, SnapshotAction
from iceberg_pyspark.changes.summary import REPLACE_PARTITIONS
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of

SOURCE_SNAPSHOT_ID = "source-snapshot-id"
WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"


def is_fast_forward(metadata: TableMetadata, source: Snapshot) -> bool:
    """Return whether the snapshot is a child of the current one and can become current as it is."""
    return source.parent_snapshot_id == metadata.current_snapshot_id


def staged_snapshot(metadata: TableMetadata, wap_id: str) -> Snapshot:
    """Return the staged snapshot with this `wap.id`; raise `NoSuchSnapshotError` if none has it."""
    for snapshot in metadata.snapshots:
        if snapshot.summary.get(WAP_ID) == wap_id:
            return snapshot
    raise NoSuchSnapshotError(
        f"table {metadata.location} has no snapshot with the {WAP_ID} '{wap_id}'"
    )


def check_is_unpublished(metadata: TableMetadata, source: Snapshot) -> None:
    """Raise `InvalidRequestError` if the rows of the snapshot's `wap.id` are published already.

    This applies to a child of the current snapshot too: a job that ran again may have staged its
    rows on top of those that its first run published.
    """
    wap_id = source.summary.get(WAP_ID)
    if not wap_id or (source.operation != "append" and not _replaces_partitions(source)):
        return
    for ancestor in ancestors_of(metadata, metadata.current_snapshot):
        if ancestor.snapshot_id != source.snapshot_id and wap_id in (
            ancestor.summary.get(WAP_ID),
            ancestor.summary.get(PUBLISHED_WAP_ID),
        ):
            raise InvalidRequestError(
                f"{_name(metadata, source)} has the {WAP_ID} '{wap_id}', which snapshot "
                f"{ancestor.snapshot_id} published before"
            )


def _name(metadata: TableMetadata, source: Snapshot) -> str:
    return f"table {metadata.location}: snapshot {source.snapshot_id}"


def check_cherry_pick(metadata: TableMetadata, source: Snapshot) -> None:
    """Raise `InvalidRequestError` for a snapshot whose changes cannot be applied again."""
    name = _name(metadata, source)
    if source.operation != "append" and not _replaces_partitions(source):
        raise InvalidRequestError(
            f"{name} is neither an append nor a dynamic overwrite nor a child of the current "
            f"snapshot {metadata.current_snapshot_id}: it cannot be cherry-picked"
        )
    ancestors = list(ancestors_of(metadata, metadata.current_snapshot))
    for ancestor in ancestors:
        if ancestor.snapshot_id == source.snapshot_id:
            raise InvalidRequestError(f"{name} is already an ancestor of the current snapshot")
        if ancestor.summary.get(SOURCE_SNAPSHOT_ID) == str(source.snapshot_id):
            raise InvalidRequestError(
                f"{name} was cherry-picked before, to snapshot {ancestor.snapshot_id}"
            )
    parent_id = source.parent_snapshot_id
    if (
        _replaces_partitions(source)
        and parent_id is not None
        and parent_id not in {a.snapshot_id for a in ancestors}
    ):
        raise InvalidRequestError(
            f"{name} overwrites rows of snapshot {parent_id}, which is not an ancestor of the "
            "current snapshot, so it cannot be cherry-picked"
        )


def cherry_pick_action(
    source: Snapshot, added_files: Sequence[DataFile], removed_files: Sequence[DataFile]
) -> SnapshotAction:
    """Return the action that applies a snapshot with these data files again."""
    if not _replaces_partitions(source):
        return AppendFiles(data_files=tuple(added_files))
    return OverwriteFiles(
        removal=RemoveFiles(data_paths=frozenset(f.file_path for f in removed_files)),
        data_files=tuple(added_files),
        checks=ConflictChecks(
            base_snapshot_id=source.parent_snapshot_id, no_new_data=_in_partitions_of(added_files)
        ),
    )


def cherry_pick_summary(source: Snapshot) -> dict[str, str]:
    """Return the summary entries of the new snapshot that refer to the picked snapshot."""
    summary = {SOURCE_SNAPSHOT_ID: str(source.snapshot_id)}
    if wap_id := source.summary.get(WAP_ID):
        summary[PUBLISHED_WAP_ID] = wap_id
    return summary


def _replaces_partitions(source: Snapshot) -> bool:
    return source.operation == "overwrite" and source.summary.get(REPLACE_PARTITIONS) == "true"


def _in_partitions_of(files: Sequence[DataFile]) -> Callable[[DataFile], bool]:
    partitions = {(f.spec_id, partition_key(f.partition)) for f in files}
    return lambda f: (f.spec_id, partition_key(f.partition)) in partitions
