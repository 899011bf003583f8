"""The stream of rows that a table gets: offsets, and the files of each batch between two offsets.

A stream reads the rows that snapshots append to a branch, the oldest snapshot first, as Iceberg's
Java connector does; it may begin with all rows of one snapshot. Snapshots that only replace files
(compaction) are passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.reading.snapshot_stream import Backlog, SnapshotStream
from iceberg_pyspark.table.reading.stream_files import SnapshotFiles, StreamFile
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset
from iceberg_pyspark.table.reading.stream_rules import (
    CURRENT,
    EARLIEST,
    NO_LIMITS,
    BatchLimits,
    BatchRoom,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """The rows of one batch: those that `appends` have appended, the newest snapshot first.

    If `appends` is None, the rows are those of `snapshot`, without the deleted ones. `only_files`
    are the data files that are read; None means all of these snapshots.
    """

    snapshot: Snapshot | None = None
    appends: tuple[Snapshot, ...] | None = ()
    only_files: frozenset[str] | None = None


@dataclass(frozen=True, kw_only=True)
class AppendStream(SnapshotStream):
    """The stream of the rows that snapshots append."""

    def next(
        self,
        start: StreamOffset,
        *,
        until: StreamOffset | None = None,
        limits: BatchLimits = NO_LIMITS,
    ) -> StreamOffset | None:
        """Return where the batch ends that begins at `start`, or None if there is nothing to read.

        Raise `InvalidRequestError` if the next snapshot deletes or overwrites rows and `rules` do
        not say what to do, and the errors of all streams.
        """
        start = self._resolved(start)
        if START in (start, until):
            return None
        room = BatchRoom(limits)
        passed: Snapshot | None = None
        for snapshot, begin, all_files in self._unread(start, self._last(until)):
            if not room.is_left:
                break
            refusal = None if all_files else self._refusal(snapshot)
            if refusal is not None:
                if passed is None:
                    raise refusal
                break
            if all_files or self._reads(snapshot):
                position = self._take(snapshot, begin, room, all_files=all_files)
                if position is not None:
                    return StreamOffset(
                        snapshot_id=snapshot.snapshot_id,
                        position=position,
                        scan_all_files=all_files,
                    )
            if all_files:
                # its deletes apply to no row that was appended later
                return self._end_of(snapshot, all_files=True)
            passed = snapshot
        return None if passed is None else self._end_of(passed)

    def batch(self, start: StreamOffset, end: StreamOffset) -> StreamBatch:
        """Return the files between two offsets; raises the errors of `next`."""
        start = self._resolved(start)
        if START in (start, end):
            return StreamBatch()
        last = self.metadata.snapshot_by_id.get(end.snapshot_id)
        if last is None:
            raise self._lost(end, self._lineage())
        pieces: list[tuple[SnapshotFiles, int, int | None]] = []
        for snapshot, begin, all_files in self._unread(start, last):
            refusal = None if all_files else self._refusal(snapshot)
            if refusal is not None:
                raise refusal
            if all_files or self._reads(snapshot):
                files = self._files(snapshot, all_files=all_files)
                partial = snapshot is last and not end.is_complete and end.position < files.end()
                pieces.append((files, begin, end.position if partial else None))
        only_files = None
        if any(begin or stop is not None for _, begin, stop in pieces):
            only_files = frozenset(f.path for piece in pieces for f in _between(*piece))
        if end.scan_all_files and pieces:
            return StreamBatch(snapshot=last, appends=None, only_files=only_files)
        return StreamBatch(
            snapshot=last,
            appends=tuple(files.snapshot for files, _, _ in reversed(pieces)),
            only_files=only_files,
        )

    def backlog(self, offset: StreamOffset) -> Backlog:
        """Return what the stream has not read after an offset."""
        start = self._resolved(offset)
        files = rows = size = 0
        for snapshot, begin, all_files in self._unread(start, self._last(None)):
            if begin or all_files:
                left = list(self._files(snapshot, all_files=all_files).after(begin))
                files += len(left)
                rows += sum(f.rows for f in left)
                size += sum(f.size for f in left)
            elif self._refusal(snapshot) is None and self._reads(snapshot):
                files += snapshot.number("added-data-files") or 0
                rows += snapshot.number("added-records") or 0
                size += snapshot.number("added-files-size") or 0
        return Backlog(files=files, rows=rows, size=size)

    def _files(self, snapshot: Snapshot, *, all_files: bool = False) -> SnapshotFiles:
        return SnapshotFiles(
            metadata=self.metadata, io=self.io, snapshot=snapshot, all_files=all_files
        )

    def _end_of(self, snapshot: Snapshot, *, all_files: bool = False) -> StreamOffset:
        return StreamOffset(
            snapshot_id=snapshot.snapshot_id,
            position=self._files(snapshot, all_files=all_files).end(),
            scan_all_files=all_files,
            is_complete=True,
        )

    def _has_read(self, snapshot: Snapshot, offset: StreamOffset) -> bool:
        if offset.is_complete:
            return True
        if not offset.position and not offset.scan_all_files and self._refusal(snapshot):
            # The stream begins here. Without files, its end would have the same position.
            return False
        return offset.position >= self._files(snapshot, all_files=offset.scan_all_files).end()

    def _beginnings(self, oldest: Snapshot | None) -> str:
        since = "" if oldest is None else f", snapshot {oldest.snapshot_id}"
        return (
            f"{EARLIEST} for all appends since the oldest snapshot{since}, "
            f"{CURRENT} for all rows of the table"
        )

    def _take(
        self, snapshot: Snapshot, begin: int, room: BatchRoom, *, all_files: bool
    ) -> int | None:
        """Take files while there is room; return the position reached, or None at the end."""
        if room.limits == NO_LIMITS:
            return None
        files = self._files(snapshot, all_files=all_files)
        if not begin and not all_files:
            count, rows = files.added()
            size = snapshot.number("added-files-size")
            if size is not None or room.limits.max_bytes is None:
                more = replace(room)
                more.take(max(count - 1, 0), rows, size or 0)
                if more.is_left:
                    room.take(count, rows, size or 0)
                    return None
        position = begin
        for file in files.after(begin):
            if not room.is_left:
                return position
            room.take(1, file.rows, file.size)
            position = file.position + 1
        return None

    def _reads(self, snapshot: Snapshot) -> bool:
        """Return whether the stream has the rows of the files that a snapshot has added."""
        is_overwrite = snapshot.operation == "overwrite"
        return snapshot.operation == "append" or (
            is_overwrite and self.rules.overwrites == "added-files-only"
        )

    def _refusal(self, snapshot: Snapshot) -> Exception | None:
        """Return the error if the stream cannot pass a snapshot."""
        snapshot_text = f"table {self.table}: snapshot {snapshot.snapshot_id}"
        match snapshot.operation:
            case "append" | "replace":
                return None
            case "delete":
                if self.rules.skips_deletes:
                    return None
                return InvalidRequestError(
                    f"{snapshot_text} deletes rows, which a stream of appended rows cannot show; "
                    "set streaming-skip-delete-snapshots to true to pass such snapshots"
                )
            case "overwrite":
                if self.rules.overwrites != "fail":
                    return None
                return InvalidRequestError(
                    f"{snapshot_text} overwrites rows, which a stream of appended rows cannot "
                    "show; set streaming-overwrite-mode to skip to pass such snapshots, or to "
                    "added-files-only to read the files that they add"
                )
        return UnsupportedFeatureError(
            f"{snapshot_text} has the operation {snapshot.operation}, so the rows that it has "
            "appended are unknown; start a new checkpoint with stream-from-snapshot="
            f"{snapshot.snapshot_id}"
        )


def _between(files: SnapshotFiles, begin: int, stop: int | None) -> Iterator[StreamFile]:
    return takewhile(lambda f: stop is None or f.position < stop, files.after(begin))
