"""The changes of each snapshot, applied in order, give the rows of the table at that snapshot.

A random history is written to a table of any version. The expected rows come from the writer's own
notes, not from a scan. A follower reads each snapshot when it is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.errors import NoSuchSnapshotError
from iceberg_pyspark.spec.metadata_columns import CHANGE_COLUMNS, COMMIT_COLUMNS, LINEAGE
from iceberg_pyspark.spec.table_metadata import ancestors_of
from iceberg_pyspark.table.change_feed.change_stream import ChangeStream
from iceberg_pyspark.table.change_feed.net_changes import net_change_rows
from iceberg_pyspark.table.reading.stream_offsets import StreamOffset, read_offset
from iceberg_pyspark.table.reading.stream_rules import BatchLimits, StreamRules
from iceberg_pyspark.table.reading.stream_scan import scan_of_stream
from tests.amounts import WORK
from tests.support.row_commits import (
    PARTITIONS,
    SMALL_ROOTS,
    Row,
    RowCommitter,
    table_in_memory,
)

COLUMNS = (*CHANGE_COLUMNS, *COMMIT_COLUMNS, *LINEAGE)
State: TypeAlias = Mapping[int, str]
"""The values of v by id."""

OF_EVERY_VERSION = (
    *("append", "append", "replace_files", "replace_files", "overwrite", "overwrite_partition"),
    *("drop_partition", "compact", "rewrite_data_files", "rewrite_manifests", "add_column"),
    *("widen_column", "upgrade", "roll_back", "expire_snapshots"),
)
WITH_DELETES = (
    *("delete", "delete", "delete_keys", "update", "update"),
    *("rewrite_deletes", "rewrite_equality_deletes"),
)


@dataclass
class Writer:
    """A table, and what its rows are after each snapshot."""

    table: Table
    committer: RowCommitter
    states: dict[int | None, State] = field(default_factory=lambda: {None: {}})
    rolled_back: bool = False
    written_again: defaultdict[int, Counter[Any]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    """Rows that a snapshot wrote again without their lineage, so since version 3 they are new."""

    def run(self, operation: str) -> None:
        known = {s.snapshot_id for s in self.table.snapshots}
        change = getattr(self, operation, None)
        if change is None:
            self.committer.run(operation)
        else:
            change()
        self.table.refresh()
        state = {id_: row.v for id_, row in self.committer.rows.items()}
        for snapshot in self.table.snapshots:
            if snapshot.snapshot_id not in known:
                self.states[snapshot.snapshot_id] = state

    def overwrite(self) -> None:
        """Replace all rows: one stays as it is, two are new."""
        self._new_rows(dict(list(self.committer.rows.items())[:1]))

    def overwrite_partition(self) -> None:
        kept = {i: r for i, r in self.committer.rows.items() if i % PARTITIONS == 0}
        others = {i: r for i, r in self.committer.rows.items() if i % PARTITIONS}
        first = dict(list(kept.items())[:1])
        if first:
            self._write(first, dynamic=True)
            self.committer.rows = written_anew(first) | others

    def drop_partition(self) -> None:
        self.table.delete("p = 1")
        rows = self.committer.rows
        self.committer.rows = {i: r for i, r in rows.items() if i % PARTITIONS != 1}

    def add_column(self) -> None:
        name = f"c{len(self.table.schema.fields)}"
        self.table.update_schema().add_column(name, "int").commit()

    def widen_column(self) -> None:
        self.table.update_schema().update_type("p", "long").commit()

    def upgrade(self) -> None:
        version = self.table.metadata.format_version
        if version < 4:
            self.table.update_properties().set({"format-version": str(version + 1)}).commit()

    def roll_back(self) -> None:
        """Roll back to the parent; a follower of the branch then has to begin anew."""
        metadata = self.table.metadata
        head = metadata.current_snapshot
        parent = None if head is None else head.parent_snapshot_id
        if parent is None or parent not in metadata.snapshot_by_id:
            return
        self.table.manage_snapshots().rollback_to(parent).commit()
        self.rolled_back = True
        self.committer.rows = {
            i: Row(v=v, sequence_number=0) for i, v in self.states[parent].items()
        }

    def _new_rows(self, kept: dict[int, Row]) -> None:
        rows = kept
        for _ in range(2):
            id_ = self.committer.number * 10**6 + self.committer._next
            self.committer._next += 1
            rows[id_] = Row(v=f"o{id_}", sequence_number=0)
        self._write(rows, dynamic=False)
        self.committer.rows = written_anew(rows)

    def _write(self, rows: Mapping[int, Row], *, dynamic: bool) -> None:
        columns = {
            "id": pa.array(list(rows), pa.int64()),
            "p": pa.array([i % PARTITIONS for i in rows], pa.int32()),
            "v": [r.v for r in rows.values()],
        }
        before = rows_of({id_: row.v for id_, row in self.committer.rows.items()})
        snapshot = self.table.overwrite(pa.table(columns), dynamic=dynamic)
        again = before & rows_of({id_: row.v for id_, row in rows.items()})
        if self.table.metadata.format_version >= 3:
            self.written_again[snapshot.snapshot_id] = again

    def lineage(self) -> list[int]:
        """Return the ids of the snapshots of main, the oldest first."""
        metadata = self.table.metadata
        return [s.snapshot_id for s in ancestors_of(metadata, metadata.current_snapshot)][::-1]


def written_anew(rows: Mapping[int, Row]) -> dict[int, Row]:
    """Return rows that were written without their lineage, so that they get new row ids."""
    return {id_: replace(row, row_id=None) for id_, row in rows.items()}


def writer(version: int, properties: Mapping[str, str]) -> Writer:
    return Writer(*table_in_memory(version, properties))


def applied(state: Counter[Any], changes: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """Return the rows after the changes of one snapshot; a row that is removed must be there."""
    changes = list(changes)
    after = state.copy()
    for type_, sign in (("DELETE", -1), ("INSERT", 1)):
        for change in changes:
            if change["_change_type"] == type_:
                after[change["id"], change["v"]] += sign
    assert all(n >= 0 for n in after.values())
    return +after


def rows_of(state: State) -> Counter[Any]:
    return Counter(state.items())


@settings(max_examples=25 * WORK, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    version=st.sampled_from([1, 2, 2, 3, 3, 4]),
    properties=st.sampled_from([{}, SMALL_ROOTS]),
    data=st.data(),
)
def test_changes_lead_from_each_snapshot_to_the_next(
    version: int, properties: Mapping[str, str], data: st.DataObject
) -> None:
    w = writer(version, properties if version == 4 else {})
    mirror = Counter[Any]()
    streamed = Streamed(data.draw(st.sampled_from(["earliest", "current"])))
    done: set[str] = set()
    at: int | None = None
    for _ in range(data.draw(st.integers(2, 12))):
        has_deletes = w.table.metadata.format_version > 1
        operations = OF_EVERY_VERSION + (WITH_DELETES if has_deletes else ())
        operation = data.draw(st.sampled_from(operations))
        note(operation)
        done.add(operation)
        w.run(operation)
        if w.rolled_back:
            break
        if data.draw(st.booleans()):
            try:
                streamed.read(w, data.draw(st.sampled_from(LIMITS)))
            except NoSuchSnapshotError as e:
                note(str(e))
                assert streamed.at is None or "expire_snapshots" in done
                streamed = Streamed("current")
                streamed.read(w, LIMITS[0])
        for changes in w.table.follow("earliest" if at is None else at, timeout=0):
            rows = changes.to_arrow().to_pylist()
            assert changes.snapshot is not None
            mirror = applied(mirror, rows)
            at = changes.snapshot.snapshot_id
            assert mirror == rows_of(w.states[at])
            assert changes.snapshot.operation != "replace" or not rows
            assert {r["_commit_snapshot_id"] for r in rows} <= {at}
    check_whole_history(w)


LIMITS = (BatchLimits(), BatchLimits(max_files=1), BatchLimits(max_rows=3))


@dataclass
class Streamed:
    """A mirror that reads the stream of changes until it has read everything."""

    begin: str
    at: StreamOffset | None = None
    mirror: Counter[Any] = field(default_factory=Counter)
    last_time: datetime | None = None

    def read(self, w: Writer, limits: BatchLimits) -> None:
        table = w.table
        stream = ChangeStream(
            table="t",
            metadata=table.metadata,
            io=table.io,
            rules=StreamRules(from_snapshot=self.begin),
        )
        if self.at is None:
            self.at = read_offset(stream.initial().json())
        schema = replace(table.schema, fields=(*table.schema.fields, *COLUMNS))
        scan = scan_of_stream(stream, table.schema, lambda _: schema)
        reader = net_change_rows(scan.context)
        while (end := stream.next(self.at, limits=limits)) is not None:
            tasks = stream.plan(self.at, end).change_tasks()
            batches = [b for t in tasks for b in reader.read(table.io, t, schema)]
            rows = pa.Table.from_batches(batches, to_arrow_schema(schema)).to_pylist()
            self.apply(rows, single=limits.max_files == 1)
            self.at = read_offset(end.json())
            assert self.mirror == rows_of(w.states[end.snapshot_id])
        head = table.metadata.current_snapshot
        assert self.mirror == rows_of(w.states[head.snapshot_id if head else None])

    def apply(self, rows: list[dict[str, Any]], *, single: bool) -> None:
        commits = sorted({(r["_change_ordinal"], r["_commit_timestamp"]) for r in rows})
        assert not single or len(commits) <= 1
        for ordinal, time in commits:
            assert self.last_time is None or time > self.last_time
            self.last_time = time
            of_commit = [r for r in rows if r["_change_ordinal"] == ordinal]
            assert {r["_commit_timestamp"] for r in of_commit} == {time}
            self.mirror = applied(self.mirror, of_commit)
            # Nothing is deleted and added again as it was.
            columns = ("_row_id", "_last_updated_sequence_number")
            if any(r["_row_id"] is None for r in of_commit):
                columns = ("id", "v")
            assert len({tuple(r[c] for c in columns) for r in of_commit}) == len(of_commit)


def check_whole_history(w: Writer) -> None:
    lineage = w.lineage()
    if not lineage:
        return
    metadata = w.table.metadata
    oldest = metadata.snapshot_by_id[lineage[0]]
    is_complete = oldest.parent_snapshot_id is None
    every = w.table.changes(start=None if is_complete else lineage[0]).to_arrow().to_pylist()
    raw = w.table.metadata_table("changes").to_arrow().to_pylist() if is_complete else None
    state = rows_of(w.states[None if is_complete else lineage[0]])
    order = [(r["_change_ordinal"], r["_change_type"] == "INSERT") for r in every]
    assert order == sorted(order)
    for id_ in lineage if is_complete else lineage[1:]:
        snapshot = metadata.snapshot_by_id[id_]
        of_snapshot = [r for r in every if r["_commit_snapshot_id"] == id_]
        after = rows_of(w.states[id_])
        for type_, expected in (("INSERT", after - state), ("DELETE", state - after)):
            rows = [r for r in of_snapshot if r["_change_type"] == type_]
            shown = Counter((r["id"], r["v"]) for r in rows)
            assert shown >= expected
            assert shown - expected <= w.written_again[id_]
        assert applied(state, of_snapshot) == after
        if raw is not None:
            assert applied(state, (r for r in raw if r["_commit_snapshot_id"] == id_)) == after
        assert {r["_commit_sequence_number"] for r in of_snapshot} <= {snapshot.sequence_number}
        times = {int(r["_commit_timestamp"].timestamp() * 1000 + 0.5) for r in of_snapshot}
        assert times <= {snapshot.timestamp_ms}
        state = after
