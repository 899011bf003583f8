"""Where a stream begins, what ends it, and the JSON of its offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchSnapshotError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.snapshots import SnapshotRef
from iceberg_pyspark.table.reading.append_stream import AppendStream
from iceberg_pyspark.table.reading.stream_offsets import START, StreamOffset, read_offset
from iceberg_pyspark.table.reading.stream_rules import BatchLimits, StreamRules
from iceberg_pyspark.table.reading.stream_scan import scan_of_batch
from tests.support.commit_tables import commit_table


def a_table(*ids: int) -> Table:
    """Return a table with a snapshot for each id."""
    t = commit_table()
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    for i in ids:
        table.append(rows(i))
    return table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def stream_of(table: Table, branch: str | None = None, **rules: Any) -> AppendStream:
    return AppendStream(
        table="t",
        metadata=table.metadata,
        io=table.io,
        rules=StreamRules(**rules),
        branch=branch,
    )


def all_ids(table: Table, start: StreamOffset | None = None, **rules: Any) -> list[int]:
    """Return what one batch without limits reads."""
    stream = stream_of(table, **rules)
    start = stream.initial() if start is None else start
    end = stream.next(start)
    if end is None:
        return []
    scan = scan_of_batch(stream, stream.batch(start, end), table.schema, lambda schema: schema)
    return sorted(scan.to_arrow()["id"].to_pylist())


def test_a_stream_begins_where_the_rules_say() -> None:
    table = a_table(1, 2, 3)
    first, second, third = table.snapshots
    assert all_ids(table) == [1, 2, 3]
    assert all_ids(table, from_snapshot="earliest") == [1, 2, 3]
    assert all_ids(table, from_snapshot="latest") == []
    assert all_ids(table, from_snapshot="current") == [1, 2, 3]
    assert all_ids(table, from_snapshot=str(first.snapshot_id)) == [2, 3]
    assert all_ids(table, from_timestamp_ms=second.timestamp_ms) == [2, 3]
    assert all_ids(table, from_timestamp_ms=second.timestamp_ms + 1) == [3]
    assert all_ids(table, from_timestamp_ms=third.timestamp_ms + 1) == []
    table.manage_snapshots().create_tag("second", second.snapshot_id).commit()
    assert all_ids(table.refresh(), from_snapshot="second") == [3]
    with pytest.raises(NoSuchSnapshotError, match="no branch or tag 'other'"):
        stream_of(table, from_snapshot="other").initial()
    with pytest.raises(NoSuchSnapshotError, match="snapshot 7 is not in the history of branch 'ma"):
        stream_of(table, from_snapshot="7").initial()


def test_a_stream_of_an_empty_table_begins_with_its_first_rows() -> None:
    table = a_table()
    for begin in (None, "earliest", "latest", "current"):
        assert stream_of(table, from_snapshot=begin).initial() == START
    assert stream_of(table).next(START) is None
    assert stream_of(table).end() == START
    table.append(rows(1))
    for begin in (None, "earliest", "latest", "current"):
        assert all_ids(table, START, from_snapshot=begin) == [1]
    assert stream_of(table).next(START, until=START) is None
    late = table.snapshots[-1].timestamp_ms + 1
    assert all_ids(table, START, from_timestamp_ms=late) == []


def test_a_stream_ends_at_the_snapshot_it_is_told() -> None:
    table = a_table(1, 2)
    until = stream_of(table).end()
    table.append(rows(3))
    stream = stream_of(table)
    end = stream.next(stream.initial(), until=until)
    assert end == until
    assert stream.next(until, until=until) is None


def test_a_stream_does_not_begin_after_a_delete_that_left_no_file() -> None:
    table = a_table(1, 2)
    table.delete("true")
    table.maintenance().expire_snapshots(older_than=1 << 52, retain_last=1)
    stream = stream_of(table.refresh())
    with pytest.raises(InvalidRequestError, match="deletes rows"):
        stream.next(stream.initial())
    assert all_ids(table, skips_deletes=True) == []


def test_rows_that_a_roll_back_removed_end_the_stream() -> None:
    table = a_table(1, 2, 3)
    end = stream_of(table).end()
    second = table.snapshots[1].snapshot_id
    table.manage_snapshots().rollback_to(second).commit()
    with pytest.raises(NoSuchSnapshotError, match=f"rolled back .*stream-from-snapshot={second}"):
        stream_of(table.refresh()).next(end)
    with pytest.raises(NoSuchSnapshotError, match=r"has expired, .* the checkpoint is of another"):
        stream_of(table).next(replace(end, snapshot_id=7))


def test_an_expired_snapshot_must_be_known_to_be_read_to_its_end() -> None:
    table = a_table(1, 2)
    first = table.snapshots[0]
    end = stream_of(table).next(stream_of(table).initial(), until=None)
    assert end is not None
    at_first = StreamOffset(snapshot_id=first.snapshot_id, position=1)
    assert all_ids(table, at_first) == [2]
    table.maintenance().expire_snapshots(snapshot_ids=[first.snapshot_id])
    table.refresh()
    assert all_ids(table, replace(at_first, is_complete=True)) == [2]
    with pytest.raises(NoSuchSnapshotError, match=r"earliest for all appends since .* snapshot "):
        all_ids(table, at_first)


def test_a_snapshot_without_an_operation_is_not_guessed_at() -> None:
    table = a_table(1)
    snapshot = replace(table.snapshots[0], summary={})
    metadata = replace(table.metadata, snapshots=(snapshot,))
    stream = replace(stream_of(table), metadata=metadata)
    with pytest.raises(UnsupportedFeatureError, match=r"operation None.*stream-from-snapshot="):
        stream.next(stream.initial())


def test_a_tag_is_no_branch() -> None:
    table = a_table(1)
    head = table.snapshots[0].snapshot_id
    refs = {**table.metadata.refs, "t": SnapshotRef(snapshot_id=head, type="tag")}
    stream = replace(stream_of(table, "t"), metadata=replace(table.metadata, refs=refs))
    with pytest.raises(InvalidRequestError, match=r"'t' .* is a tag"):
        stream.initial()


def test_the_backlog_is_what_was_not_read() -> None:
    table = a_table(1, 2, 3)
    stream = stream_of(table)
    begin = stream.initial()
    assert (stream.backlog(begin).files, stream.backlog(begin).rows) == (3, 3)
    end = stream.next(begin, limits=BatchLimits(max_files=2))
    assert end is not None
    left = stream.backlog(end)
    assert (left.files, left.rows) == (1, 1)
    assert left.size > 0
    assert stream.backlog(stream.end()).files == 0


def test_offsets_are_texts_of_java() -> None:
    java = '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false}'
    assert read_offset(java) == StreamOffset(snapshot_id=7, position=2)
    assert read_offset(java).json() == java
    ours = StreamOffset(snapshot_id=7, position=2, scan_all_files=True, is_complete=True)
    assert read_offset(ours.json()).is_complete
    assert read_offset(ours.json()) == ours
    assert START.json() == '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "{}",
        '{"version":1,"snapshot_id":"7","position":2,"scan_all_files":false}',
        '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":0}',
    ],
)
def test_other_texts_are_no_offsets(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="a checkpoint of its own"):
        read_offset(text)


def test_offsets_of_a_later_version_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="an offset of version 2"):
        read_offset('{"version":2,"snapshot_id":7,"position":2,"scan_all_files":false}')


def test_a_column_that_changed_ends_the_query() -> None:
    table = a_table(1)
    before = table.schema
    stream = stream_of(table)
    start = stream.initial()
    table.update_schema().rename_column("part", "p").add_column("more", "int").commit()
    table.refresh()
    table.append(rows(2))
    stream = stream_of(table)
    end = stream.next(start)
    assert end is not None
    batch = stream.batch(start, end)
    scan = scan_of_batch(stream, batch, before, lambda schema: schema)
    assert scan.to_arrow().column_names == ["id", "part"]
    table.update_schema().drop_column("p").commit()
    stream = stream_of(table.refresh())
    only_id = scan_of_batch(stream, batch, before, lambda schema: schema.select(["id"]))
    assert sorted(only_id.to_arrow()["id"].to_pylist()) == [1, 2]
    with pytest.raises(InvalidRequestError, match=r"column part was dropped.*restart the query"):
        scan_of_batch(stream, batch, before, lambda schema: schema)
    table.update_schema().make_optional("id").commit()
    with pytest.raises(InvalidRequestError, match="column id became optional"):
        scan_of_batch(
            stream_of(table.refresh()), batch, before, lambda schema: schema.select(["id"])
        )
