"""The stream of the rows that snapshots add and remove: offsets, and the snapshots of each batch.

Offsets lie between snapshots. Compaction changes no rows, and is passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.metadata_tables.changes_table import ChangeForm, ChangePlan
from iceberg_pyspark.table.reading.snapshot_stream import Backlog, SnapshotStream
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset
from iceberg_pyspark.table.reading.stream_rules import (
    CURRENT,
    NO_LIMITS,
    BatchLimits,
    BatchRoom,
)

_EVERY_ROW = AlwaysTrue()
NET = ChangeForm(compares=True)


@dataclass(frozen=True, kw_only=True)
class ChangeStream(SnapshotStream):
    """The stream of the changes of all snapshots."""

    def initial(self) -> StreamOffset:
        """Return where a new stream begins; raise `NoSuchSnapshotError` if that is not known."""
        offset = super().initial()
        if offset != START and not offset.is_complete:
            self._check_known(offset, self.metadata.snapshot_by_id[offset.snapshot_id])
        return offset

    def next(
        self,
        start: StreamOffset,
        *,
        until: StreamOffset | None = None,
        limits: BatchLimits = NO_LIMITS,
    ) -> StreamOffset | None:
        """Return where the batch ends that begins at `start`, or None if there is nothing to read.

        The snapshot that reaches a limit, by its summary, is the last one of the batch.
        """
        if until == START:
            return None
        room = BatchRoom(limits)
        end = None
        for snapshot, is_whole in self._between(start, self._last(until)):
            if not room.is_left:
                break
            room.take(*_amount(snapshot, is_whole=is_whole))
            end = self._end_of(snapshot)
        return end

    def plan(
        self,
        start: StreamOffset,
        end: StreamOffset,
        *,
        predicate: Predicate = _EVERY_ROW,
        of_changes: Predicate = _EVERY_ROW,
        form: ChangeForm = NET,
    ) -> ChangePlan:
        """Return the plan of the changes between two offsets; see `ChangePlan` for arguments."""
        snapshots: list[Snapshot] = []
        if end != START:
            last = self.metadata.snapshot_by_id.get(end.snapshot_id)
            if last is None:
                raise self._lost(end, self._lineage())
            snapshots = [
                as_insert(snapshot) if is_whole else snapshot
                for snapshot, is_whole in self._between(start, last)
            ]
        return ChangePlan(
            self.io,
            self.metadata,
            self.table,
            snapshots[::-1],
            predicate=predicate,
            of_changes=of_changes,
            form=form,
        )

    def backlog(self, offset: StreamOffset) -> Backlog:
        """Return what the stream has not read after an offset."""
        room = BatchRoom(NO_LIMITS)
        for snapshot, is_whole in self._between(offset, self._last(None)):
            room.take(*_amount(snapshot, is_whole=is_whole))
        return Backlog(files=room.files, rows=room.rows, size=room.size)

    def _between(
        self, start: StreamOffset, last: Snapshot | None
    ) -> Sequence[tuple[Snapshot, bool]]:
        """Return the snapshots after an offset, each with whether all its rows are read."""
        is_new = start == START
        start = self._resolved(start)
        if start == START:
            return []
        if start.position and not start.is_complete:
            raise InvalidRequestError(
                f"table {self.table}: the checkpoint is of a stream of appended rows, which is "
                "between two files of a snapshot; give this stream of changes a checkpoint of its "
                "own"
            )
        snapshots = [(snapshot, is_whole) for snapshot, _, is_whole in self._unread(start, last)]
        if snapshots and not snapshots[0][1]:
            self._check_known(start, snapshots[0][0], is_new=is_new)
        return snapshots

    def _check_known(self, start: StreamOffset, first: Snapshot, *, is_new: bool = False) -> None:
        """Raise `NoSuchSnapshotError` if the snapshot before the first one has expired.

        What an append has added is known without it, but not what was before the append.
        """
        parent_id = first.parent_snapshot_id
        is_known = not is_new and first.operation in ("append", "replace")
        if start.scan_all_files or is_known or parent_id is None:
            return
        if parent_id not in self.metadata.snapshot_by_id:
            raise NoSuchSnapshotError(
                f"table {self.table}: what snapshot {first.snapshot_id} changed is not known, "
                f"because snapshot {parent_id} before it has expired; start a new checkpoint with "
                f"the option stream-from-snapshot: {self._beginnings(first)}"
            )

    def _end_of(self, snapshot: Snapshot) -> StreamOffset:
        return StreamOffset(snapshot_id=snapshot.snapshot_id, position=1, is_complete=True)

    def _has_read(self, snapshot: Snapshot, offset: StreamOffset) -> bool:
        del snapshot
        return offset.is_complete

    def _beginnings(self, oldest: Snapshot | None) -> str:
        after = "" if oldest is None else f"{oldest.snapshot_id} for what follows that snapshot, "
        return f"{after}{CURRENT} for all rows of the table and what follows"


def as_insert(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as if it had inserted all its rows."""
    return replace(snapshot, parent_snapshot_id=None, summary={"operation": "append"})


def _amount(snapshot: Snapshot, *, is_whole: bool) -> tuple[int, int, int]:
    """Return the number of files, rows and bytes that a batch reads, as far as it is known."""
    kinds = (
        (("total-data-files",), ("total-records",), ("total-files-size",))
        if is_whole
        else (
            ("added-data-files", "deleted-data-files", "added-delete-files"),
            (
                *("added-records", "deleted-records"),
                *("added-position-deletes", "added-equality-deletes"),
            ),
            ("added-files-size", "removed-files-size"),
        )
    )
    if snapshot.operation == "replace" and not is_whole:
        return 0, 0, 0
    files, rows, size = (sum(snapshot.number(name) or 0 for name in names) for names in kinds)
    return max(files, 1), rows, size
