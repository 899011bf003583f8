"""Changes of a table in a function of `foreachBatch` are made once, though the batch runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spark.spark_table import SparkTable, portable_table
from iceberg_pyspark.table.commits.stream_epochs import CHANGE, EPOCH_ID
from tests.support.native_lake import sqlite_lake

Change = Callable[[SparkTable, DataFrame], object]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("batches"), "batches") as session:
        yield session


class Stream:
    """A stream of a folder into a function that changes a table of the columns id and n."""

    def __init__(self, lake: IcebergSession, folder: Path, name: str, *, portable: bool) -> None:
        self.lake, self.folder, self.name = lake, folder, f"batches.db.{name}"
        self.portable = portable
        lake.spark.sql(
            f"create table {self.name} (id bigint, n bigint) tblproperties ("
            "'format-version' = '3', 'write.merge.mode' = 'merge-on-read')"
        )
        self.added = 0

    def table(self) -> SparkTable:
        """Load the table."""
        return (
            portable_table(self.lake.spark, self.name)
            if self.portable
            else self.lake.table(self.name)
        )

    def run(self, *changes: Change, adds: bool = True) -> None:
        """Add a row to the folder, and run all batches that are left by a new query."""
        if adds:
            rows = self.lake.spark.sql(f"select {self.added}L id, 0L n")
            rows.coalesce(1).write.mode("append").parquet(str(self.folder / "in"))
            self.added += 1

        def change(batch: DataFrame, number: int) -> None:
            del number
            for each in changes:
                each(self.table(), batch)

        stream = self.lake.spark.readStream.schema("id long, n long")
        stream = stream.option("maxFilesPerTrigger", 1)
        writer = stream.parquet(str(self.folder / "in")).writeStream.foreachBatch(change)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def fails(self, *changes: Change, match: str = "stop", adds: bool = True) -> None:
        """Run a query that ends with an error."""
        with pytest.raises(StreamingQueryException, match=match):
            self.run(*changes, adds=adds)

    def rows(self) -> list[tuple[int, int]]:
        """Return the rows of the table."""
        return sorted((r.id, r.n) for r in self.lake.spark.table(self.name).collect())

    def changes(self) -> list[tuple[str, str]]:
        """Return the epochs and changes of the table's snapshots."""
        summaries = [s.summary for s in self.table().snapshots]
        return [(s[EPOCH_ID], s[CHANGE]) for s in summaries if EPOCH_ID in s]


def add_one(table: SparkTable, batch: DataFrame) -> None:
    table.update({"n": "n + 1"})


def upsert(table: SparkTable, batch: DataFrame) -> None:
    table.upsert(batch, ["id"])


def stop(table: SparkTable, batch: DataFrame) -> None:
    raise RuntimeError("stop")


@pytest.mark.nightly
@pytest.mark.parametrize("portable", [False, True])
def test_a_batch_that_runs_again_makes_only_the_changes_that_are_left(
    lake: IcebergSession, tmp_path: Path, portable: bool
) -> None:
    """The first change of the first batch changes nothing, so it leaves no snapshot."""
    stream = Stream(lake, tmp_path, f"again_{portable}".lower(), portable=portable)
    stream.fails(add_one, upsert, stop)
    stream.fails(add_one, upsert, add_one, stop, adds=False)
    assert stream.rows() == [(0, 1)]
    stream.run(add_one, upsert, add_one)
    assert stream.rows() == [(0, 3), (1, 1)]
    expected = [("0", "1 merge"), ("0", "2 update")]
    expected += [("1", "0 update"), ("1", "1 merge"), ("1", "2 update")]
    assert stream.changes() == expected


@pytest.mark.nightly
def test_a_change_with_a_transaction_or_outside_of_a_function_has_no_number(
    lake: IcebergSession, tmp_path: Path
) -> None:
    stream = Stream(lake, tmp_path, "unnamed", portable=False)

    def named(table: SparkTable, batch: DataFrame) -> None:
        table.update({"n": "n + 1"}, transaction=("app", 1))

    stream.run(upsert, named)
    stream.table().update({"n": "n + 10"})
    assert stream.rows() == [(0, 11)]
    assert stream.changes() == [("0", "0 merge")]


@pytest.mark.nightly
def test_a_change_that_failed_has_made_nothing(lake: IcebergSession, tmp_path: Path) -> None:
    stream = Stream(lake, tmp_path, "failed", portable=False)

    def tried_twice(table: SparkTable, batch: DataFrame) -> None:
        try:
            table.update({"n": "raise_error('no')"})
        except PySparkException as e:
            errors.append(str(e))
        table.upsert(batch, ["id"])

    errors: list[str] = []
    stream.run(upsert)
    stream.run(tried_twice, add_one)
    assert len(errors) == 1
    assert stream.changes() == [("0", "0 merge"), ("1", "0 merge"), ("1", "1 update")]


def test_another_order_is_refused(lake: IcebergSession, tmp_path: Path) -> None:
    stream = Stream(lake, tmp_path, "order", portable=False)
    stream.fails(upsert, add_one, stop)
    stream.fails(add_one, upsert, match="change 0 of batch 0 of streaming query", adds=False)
    stream.run(upsert, add_one, adds=False)
    assert stream.rows() == [(0, 1)]
