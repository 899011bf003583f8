"""Which snapshots `Table.changes` reads, and how `Table.follow` begins, waits and ends."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.table.change_feed.table_changes import TableChanges
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import CommitTable, commit_table

LATER = 1_900_000_000_000


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": ["ab"[i % 2] for i in ids]})


def users(t: CommitTable) -> Table:
    return Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)


@pytest.fixture
def t() -> CommitTable:
    return commit_table(partitioned=True, format_version=2)


def shown(changes: TableChanges) -> list[tuple[str, int]]:
    result = changes.to_arrow()
    return list(zip(result["_change_type"].to_pylist(), result["id"].to_pylist(), strict=True))


def test_changes_between_ids_names_and_times(t: CommitTable) -> None:
    table = users(t)
    table.append(rows(1, 2))
    table.delete("part = 'a'")
    table.overwrite(rows(5), dynamic=True)
    first, second, third = table.snapshots
    table.manage_snapshots().create_tag("first", snapshot_id=first.snapshot_id).commit()
    every = table.changes()
    assert every.snapshots == table.snapshots
    assert shown(every) == [
        ("INSERT", 1),
        ("INSERT", 2),
        ("DELETE", 2),
        ("DELETE", 1),
        ("INSERT", 5),
    ]
    result = every.to_arrow()
    assert (
        result.column_names[2:]
        == [f.name for f in every.schema.fields][2:]
        == [
            *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
            *("_commit_sequence_number", "_commit_timestamp"),
        ]
    )
    assert result["_commit_sequence_number"].to_pylist() == [1, 1, 2, 3, 3]
    moment = datetime.fromtimestamp(second.timestamp_ms / 1000, timezone.utc)
    assert result["_commit_timestamp"][2].as_py() == moment
    last = [("DELETE", 1), ("INSERT", 5)]
    assert shown(table.changes(second.snapshot_id)) == shown(table.changes(moment)) == last
    assert shown(table.changes(first.snapshot_id, moment)) == [("DELETE", 2)]
    assert shown(table.changes("first", moment)) == [("DELETE", 2)]
    assert shown(table.changes(end="first")) == [("INSERT", 1), ("INSERT", 2)]
    at_the_end = table.changes(third.snapshot_id)
    assert (at_the_end.to_arrow().num_rows, at_the_end.snapshot) == (0, None)
    assert every.snapshot == third
    with pytest.raises(NoSuchSnapshotError):
        table.changes(start=17)
    table.update_schema().add_column("_commit_timestamp", "string").commit()
    with pytest.raises(InvalidRequestError, match="rename it"):
        table.changes().to_arrow()


def followed(changes: Iterable[TableChanges]) -> list[list[tuple[str, int]]]:
    return [shown(c) for c in changes]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("latest", []),
        ("earliest", [[("INSERT", 1)], [("INSERT", 2)], [("DELETE", 2)]]),
        ("current", [[("INSERT", 1)]]),
        ("tag", [[("INSERT", 2)], [("DELETE", 2)]]),
    ],
)
def test_where_it_begins(t: CommitTable, start: str, expected: Any) -> None:
    table = users(t)
    nothing = followed(table.follow(start, timeout=0)) if start != "tag" else []
    assert nothing == []
    table.append(rows(1))
    table.manage_snapshots().create_tag("tag").commit()
    table.append(rows(2))
    table.delete("part = 'a'")
    follower = table.follow(start, timeout=0)
    other = users(t)
    other.append(rows(7))
    assert len(table.snapshots) == 3
    # what came after it began is read at the first poll
    assert followed(follower) == expected
    assert followed(table.follow(start, timeout=1, poll_interval=1)) == [*expected, [("INSERT", 7)]]


def test_a_follower_of_an_empty_table_sees_its_first_snapshot(t: CommitTable) -> None:
    table = users(t)
    follower = table.follow(poll_interval=2, timeout=60)
    users(t).append(rows(1))
    assert [c.snapshot for c in follower] == [t.metadata.current_snapshot]
    assert t.clock.sleeps == [2000.0] * 31, "the time without snapshots counts from the last one"


def test_a_branch_is_followed(t: CommitTable) -> None:
    table = users(t)
    table.append(rows(1))
    table.manage_snapshots().create_branch("b").commit()
    follower = table.follow(branch="b", timeout=1, poll_interval=1)
    users(t).append(rows(2))
    users(t).append(rows(3), branch="b")
    for changes in follower:
        assert shown(changes) == [("INSERT", 3)]
        break
    with pytest.raises(NoSuchSnapshotError, match="not in the history of branch 'b'"):
        table.refresh().follow(table.snapshots[1].snapshot_id, branch="b")


def test_a_follower_survives_compaction_and_expiry_of_what_it_has_read(t: CommitTable) -> None:
    table = users(t)
    for row_id in (1, 3):
        table.append(rows(row_id))
    follower = table.follow("earliest", timeout=1, poll_interval=1)
    assert [shown(next(follower)) for _ in range(2)] == [[("INSERT", 1)], [("INSERT", 3)]]
    other = users(t)
    other.maintenance().rewrite_data_files(options={"rewrite-all": True})
    assert shown(next(follower)) == []
    other.refresh().append(rows(5))
    other.maintenance().expire_snapshots(older_than=LATER, retain_last=1)
    assert followed(follower) == [[("INSERT", 5)]]


def test_what_has_expired_is_an_error_with_the_start_to_use(t: CommitTable) -> None:
    table = users(t)
    for row_id in (1, 2, 3):
        table.append(rows(row_id))
    first, second, third = (s.snapshot_id for s in table.snapshots)
    follower = table.follow(first, timeout=1, poll_interval=1)
    assert shown(next(follower)) == [("INSERT", 2)]
    other = users(t)
    other.delete("part = 'b'")
    other.append(rows(4))
    other.maintenance().expire_snapshots(older_than=LATER, retain_last=2)
    assert shown(next(follower)) == [("INSERT", 3)], "the files of an append are known"
    # its files are gone from the table, but what the next snapshot deleted is not known any more
    fourth = t.metadata.snapshots[0].snapshot_id
    with pytest.raises(NoSuchSnapshotError, match=f"start={fourth}, .* or start='current'"):
        next(follower)
    assert followed(users(t).follow(fourth, timeout=0)) == [[("INSERT", 4)]]
    with pytest.raises(NoSuchSnapshotError, match="not known, because snapshots have expired"):
        users(t).follow(second, timeout=0)
    assert third not in {s.snapshot_id for s in t.metadata.snapshots}


def test_a_rollback_ends_it(t: CommitTable) -> None:
    table = users(t)
    for row_id in (1, 2):
        table.append(rows(row_id))
    first, second = (s.snapshot_id for s in table.snapshots)
    follower = table.follow(second, timeout=1, poll_interval=1)
    users(t).manage_snapshots().rollback_to(first).commit()
    with pytest.raises(NoSuchSnapshotError, match=f"start={first}, the last snapshot of both"):
        next(follower)


def test_wrong_times(t: CommitTable) -> None:
    for poll_interval, timeout in ((0, None), (1, -1)):
        with pytest.raises(InvalidRequestError, match="poll_interval is more than 0 seconds"):
            users(t).follow(poll_interval=poll_interval, timeout=timeout)
