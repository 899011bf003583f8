"""Checks whether later commits conflict with the data that an operation has read.

Specification, "Optimistic Concurrency", "Commit Conflict Resolution and Retry". The writer chooses
the isolation level: `serializable` also refuses new data that the operation would have read,
`snapshot` does not. A conflict is a `ConcurrentChangeError`: a retry with the same files cannot
succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from iceberg_pyspark.changes.manifest_changes import SnapshotBase
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata

IsolationLevel = Literal["serializable", "snapshot"]
FileTest: TypeAlias = Callable[[DataFile], bool]
"""A test whether a file may hold rows that the operation has read (inclusive)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedFile:
    """A data file whose rows the operation rewrites or deletes from."""

    file_path: str
    spec_id: int
    partition: tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class ConflictChecks:
    """The changes that must not have happened since the snapshot that was read.

    `base_snapshot_id` is None if the table was empty. `no_new_data` and `no_removed_data`: no data
    file that passes the test was added or removed. `no_new_deletes`: no delete file that passes the
    test was added. `still_live`: none of these data files was removed. `no_new_deletes_for`: no
    delete was added that applies to these data files; `equality_deletes_still_apply` exempts
    equality deletes, for new files that keep the old data sequence number.
    """

    base_snapshot_id: int | None
    no_new_data: FileTest | None = None
    no_removed_data: FileTest | None = None
    no_new_deletes: FileTest | None = None
    still_live: frozenset[str] = frozenset()
    no_new_deletes_for: tuple[TouchedFile, ...] = ()
    equality_deletes_still_apply: bool = False


def snapshots_since(
    metadata: TableMetadata, head: Snapshot | None, base_snapshot_id: int | None
) -> Iterator[Snapshot]:
    """Yield the snapshots from the head back to the base, without the base.

    Raises `ConcurrentChangeError` if the base is not an ancestor of the head, because the table was
    rolled back or snapshots have expired.
    """
    current = head
    visited_ids: set[int] = set()
    while current is not None and current.snapshot_id != base_snapshot_id:
        if current.snapshot_id in visited_ids:
            # Damaged metadata: the parents form a circle.
            current = None
            break
        visited_ids.add(current.snapshot_id)
        yield current
        parent_id = current.parent_snapshot_id
        if parent_id is None:
            current = None
            continue
        current = metadata.snapshot_by_id.get(parent_id)
        if current is None and parent_id != base_snapshot_id:
            raise ConcurrentChangeError(
                f"table {metadata.location}: snapshot {parent_id} no longer exists, so the "
                f"changes since snapshot {base_snapshot_id} are unknown; run the operation again"
            )
        if current is None:
            return
    if current is None and base_snapshot_id is not None:
        raise ConcurrentChangeError(
            f"table {metadata.location}: snapshot {base_snapshot_id}, which was read, is not an "
            "ancestor of the current one; the table was rolled back: run the operation again"
        )


def check_conflicts(checks: ConflictChecks, base: SnapshotBase) -> None:
    """Raise `ConcurrentChangeError` if a snapshot after the base violates one of the checks."""
    files = {f.file_path: f for f in checks.no_new_deletes_for}
    scopes = {(f.spec_id, partition_key(f.partition)) for f in checks.no_new_deletes_for}
    for snapshot in snapshots_since(base.metadata, base.parent, checks.base_snapshot_id):
        # a replace adds and removes files, but changes no rows
        rows_change = snapshot.operation != "replace"
        for entry in _changes_of(base, snapshot, ManifestContent.DATA):
            f = entry.data_file
            if entry.status is EntryStatus.ADDED:
                if rows_change and checks.no_new_data is not None and checks.no_new_data(f):
                    raise _conflict(base, snapshot, f"added {f.file_path}, which may hold rows")
            elif f.file_path in checks.still_live:
                raise _conflict(base, snapshot, f"removed {f.file_path}, which holds rows")
            elif rows_change and checks.no_removed_data is not None and checks.no_removed_data(f):
                raise _conflict(base, snapshot, f"removed {f.file_path}, which may hold rows")
        if not files and checks.no_new_deletes is None:
            continue
        for entry in _changes_of(base, snapshot, ManifestContent.DELETES):
            f = entry.data_file
            if entry.status is EntryStatus.ADDED and (
                (checks.no_new_deletes is not None and checks.no_new_deletes(f))
                or _may_apply(f, files, scopes, base, checks.equality_deletes_still_apply)
            ):
                raise _conflict(base, snapshot, f"added deletes in {f.file_path} for rows")


def _may_apply(
    f: DataFile,
    files: dict[str, TouchedFile],
    scopes: set[tuple[int, PartitionKey]],
    base: SnapshotBase,
    equality_deletes_still_apply: bool,
) -> bool:
    if f.referenced_data_file is not None:
        return f.referenced_data_file in files
    if f.content is FileContent.EQUALITY_DELETES:
        if equality_deletes_still_apply:
            return False
        spec = base.metadata.spec_by_id.get(f.spec_id)
        if spec is None or spec.is_unpartitioned:
            return True
    return (f.spec_id, partition_key(f.partition)) in scopes


def _changes_of(
    base: SnapshotBase, snapshot: Snapshot, content: ManifestContent
) -> Iterator[ManifestEntry]:
    """Yield the manifest entries that the snapshot itself added or deleted."""
    for manifest in base.read_manifests(snapshot):
        if manifest.content is not content or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        if manifest.added_files_count == 0 and manifest.deleted_files_count == 0:
            continue
        for entry in base.read_entries(manifest):
            if (
                entry.status is not EntryStatus.EXISTING
                and entry.snapshot_id == snapshot.snapshot_id
            ):
                yield entry
    yield from base.read_removed_entries(snapshot, content)


def _conflict(base: SnapshotBase, snapshot: Snapshot, change: str) -> ConcurrentChangeError:
    return ConcurrentChangeError(
        f"table {base.metadata.location}: snapshot {snapshot.snapshot_id} "
        f"({snapshot.operation or 'unknown operation'}) {change} this operation reads; "
        "run the operation again"
    )
