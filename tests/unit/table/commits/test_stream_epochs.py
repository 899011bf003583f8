"""A batch of a stream is found in the history of its branch, and nowhere else."""

from __future__ import annotations

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.commits.stream_epochs import EpochIsCommittedError, StreamEpoch
from tests.support.commit_tables import commit_table


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
    with pytest.raises(EpochIsCommittedError):
        epoch(1).check_absent(metadata, "b")
