"""A batch of a stream is found in the history of its branch, and nowhere else."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import CommitConflictError, InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.stream_epochs import (
    EXPIRED_EPOCHS,
    MAX_EXPIRED_EPOCHS,
    StreamEpoch,
    refuse_own_entries,
)
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from tests.support.commit_tables import commit_table, data_file


def epoch(number: int, query: str = "q") -> StreamEpoch:
    return StreamEpoch(query_id=query, epoch=number)


def a_table(*epochs: StreamEpoch | None) -> Table:
    """Return a table with a snapshot for each epoch; None is a snapshot of another writer."""
    t = commit_table()
    table = Table(t.catalog, t.loaded, io=t.io, clock=t.clock.clock)
    for number, each in enumerate(epochs):
        summary = {} if each is None else each.summary()
        table.append(pa.table({"id": [number]}), snapshot_properties=summary)
    return table


def expire(table: Table) -> None:
    table.maintenance().expire_snapshots(older_than=1 << 52, retain_last=1)
    table.refresh()


def test_the_newest_epoch_of_a_query_counts() -> None:
    metadata = a_table(epoch(0), epoch(7, "other"), epoch(1), None).metadata
    assert [epoch(n).is_in(metadata, MAIN) for n in range(4)] == [True, True, False, False]
    assert epoch(7, "other").is_in(metadata, MAIN)
    assert not epoch(8, "other").is_in(metadata, MAIN)
    assert not epoch(0, "new").is_in(metadata, MAIN)
    assert not epoch(0).is_in(metadata, "no-such-branch")
    assert not epoch(0).is_in(a_table().metadata, MAIN)


def test_an_epoch_that_was_rolled_back_is_not_in_the_table() -> None:
    table = a_table(epoch(0), epoch(1))
    table.manage_snapshots().rollback_to(table.snapshots[0].snapshot_id).commit()
    metadata = table.refresh().metadata
    assert epoch(0).is_in(metadata, MAIN)
    assert not epoch(1).is_in(metadata, MAIN)


def test_a_branch_has_its_own_epochs() -> None:
    table = a_table(epoch(0))
    table.manage_snapshots().create_branch("b").commit()
    table.refresh()
    table.append(pa.table({"id": [9]}), branch="b", snapshot_properties=epoch(1).summary())
    metadata = table.refresh().metadata
    assert epoch(1).is_in(metadata, "b")
    assert not epoch(1).is_in(metadata, MAIN)
    epoch(1).check_absent(metadata, MAIN)
    with pytest.raises(CommitConflictError, match="committed batch 1 of streaming query q to bra"):
        epoch(1).check_absent(metadata, "b")


def test_of_two_processes_with_one_batch_only_one_commits_it() -> None:
    t = commit_table()
    before = t.loaded
    unless_committed = MetadataStep(lambda metadata: epoch(0).check_absent(metadata, MAIN))

    def commit(name: str) -> None:
        t.io.write_bytes(f"mem://t/data/{name}", b"")
        file = data_file(name)
        options = CommitOptions(snapshot_properties=epoch(0).summary())
        with WrittenFiles(t.io, [file]) as written_files:
            action = AppendFiles(data_files=(file,))
            steps = (unless_committed,)
            commit_action(
                t.catalog, before, t.io, action, options, written_files=written_files, before=steps
            )

    commit("first")
    with pytest.raises(CommitConflictError, match="another process"):
        commit("second")
    assert t.live() == ["mem://t/data/first"]
    assert not t.io.exists("mem://t/data/second")


def test_the_epochs_of_expired_snapshots_are_noted() -> None:
    table = a_table(epoch(0), epoch(7, "other"), epoch(1), None, None)
    table.manage_snapshots().create_tag("old", table.snapshots[1].snapshot_id).commit()
    for _ in range(2):
        expire(table)
        metadata = table.metadata
        assert len(metadata.snapshots) == 2
        assert [epoch(n).is_in(metadata, MAIN) for n in range(3)] == [True, True, False]
        assert epoch(7, "other").is_in(metadata, MAIN)
        assert not epoch(0, "new").is_in(metadata, MAIN)
        table.append(pa.table({"id": [9]}))
    table.manage_snapshots().set_current_snapshot(table.refs["old"].snapshot_id).commit()
    table.refresh()
    assert [epoch(n).is_in(table.metadata, MAIN) for n in range(2)] == [True, False]
    table.append(pa.table({"id": [9]}), snapshot_properties=epoch(1).summary())
    assert epoch(1).is_in(table.refresh().metadata, MAIN)


def test_tables_without_streams_note_nothing() -> None:
    table = a_table(None, None, None)
    expire(table)
    assert len(table.snapshots) == 1
    assert EXPIRED_EPOCHS not in table.properties


def test_notes_of_snapshots_that_expire_go_with_them() -> None:
    table = a_table(epoch(0), None, epoch(1))
    table.manage_snapshots().create_tag("t", table.snapshots[1].snapshot_id).commit()
    expire(table)
    ids = [str(s.snapshot_id) for s in table.snapshots]
    assert json.loads(table.properties[EXPIRED_EPOCHS]) == {ids[0]: {"q": 0}}
    table.manage_snapshots().remove_tag("t").commit()
    expire(table)
    assert json.loads(table.properties[EXPIRED_EPOCHS]) == {ids[1]: {"q": 0}}


def test_the_newest_of_thousands_of_queries_are_noted() -> None:
    queries = [f"q{i}" for i in range(MAX_EXPIRED_EPOCHS + 5)]
    table = a_table(*(epoch(3, query) for query in queries), None)
    expire(table)
    found = [epoch(3, query).is_in(table.metadata, MAIN) for query in queries]
    assert found == [False] * 5 + [True] * MAX_EXPIRED_EPOCHS


@pytest.mark.parametrize("text", ["", "[]", '{"1": 2}', '{"1": {"q": null}}'])
def test_a_damaged_note_is_refused(text: str) -> None:
    table = a_table(None)
    table.update_properties().set({EXPIRED_EPOCHS: text}).commit()
    with pytest.raises(InvalidMetadataError, match="expired-stream-epochs is damaged"):
        epoch(1).is_in(table.refresh().metadata, MAIN)


def test_entries_of_the_stream_are_refused_as_options() -> None:
    refuse_own_entries(["a"])
    with pytest.raises(InvalidRequestError, match="is written by the stream itself"):
        refuse_own_entries(["spark.sql.streaming.epochId"])


def change(number: int, of: int, operation: str = "merge") -> StreamEpoch:
    return StreamEpoch(query_id="q", epoch=of, change=number, operation=operation)


def test_each_change_of_a_batch_is_found_and_those_before_it() -> None:
    # change 0 of batch 1 changed nothing, so it has no snapshot
    metadata = a_table(change(0, 0), change(1, 1), None, change(2, 1, "delete")).metadata
    asked = [change(0, 0), change(1, 0), change(0, 1), change(1, 1), change(2, 1, "delete")]
    assert all(each.is_in(metadata, MAIN) for each in asked)
    assert not change(3, 1).is_in(metadata, MAIN)
    assert not change(0, 2).is_in(metadata, MAIN)
    assert not epoch(1).is_in(metadata, MAIN)


def test_another_operation_in_the_place_of_a_change_is_refused() -> None:
    metadata = a_table(change(0, 1, "delete"), change(1, 1)).metadata
    for each in (change(0, 1), change(1, 1, "update")):
        with pytest.raises(InvalidRequestError, match=r"change [01] of batch 1 of streaming query"):
            each.is_in(metadata, MAIN)


def test_changes_of_expired_snapshots_are_found() -> None:
    table = a_table(change(0, 3), change(1, 3), None, None)
    expire(table)
    metadata = table.metadata
    assert json.loads(metadata.properties[EXPIRED_EPOCHS]) == {
        str(metadata.current_snapshot_id): {"q": [3, 1]}
    }
    found = [change(1, 3).is_in(metadata, MAIN), change(2, 3).is_in(metadata, MAIN)]
    assert found == [True, False]
    table.append(pa.table({"id": [9]}))
    expire(table)
    assert change(1, 3).is_in(table.metadata, MAIN)
    assert not change(2, 3).is_in(table.metadata, MAIN)
