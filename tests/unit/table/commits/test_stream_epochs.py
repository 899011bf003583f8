"""A batch of a stream is found in the history of its branch, and nowhere else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import CommitConflictError
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
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
