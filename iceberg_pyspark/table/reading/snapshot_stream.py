"""What all streams of a table share: offsets along the snapshots of a branch.

A batch is determined by its two offsets, whatever was committed since, so a batch that failed is
the same when it runs again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from iceberg_pyspark.errors import NoSuchSnapshotError
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, select_snapshot
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
class Backlog:
    """What a stream has not read yet, by the summaries of snapshots, which writers may omit."""

    files: int
    rows: int
    size: int


@dataclass(frozen=True, kw_only=True)
class SnapshotStream(ABC):
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

    @abstractmethod
    def next(
        self,
        start: StreamOffset,
        *,
        until: StreamOffset | None = None,
        limits: BatchLimits = NO_LIMITS,
    ) -> StreamOffset | None:
        """Return where the batch ends that begins at `start`, or None if there is nothing to read.

        The batch does not go beyond the snapshot of `until`. Raise `NoSuchSnapshotError` if the
        snapshots after `start` are not known.
        """

    @abstractmethod
    def backlog(self, offset: StreamOffset) -> Backlog:
        """Return what the stream has not read after an offset."""

    @abstractmethod
    def _end_of(self, snapshot: Snapshot) -> StreamOffset:
        """Return the offset after a snapshot."""

    @abstractmethod
    def _has_read(self, snapshot: Snapshot, offset: StreamOffset) -> bool:
        """Return whether an offset of the snapshot is after all that the stream reads of it."""

    @abstractmethod
    def _beginnings(self, oldest: Snapshot | None) -> str:
        """Return where a new checkpoint can begin; `oldest` is the first snapshot that is left."""

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
                if not self._has_read(snapshot, start):
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
        return NoSuchSnapshotError(
            f"{problem}has expired, and snapshots that were not read may have expired too (or the "
            "checkpoint is of another table); start a new checkpoint with the option "
            f"stream-from-snapshot: {self._beginnings(lineage[-1] if lineage else None)}"
        )
