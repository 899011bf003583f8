"""The commit of a stream's batch: once for each id, of the table that its tasks have seen."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.errors import (
    ConcurrentChangeError,
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.data_source import write_job
from iceberg_pyspark.spark.data_source.pinned_table import StreamFiles
from iceberg_pyspark.spark.data_source.stream_sink import commit_batch, prepare_stream_write
from iceberg_pyspark.table.commits.commit_files import commit_action

FRAME = StructType().add("id", "long")
QUERY = str(uuid.UUID(int=1))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = load_catalog("sink", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id BIGINT")


def write(
    table: Table,
    *ids: int,
    epoch: int,
    query: str | None = QUERY,
    overwrite: bool = False,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Write a batch as a task and the commit do; return the paths of its files."""
    values = {"path": table.location, "checkpointLocation": "x", **(options or {})}
    prepared = prepare_stream_write(values, FRAME, overwrite=overwrite)
    batches = pa.table({"id": pa.array(ids, pa.int64())}).to_batches()
    files = write_data_files(prepared.context, batches, prepared.io, partition_id=0, task_id=0)
    message = StreamFiles(tuple(files), query, prepared.table_uuid, prepared.context.schema)
    of_commit = prepare_stream_write(values, FRAME, overwrite=overwrite)
    commit_batch(of_commit, [message], epoch)
    return [f.file_path for f in files]


def ids_of(table: Table, branch: str = "main") -> list[int]:
    return sorted(table.refresh().scan(branch=branch).to_arrow()["id"].to_pylist())


def test_a_batch_that_runs_again_is_not_committed_again(table: Table) -> None:
    write(table, 1, epoch=0)
    write(table, 2, epoch=1)
    (again,) = write(table, 2, epoch=1)
    write(table, 1, epoch=0)
    assert ids_of(table) == [1, 2]
    assert not Path(again.removeprefix("file:")).exists()
    write(table, 3, epoch=2)
    # another query has ids of its own
    write(table, 4, epoch=0, query="other")
    (summary,) = (s.summary for s in table.refresh().snapshots[-1:])
    assert summary["spark.sql.streaming.queryId"] == "other"
    assert summary["spark.sql.streaming.epochId"] == "0"
    assert ids_of(table) == [1, 2, 3, 4]


def test_two_processes_commit_a_batch_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[Any] = []

    def later(*arguments: Any, **named: Any) -> Any:
        if not others:
            others.append(None)
            others[:] = write(table, 1, epoch=0)
        return commit_action(*arguments, **named)

    monkeypatch.setattr(write_job, "commit_action", later)
    (own,) = write(table, 1, epoch=0)
    assert ids_of(table) == [1]
    exist = [Path(str(f).removeprefix("file:")).exists() for f in (own, *others)]
    assert exist == [False, True]


def test_a_batch_whose_rows_were_rolled_back_runs_again(table: Table) -> None:
    write(table, 1, epoch=0)
    write(table, 2, epoch=1)
    first = table.refresh().snapshots[0].snapshot_id
    table.manage_snapshots().rollback_to(first).commit()
    write(table, 2, epoch=1)
    assert ids_of(table) == [1, 2]


def test_a_batch_of_a_branch_is_looked_for_in_the_branch(table: Table) -> None:
    write(table, 1, epoch=0)
    table.refresh().manage_snapshots().create_branch("b").commit()
    write(table, 2, epoch=1)
    write(table, 2, epoch=1, options={"branch": "b"})
    assert (ids_of(table), ids_of(table, "b")) == ([1, 2], [1, 2])


def test_complete_mode_replaces_all_rows(table: Table) -> None:
    write(table, 1, epoch=0, overwrite=True)
    write(table, 2, 3, epoch=1, overwrite=True)
    write(table, 9, epoch=1, overwrite=True)
    assert ids_of(table) == [2, 3]
    write(table, epoch=2, overwrite=True)
    assert ids_of(table) == []


def test_an_empty_batch_makes_no_snapshot(table: Table) -> None:
    write(table, epoch=0)
    assert table.refresh().snapshots == ()


def test_the_table_must_stay_the_one_that_tasks_have_seen(table: Table) -> None:
    values = {"path": table.location}
    prepared = prepare_stream_write(values, FRAME, overwrite=False)
    batches = pa.table({"id": pa.array([1], pa.int64())}).to_batches()
    files = write_data_files(prepared.context, batches, prepared.io, partition_id=0, task_id=0)
    message = StreamFiles(tuple(files), QUERY, str(uuid.uuid4()), prepared.context.schema)
    with pytest.raises(ConcurrentChangeError, match="dropped and created again"):
        commit_batch(prepare_stream_write(values, FRAME, overwrite=False), [message], 0)


def test_what_is_refused(table: Table) -> None:
    with pytest.raises(NoSuchTableError, match="a stream does not create it"):
        prepare_stream_write({"path": f"{table.location}-no"}, FRAME, overwrite=False)
    with pytest.raises(UnsupportedFeatureError, match="do not know which query"):
        write(table, 1, epoch=0, query=None)
    with pytest.raises(InvalidRequestError, match="unknown write option 'checkpoint'"):
        write(table, 1, epoch=0, options={"checkpoint": "x"})
    own = {"snapshot-property.spark.sql.streaming.queryId": "x"}
    with pytest.raises(InvalidRequestError, match="written by the stream itself"):
        write(table, 1, epoch=0, options=own)
