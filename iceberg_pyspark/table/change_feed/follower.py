"""Follows a branch: yields the changes of each snapshot when it is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import ancestors_of
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.change_feed.table_changes import (
    TableChanges,
    changes_of,
    rows_as_changes,
)
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.metadata_tables.lookup import changing_snapshots
from iceberg_pyspark.table.reading.snapshot_selection import Beginning, SnapshotSelector

EARLIEST, LATEST, CURRENT = "earliest", "latest", "current"


def follow(
    table: LoadedTable,
    load: Callable[[], LoadedTable],
    io_of: Callable[[LoadedTable], FileIO],
    *,
    start: Beginning,
    branch: str | None,
    poll_interval: float,
    timeout: float | None,
    clock: Clock,
) -> Iterator[TableChanges]:
    """Return the iterator that `Table.follow` describes; errors of `start` are raised at once."""
    if poll_interval <= 0 or (timeout is not None and timeout < 0):
        raise InvalidRequestError(
            "follow: poll_interval is more than 0 seconds, and timeout 0 seconds or more, not "
            f"{poll_interval} and {timeout}"
        )
    first, at = _beginning(table, start, branch)
    _unread(table, branch, at)

    def snapshots() -> Iterator[TableChanges]:
        nonlocal table, at
        if first is not None:
            yield rows_as_changes(table, io_of(table), first)
        waited = 0.0
        while True:
            for snapshot in reversed(_unread(table, branch, at)):
                yield changes_of(table, io_of(table), [snapshot])
                at = snapshot.snapshot_id
                waited = 0.0
            if timeout is not None and waited >= timeout:
                return
            pause = poll_interval if timeout is None else min(poll_interval, timeout - waited)
            clock.sleep_ms(pause * 1000)
            waited += pause
            table = load()

    return snapshots()


def _beginning(
    table: LoadedTable, start: Beginning, branch: str | None
) -> tuple[Snapshot | None, int | None]:
    """Return the snapshot whose rows come first, and the last snapshot that is not read."""
    lineage = _lineage(table, branch)
    head = lineage[0] if lineage else None
    match start:
        case "latest" | "current":
            is_current = start == CURRENT
            return (head if is_current else None), None if head is None else head.snapshot_id
        case "earliest":
            # None before the first snapshot, or the id of one that has expired
            return None, lineage[-1].parent_snapshot_id if lineage else None
        case str():
            return None, table.metadata.ref_snapshot(start).snapshot_id
    return None, start


def _lineage(table: LoadedTable, branch: str | None) -> Sequence[Snapshot]:
    return changing_snapshots(table, SnapshotSelector(branch=branch))


def _unread(table: LoadedTable, branch: str | None, at: int | None) -> list[Snapshot]:
    """Return the snapshots after one, the newest first; raise `NoSuchSnapshotError`."""
    lineage = _lineage(table, branch)
    unread = list(takewhile(lambda s: s.snapshot_id != at, lineage))
    if len(unread) < len(lineage) or not unread:
        if at is not None and not lineage:
            raise _lost(table, branch, at, lineage)
        return unread
    oldest = unread[-1]
    is_next = oldest.parent_snapshot_id == at
    if not is_next or (at is not None and oldest.operation not in ("append", "replace")):
        raise _lost(table, branch, at, lineage)
    return unread


def _lost(
    table: LoadedTable, branch: str | None, at: int | None, lineage: Sequence[Snapshot]
) -> NoSuchSnapshotError:
    problem = f"table {table.identifier}: "
    there = None if at is None else table.metadata.snapshot_by_id.get(at)
    if there is not None:
        ids = {s.snapshot_id for s in lineage}
        ancestors = ancestors_of(table.metadata, there)
        common = next((s.snapshot_id for s in ancestors if s.snapshot_id in ids), None)
        problem += (
            f"snapshot {at}, after which changes are followed, is not in the history of branch "
            f"'{branch or MAIN}': it may have been rolled back, or is one of another branch; "
        )
        begins = [] if common is None else [f"start={common}, the last snapshot of both"]
    else:
        problem += (
            f"what changed after snapshot {at} is not known, because snapshots have expired; "
        )
        oldest = lineage[-1].snapshot_id if lineage else None
        begins = [] if oldest is None else [f"start={oldest}, the oldest one that is left"]
    begins.append(f"start='{CURRENT}', which begins with all rows of the table")
    return NoSuchSnapshotError(f"{problem}follow with {', or '.join(begins)}")
