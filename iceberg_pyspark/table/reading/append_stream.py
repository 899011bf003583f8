"""The stream of rows that a table gets: offsets, and the files of each batch between two offsets.

A stream reads the rows that snapshots append to a branch, the oldest snapshot first, as Iceberg's
Java connector does; it may begin with all rows of one snapshot. Snapshots that only replace files
(compaction) are passed. A batch is determined by its two offsets, whatever was committed since, so
a batch that failed is the same when it runs again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from iceberg_pyspark.changes.ref_changes import ancestors_of
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, select_snapshot
from iceberg_pyspark.table.reading.stream_files import SnapshotFiles, StreamFile
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset
from iceberg_pyspark.table.reading.stream_rules import (
    CURRENT,
    EARLIEST,
    LATEST,
    NO_LIMITS,
    BatchLimits,
    StreamRules,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What a stream has not read yet, by the summaries of snapshots, which writers may omit."""

    files: int
    rows: int
    size: int


@dataclass(slots=True)
class _Room:
    """How much more a batch may read."""

    limits: BatchLimits
    files: int = 0
    rows: int = 0
    size: int = 0

    @property
    def is_left(self) -> bool:
        """Whether one more file fits."""
        return (
            self.files < _number(self.limits.max_files)
            and self.rows < _number(self.limits.max_rows)
            and self.size < _number(self.limits.max_bytes)
        )

    def take(self, files: int, rows: int, size: int) -> None:
        """Count files that the batch reads."""
        self.files, self.rows, self.size = self.files + files, self.rows + rows, self.size + size


def _number(limit: int | None) -> float:
    return math.inf if limit is None else limit


@dataclass(frozen=True, kw_only=True)
class AppendStream:
    """The stream of a branch, by one state of the table's metadata."""

    table: str
    """The table's name in errors."""

    metadata: TableMetadata
    io: FileIO = field(repr=False)
    rules: StreamRules = field(default_factory=StreamRules)
    branch: str | None = None

    def initial(self) -> StreamOffset:
        """Return where a new stream begins; `START` if the table has no such snapshot yet."""
        lineage = self._lineage()
        begin = self.rules.from_snapshot
        if begin not in (None, EARLIEST, LATEST, CURRENT):
            return self._after_version(str(begin), lineage)
        if not lineage:
            return START
        if begin == LATEST:
            return self._end_of(lineage[0])
        if begin == CURRENT:
            return StreamOffset(snapshot_id=lineage[0].snapshot_id, position=0, scan_all_files=True)
        since_ms = self.rules.from_timestamp_ms
        if since_ms is not None:
            lineage = list(takewhile(lambda s: s.timestamp_ms >= since_ms, lineage))
        return StreamOffset(snapshot_id=lineage[-1].snapshot_id, position=0) if lineage else START

    def end(self) -> StreamOffset:
        """Return the end of all that the branch has now; `START` if it has no snapshot."""
        lineage = self._lineage()
        return self._end_of(lineage[0]) if lineage else START

    def next(
        self,
        start: StreamOffset,
        *,
        until: StreamOffset | None = None,
        limits: BatchLimits = NO_LIMITS,
    ) -> StreamOffset | None:
        """Return where the batch ends that begins at `start`, or None if there is nothing to read.

        The batch does not go beyond the snapshot of `until`. Raise `InvalidRequestError` if the
        next snapshot deletes or overwrites rows and `rules` do not say what to do, and
        `NoSuchSnapshotError` if the snapshots after `start` are not known.
        """
        start = self._resolved(start)
        if START in (start, until):
            return None
        room = _Room(limits)
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

    def _lineage(self) -> list[Snapshot]:
        """Return the snapshots of the branch that have not expired, the newest first."""
        head = select_snapshot(self.metadata, SnapshotSelector(branch=self.branch)).snapshot
        return list(ancestors_of(self.metadata, head))

    def _last(self, until: StreamOffset | None) -> Snapshot | None:
        """Return the newest snapshot to read: that of `until`, unless it has expired."""
        last = None if until is None else self.metadata.snapshot_by_id.get(until.snapshot_id)
        return last or next(iter(self._lineage()), None)

    def _resolved(self, start: StreamOffset) -> StreamOffset:
        if start != START:
            return start
        # The table had nothing when the stream was started, so all that it got since is new.
        return replace(self, rules=replace(self.rules, from_snapshot=None)).initial()

    def _after_version(self, version: str, lineage: Sequence[Snapshot]) -> StreamOffset:
        selected = None
        if version in self.metadata.refs or not version.isdecimal():
            selected = self.metadata.ref_snapshot(version)
        snapshot_id = int(version) if selected is None else selected.snapshot_id
        for snapshot in lineage:
            if snapshot.snapshot_id == snapshot_id:
                return self._end_of(snapshot)
        if lineage and lineage[-1].parent_snapshot_id == snapshot_id:
            return StreamOffset(snapshot_id=snapshot_id, position=0, is_complete=True)
        raise NoSuchSnapshotError(
            f"table {self.table}: stream-from-snapshot is {version}, and snapshot {snapshot_id} "
            f"is not in the history of branch '{self.branch or MAIN}'; the metadata table history "
            "lists the snapshots with is_current_ancestor"
        )

    def _unread(
        self, start: StreamOffset, last: Snapshot | None
    ) -> Iterator[tuple[Snapshot, int, bool]]:
        """Yield the snapshots from an offset up to the last one, the oldest first.

        Each comes with the position to begin at, and with whether that counts all its files.
        """
        after: list[Snapshot] = []
        for snapshot in ancestors_of(self.metadata, last):
            if snapshot.snapshot_id == start.snapshot_id:
                files = self._files(snapshot, all_files=start.scan_all_files)
                if not start.is_complete and start.position < files.end():
                    yield snapshot, start.position, start.scan_all_files
                break
            after.append(snapshot)
        else:
            is_parent = bool(after) and after[-1].parent_snapshot_id == start.snapshot_id
            if not (is_parent and start.is_complete):
                raise self._lost(start, after)
        for snapshot in reversed(after):
            yield snapshot, 0, False

    def _lost(self, offset: StreamOffset, lineage: Sequence[Snapshot]) -> NoSuchSnapshotError:
        problem = (
            f"table {self.table}: the stream has read up to snapshot {offset.snapshot_id}, which "
        )
        there = self.metadata.snapshot_by_id.get(offset.snapshot_id)
        ids = {s.snapshot_id for s in lineage}
        if there is not None:
            common = next(
                (s for s in ancestors_of(self.metadata, there) if s.snapshot_id in ids), None
            )
            begin = CURRENT if common is None else str(common.snapshot_id)
            return NoSuchSnapshotError(
                f"{problem}the branch '{self.branch or MAIN}' no longer contains: it was rolled "
                "back or replaced, so rows that were read are gone from it; to go on, start a new "
                f"checkpoint with stream-from-snapshot={begin}"
            )
        oldest = f", snapshot {lineage[-1].snapshot_id}" if lineage else ""
        return NoSuchSnapshotError(
            f"{problem}has expired, and snapshots that were not read may have expired too (or the "
            "checkpoint is of another table); start a new checkpoint with the option "
            f"stream-from-snapshot: {EARLIEST} for all appends since the oldest snapshot{oldest}, "
            f"{CURRENT} for all rows of the table"
        )

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

    def _take(self, snapshot: Snapshot, begin: int, room: _Room, *, all_files: bool) -> int | None:
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
