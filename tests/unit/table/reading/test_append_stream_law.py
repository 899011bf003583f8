"""A stream returns every appended row once, whatever else happens to the table between its batches.

A random history is written to a table while a stream reads it, with random limits and restarts from
the JSON of its offsets. The expected rows of a snapshot are found by two full scans: those of files
that its parent does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import ancestors_of
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.reading.append_stream import AppendStream
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.reading.stream_files import SnapshotFiles
from iceberg_pyspark.table.reading.stream_offsets import StreamOffset, read_offset
from iceberg_pyspark.table.reading.stream_rules import BatchLimits, OverwriteMode, StreamRules
from iceberg_pyspark.table.reading.stream_scan import scan_of_batch
from tests.amounts import WORK
from tests.support.commit_tables import CommitTable, commit_table
from tests.support.history_model import Draw

BRANCH = "b"
PARTS = "abc"


@dataclass
class History:
    """A table with what its snapshots have added, by two scans of each."""

    files: CommitTable
    table: Table
    next_id: int = 0
    added: dict[int, list[int]] = field(default_factory=dict)
    """The ids of the rows in the files that each snapshot has added."""

    live: dict[int, list[int]] = field(default_factory=dict)
    expiries: int = 0

    def rows(self, parts: Sequence[str]) -> pa.Table:
        """Return a new row for each partition value."""
        ids = range(self.next_id, self.next_id + len(parts))
        self.next_id += len(parts)
        columns = {"id": pa.array(ids, pa.int64()), self.part: list(parts)}
        return pa.table(columns)

    @property
    def part(self) -> str:
        """The present name of the partition column."""
        return self.table.schema.fields[1].name

    def remember(self) -> None:
        """Scan the new snapshots, before anything else happens to the table."""
        self.table = Table(
            self.files.catalog, self.files.loaded, io=self.files.io, clock=self.files.clock.clock
        )
        for snapshot in self.table.snapshots:
            if snapshot.snapshot_id in self.added:
                continue
            known = {path for path, _ in self._scan(snapshot.parent_snapshot_id)}
            own = self._scan(snapshot.snapshot_id)
            self.live[snapshot.snapshot_id] = [row for _, row in own]
            self.added[snapshot.snapshot_id] = [row for path, row in own if path not in known]

    def _scan(self, snapshot_id: int | None) -> list[tuple[str, int]]:
        if snapshot_id is None:
            return []
        selector = SnapshotSelector(snapshot_id=snapshot_id)
        rows = self.table.scan(columns=["_file", "id"], selector=selector).to_arrow()
        return list(zip(rows["_file"].to_pylist(), rows["id"].to_pylist(), strict=True))


# --- what happens to the table --------------------------------------------------------------------


def append(h: History, draw: Draw, branch: str = MAIN) -> None:
    parts = draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5))
    h.table.append(h.rows(parts), branch=branch)


def append_to_branch(h: History, draw: Draw) -> None:
    append(h, draw, BRANCH)


def overwrite(h: History, draw: Draw) -> None:
    h.table.overwrite(h.rows([draw(st.sampled_from(PARTS))]), dynamic=True)


def delete(h: History, draw: Draw) -> None:
    h.table.delete(f"{h.part} = '{draw(st.sampled_from(PARTS))}'")


def delete_one_row(h: History, draw: Draw) -> None:
    """Delete the first row of a file by a deletion vector."""
    version, tasks = h.table.metadata.format_version, list(h.table.scan().plan_files())
    tasks = [t for t in tasks if not t.deletes]
    if version < 3 or not tasks:
        return
    task = draw(st.sampled_from(tasks))
    location = f"{h.table.location}/data/{h.files.clock.now_ms()}.puffin"
    blobs = write_deletion_vectors(h.table.io, location, {task.file_path: [0]})
    vector = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format="puffin",
        spec_id=task.spec_id,
        partition=task.partition,
        record_count=1,
        file_size_in_bytes=h.table.io.size(location),
        referenced_data_file=task.file_path,
        content_offset=blobs[task.file_path].content_offset,
        content_size_in_bytes=blobs[task.file_path].content_size_in_bytes,
    )
    checks = ConflictChecks(base_snapshot_id=h.table.metadata.current_snapshot_id)
    action = RowDelta(delete_files=(vector,), checks=checks)
    commit_action(h.files.catalog, h.table.loaded, h.table.io, action)


def compact(h: History, draw: Draw) -> None:
    del draw
    h.table.maintenance().rewrite_data_files(options={"rewrite-all": True})


def rewrite_manifests(h: History, draw: Draw) -> None:
    del draw
    h.table.maintenance().rewrite_manifests()


def rename_column(h: History, draw: Draw) -> None:
    del draw
    h.table.update_schema().rename_column(h.part, f"p{h.files.clock.now_ms()}").commit()


def add_column(h: History, draw: Draw) -> None:
    del draw
    h.table.update_schema().add_column(f"c{h.files.clock.now_ms()}", "int").commit()


def expire(h: History, draw: Draw) -> None:
    keep = draw(st.integers(1, 3))
    h.table.maintenance().expire_snapshots(older_than=1 << 52, retain_last=keep)
    h.expiries += 1


def roll_back(h: History, draw: Draw) -> None:
    lineage = list(ancestors_of(h.table.metadata, h.table.current_snapshot))
    if len(lineage) > 1:
        to = draw(st.sampled_from(lineage[1:])).snapshot_id
        h.table.manage_snapshots().rollback_to(to).commit()


EVENTS = (
    *(append, append, append, append_to_branch, overwrite, delete, delete_one_row),
    *(compact, rewrite_manifests, rename_column, add_column, expire, roll_back),
)


def happen(h: History, draw: Draw) -> None:
    event = draw(st.sampled_from(EVENTS))
    note(event.__name__)
    event(h, draw)
    h.remember()


# --- the stream -----------------------------------------------------------------------------------


@dataclass
class Reader:
    """A stream as a query reads it, and the law that its batches must obey."""

    h: History
    rules: StreamRules
    branch: str | None
    schema: Schema = field(init=False)
    offset: StreamOffset = field(init=False)
    at: int | None = field(init=False)
    """The last snapshot that was begun; None before the first."""

    missing: Counter[int] = field(init=False, default_factory=Counter)
    """The rows of that snapshot that have not come yet."""

    has_files_left: bool = field(init=False)
    """Whether that snapshot has files that were not read; their rows may all be deleted."""

    batches: list[tuple[StreamOffset, StreamOffset, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.schema = self.h.table.schema
        self.offset = read_offset(self._stream().initial().json())
        head, *_, oldest = [*self._lineage()[:1], *self._lineage()]
        is_new = self.rules.from_snapshot in ("current", "latest")
        self.at = head.snapshot_id if is_new else oldest.parent_snapshot_id
        if self.rules.from_snapshot == "current":
            self.missing.update(self.h.live[head.snapshot_id])
        self.has_files_left = self._files_are_left()

    def read(self, limits: BatchLimits) -> bool:
        """Read a batch, and check it; return whether the stream goes on."""
        problem = self._problem()
        if problem is not None:
            with pytest.raises(problem) as e:
                self._stream().next(self.offset, limits=limits)
            note(f"the stream ended: {e.value}")
            return False
        end = self._stream().next(self.offset, limits=limits)
        if end is None:
            assert not +self.missing
            assert self.at == self._lineage()[0].snapshot_id
            return False
        assert end != self.offset
        rows, files = self._rows(self.offset, end)
        assert files <= (limits.max_files or files)
        note(f"batch {self.offset.json()} {end.json()}: {rows}")
        for snapshot in self._after():
            if self.at == end.snapshot_id:
                break
            assert not +self.missing - Counter(rows), "a snapshot was left before its end"
            self.at = snapshot.snapshot_id
            self.missing.update(self._expected(snapshot))
        assert self.at == end.snapshot_id
        assert Counter(rows) <= self.missing
        self.missing -= Counter(rows)
        assert not (+self.missing and end.is_complete)
        self.batches.append((self.offset, end, rows))
        self.offset = read_offset(end.json())
        self.has_files_left = self._files_are_left()
        return True

    def read_again(self) -> None:
        """Check that each batch has the same rows when it runs again."""
        for start, end, rows in self.batches:
            assert sorted(self._rows(start, end)[0]) == sorted(rows)

    def _stream(self) -> AppendStream:
        table = self.h.table
        return AppendStream(
            table="t",
            metadata=table.metadata,
            io=table.io,
            rules=self.rules,
            branch=self.branch,
        )

    def _rows(self, start: StreamOffset, end: StreamOffset) -> tuple[list[int], int]:
        """Return the rows of a batch, and the number of files with them."""
        batch = self._stream().batch(start, end)
        scan = scan_of_batch(self._stream(), batch, self.schema, lambda schema: schema)
        rows = scan.to_arrow()
        assert rows.column_names == [f.name for f in self.schema.fields]
        return rows["id"].to_pylist(), len(list(scan.plan().tasks(None)))

    def _lineage(self) -> list[Snapshot]:
        """Return the snapshots of the branch, the newest first."""
        metadata = self.h.table.metadata
        return list(ancestors_of(metadata, metadata.ref_snapshot(self.branch or MAIN)))

    def _after(self) -> list[Snapshot]:
        """Return the snapshots after the last one begun, the oldest first."""
        lineage = self._lineage()[::-1]
        ids = [s.snapshot_id for s in lineage]
        return lineage[ids.index(self.at) + 1 :] if self.at in ids else lineage

    def _expected(self, snapshot: Snapshot) -> list[int]:
        takes_overwrites = self.rules.overwrites == "added-files-only"
        reads = {"append", "overwrite"} if takes_overwrites else {"append"}
        return self.h.added[snapshot.snapshot_id] if snapshot.operation in reads else []

    def _files_are_left(self) -> bool:
        snapshot = self.h.table.metadata.snapshot_by_id.get(self.offset.snapshot_id)
        if snapshot is None or self.offset.is_complete or self.at != snapshot.snapshot_id:
            return False
        all_files = self.offset.scan_all_files
        stream = self._stream()
        files = SnapshotFiles(
            metadata=stream.metadata, io=stream.io, snapshot=snapshot, all_files=all_files
        )
        return self.offset.position < files.end()

    def _problem(self) -> type[IcebergError] | None:
        """Return the error that the next batch must raise."""
        lineage = self._lineage()
        is_there = self.at in {s.snapshot_id for s in lineage}
        is_begun = bool(+self.missing) or self.has_files_left
        if not is_there and (is_begun or lineage[-1].parent_snapshot_id != self.at):
            return NoSuchSnapshotError
        if is_begun or not self._after():
            return None
        refused = set()
        if not self.rules.skips_deletes:
            refused.add("delete")
        if self.rules.overwrites == "fail":
            refused.add("overwrite")
        return InvalidRequestError if self._after()[0].operation in refused else None


@st.composite
def batch_limits(draw: st.DrawFn) -> BatchLimits:
    return BatchLimits(
        max_files=draw(st.none() | st.integers(1, 4)),
        max_rows=draw(st.none() | st.integers(1, 6)),
        max_bytes=draw(st.none() | st.integers(1, 4000)),
    )


@settings(max_examples=30 * WORK, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_appended_row_comes_once(data: st.DataObject) -> None:
    draw = data.draw
    merges = draw(st.sampled_from(["2", "100"]))
    version = draw(st.sampled_from([1, 2, 3, 3, 4]))
    note(f"version {version}, manifests are merged from {merges}")
    properties = {"commit.manifest.min-count-to-merge": merges}
    files = commit_table(partitioned=True, format_version=version, properties=properties)
    h = History(files, Table(files.catalog, files.loaded, io=files.io, clock=files.clock.clock))
    h.table.append(h.rows("a"))
    h.table.refresh().manage_snapshots().create_branch(BRANCH).commit()
    h.remember()
    for _ in range(draw(st.integers(0, 4))):
        happen(h, draw)
    overwrites: OverwriteMode = draw(st.sampled_from(["fail", "skip", "added-files-only"]))
    rules = StreamRules(
        from_snapshot=draw(st.sampled_from([None, "earliest", "latest", "current"])),
        skips_deletes=draw(st.booleans()),
        overwrites=overwrites,
    )
    reader = Reader(h, rules, branch=draw(st.sampled_from([None, None, BRANCH])))
    note(f"stream of {reader.branch or MAIN} by {rules}")
    expired_before = h.expiries
    for _ in range(draw(st.integers(1, 6))):
        for _ in range(draw(st.integers(0, 3))):
            happen(h, draw)
        for _ in range(draw(st.integers(0, 3))):
            reader.read(draw(batch_limits()))
    while reader.read(draw(batch_limits())):
        pass
    if h.expiries == expired_before:
        reader.read_again()
