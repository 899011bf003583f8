"""Applies updates of snapshots, branches, tags and statistics files.

Specification, "Snapshots", "Snapshot References", "Table Statistics", "Partition Statistics".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from iceberg_pyspark.changes.metadata_builder import MetadataBuilder
from iceberg_pyspark.changes.updates import SetSnapshotRef
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot, SnapshotLogEntry
from iceberg_pyspark.spec.statistics import PartitionStatisticsFile, StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata

F = TypeVar("F", StatisticsFile, PartitionStatisticsFile)


def add_snapshot(builder: MetadataBuilder, snapshot: Snapshot) -> None:
    """Add a snapshot; its sequence number must be above the table's last, its row ids unused."""
    m = builder.metadata
    if not (m.schemas and m.partition_specs and m.sort_orders):
        raise InvalidRequestError("a snapshot needs a schema, a partition spec and a sort order")
    if snapshot.snapshot_id in m.snapshot_by_id:
        raise InvalidRequestError(f"snapshot {snapshot.snapshot_id} is already in the table")
    if snapshot.schema_id is not None and snapshot.schema_id not in m.schema_by_id:
        raise InvalidRequestError(
            f"snapshot {snapshot.snapshot_id} refers to schema {snapshot.schema_id}, which the "
            "table does not have"
        )
    next_row_id = m.next_row_id
    if m.format_version >= 2:
        if snapshot.manifest_list is None and snapshot.root_manifest is None:
            raise InvalidRequestError("a snapshot needs a manifest list from format version 2 on")
        if snapshot.root_manifest is not None and m.format_version < RELATIVE_PATHS_VERSION:
            raise InvalidRequestError(
                f"snapshot {snapshot.snapshot_id} has a root manifest, which tables of format "
                f"version {m.format_version} do not have"
            )
        if snapshot.sequence_number <= m.last_sequence_number:
            raise CommitConflictError(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}, "
                f"the table is at {m.last_sequence_number}; refresh and retry"
            )
    if m.format_version >= 3:
        next_row_id = _next_row_id(m, snapshot)
    builder.added_snapshot_ids.add(snapshot.snapshot_id)
    builder.metadata = replace(
        m,
        snapshots=(*m.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number if m.format_version >= 2 else 0,
        last_updated_ms=max(m.last_updated_ms, snapshot.timestamp_ms),
        next_row_id=next_row_id,
    )


def _next_row_id(m: TableMetadata, snapshot: Snapshot) -> int:
    """Return the table's `next-row-id` after the snapshot (specification, "Row Lineage")."""
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidRequestError(
            f"snapshot {snapshot.snapshot_id} needs first-row-id and added-rows since version 3"
        )
    if snapshot.added_rows < 0:
        raise InvalidRequestError(f"added-rows must not be negative: {snapshot.added_rows}")
    if snapshot.first_row_id < m.next_row_id:
        raise CommitConflictError(
            f"snapshot {snapshot.snapshot_id} assigns row ids from {snapshot.first_row_id}, "
            f"the table is at {m.next_row_id}; refresh and retry"
        )
    return snapshot.first_row_id + snapshot.added_rows


def set_snapshot_ref(builder: MetadataBuilder, update: SetSnapshotRef) -> None:
    """Set a branch or tag; the branch `main` moves the current snapshot."""
    m, name, ref = builder.metadata, update.name, update.ref
    if m.refs.get(name) == ref:
        return
    if ref.snapshot_id not in m.snapshot_by_id:
        raise InvalidRequestError(
            f"cannot set {ref.type} '{name}' to snapshot {ref.snapshot_id}: it is not in the table"
        )
    if ref.type == "tag" and (
        ref.min_snapshots_to_keep is not None or ref.max_snapshot_age_ms is not None
    ):
        raise InvalidRequestError(
            f"tag '{name}' cannot have min-snapshots-to-keep or max-snapshot-age-ms; only branches "
            "can"
        )
    refs = {**m.refs, name: ref}
    if name != MAIN:
        builder.metadata = replace(m, refs=refs)
        return
    if ref.type != "branch":
        raise InvalidRequestError(f"'{MAIN}' must be a branch")
    log = m.snapshot_log
    if ref.snapshot_id != m.current_snapshot_id:
        is_new = ref.snapshot_id in builder.added_snapshot_ids
        at_ms = m.snapshot_by_id[ref.snapshot_id].timestamp_ms if is_new else builder.now_ms
        # The log is sorted by time: a writer whose clock is behind must not break time travel.
        at_ms = max([at_ms, *(e.timestamp_ms for e in log[-1:])])
        log = (*log, SnapshotLogEntry(snapshot_id=ref.snapshot_id, timestamp_ms=at_ms))
    builder.metadata = replace(m, refs=refs, current_snapshot_id=ref.snapshot_id, snapshot_log=log)


def remove_snapshot_ref(builder: MetadataBuilder, name: str) -> None:
    """Remove a branch or tag."""
    m = builder.metadata
    if name not in m.refs:
        return
    refs = {n: r for n, r in m.refs.items() if n != name}
    current = None if name == MAIN else m.current_snapshot_id
    builder.metadata = replace(m, refs=refs, current_snapshot_id=current)


def remove_snapshots(builder: MetadataBuilder, snapshot_ids: Collection[int]) -> None:
    """Remove snapshots with their references, statistics and history."""
    m = builder.metadata
    removed_ids = m.snapshot_by_id.keys() & set(snapshot_ids)
    if not removed_ids:
        return
    if m.current_snapshot_id in removed_ids:
        raise InvalidRequestError(
            f"cannot remove snapshot {m.current_snapshot_id}: branch '{MAIN}' points at it; let "
            "the branch point at another snapshot first"
        )
    log: list[SnapshotLogEntry] = []
    for entry in m.snapshot_log:
        if entry.snapshot_id in removed_ids:
            # A gap would let time travel return the wrong snapshot, so the history starts after the
            # gap.
            log.clear()
        else:
            log.append(entry)
    builder.metadata = replace(
        m,
        snapshots=tuple(s for s in m.snapshots if s.snapshot_id not in removed_ids),
        refs={n: r for n, r in m.refs.items() if r.snapshot_id not in removed_ids},
        snapshot_log=tuple(log),
        statistics=tuple(s for s in m.statistics if s.snapshot_id not in removed_ids),
        partition_statistics=tuple(
            s for s in m.partition_statistics if s.snapshot_id not in removed_ids
        ),
    )


def set_statistics(
    builder: MetadataBuilder, file: StatisticsFile | PartitionStatisticsFile
) -> None:
    """Set the statistics file, or the partition statistics file, of a snapshot."""
    m = builder.metadata
    m.snapshot(file.snapshot_id)
    if isinstance(file, StatisticsFile):
        files = _of_other_snapshots(m.statistics, file.snapshot_id)
        builder.metadata = replace(m, statistics=(*files, file))
    else:
        others = _of_other_snapshots(m.partition_statistics, file.snapshot_id)
        builder.metadata = replace(m, partition_statistics=(*others, file))


def remove_statistics(builder: MetadataBuilder, snapshot_id: int) -> None:
    """Remove the statistics file of a snapshot."""
    builder.change(statistics=_of_other_snapshots(builder.metadata.statistics, snapshot_id))


def remove_partition_statistics(builder: MetadataBuilder, snapshot_id: int) -> None:
    """Remove the partition statistics file of a snapshot."""
    files = _of_other_snapshots(builder.metadata.partition_statistics, snapshot_id)
    builder.change(partition_statistics=files)


def _of_other_snapshots(files: Iterable[F], snapshot_id: int) -> tuple[F, ...]:
    return tuple(f for f in files if f.snapshot_id != snapshot_id)
