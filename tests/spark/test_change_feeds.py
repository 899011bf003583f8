"""The change feed that Spark 4.2 and newer ask a catalog for, in SQL, batches and streams.

Expected rows follow from the statements; Spark itself leaves out copied rows and finds updates in
tables of version 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.streams import read_available


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    if not hasattr(spark.read, "changes"):
        pytest.skip("before Spark 4.2 there are no change feeds")
    with sqlite_lake(spark, tmp_path_factory.mktemp("feeds"), "feeds") as session:
        yield session


@pytest.fixture
def name(lake: IcebergSession, request: pytest.FixtureRequest) -> str:
    return "feeds.db." + re.sub(r"\W", "_", request.node.name)[:60]


def create(spark: SparkSession, name: str, version: int, mode: str) -> None:
    """Create a table with four versions: four rows, an update, a delete and a compaction."""
    modes = ", ".join(f"'write.{c}.mode'='{mode}'" for c in ("delete", "update", "merge"))
    spark.sql(
        f"create table {name} (id bigint, v string) using iceberg "
        f"tblproperties ('format-version'='{version}', {modes})"
    )
    spark.sql(f"insert into {name} select /*+ coalesce(1) */ id, concat('a', id) from range(4)")
    spark.sql(f"update {name} set v = 'u' where id = 1")
    spark.sql(f"delete from {name} where id = 2")
    spark.sql(
        f"call feeds.system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))"
    )


COLUMNS = ("id", "v", "_change_type", "_commit_version")
FIRST = [(i, f"a{i}", "insert", 1) for i in range(4)]
LATER = [(1, "a1", "delete", 2), (1, "u", "insert", 2), (2, "a2", "delete", 3)]
COPIES = [(i, f"a{i}", kind, 2) for i in (0, 2, 3) for kind in ("delete", "insert")] + [
    (i, v, kind, 3) for i, v in ((0, "a0"), (1, "u"), (3, "a3")) for kind in ("delete", "insert")
]


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*COLUMNS).collect())


def changes(spark: SparkSession, name: str, **options: Any) -> list[tuple[Any, ...]]:
    return rows_of(spark.read.options(**options).changes(name))


@cases(
    ("version", "mode"),
    fast=[(3, "merge-on-read")],
    nightly=[(3, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read")],
)
def test_a_feed_has_what_each_commit_changed(
    spark: SparkSession, name: str, version: int, mode: str
) -> None:
    create(spark, name, version, mode)
    ranged = spark.sql(f"select * from {name} changes from version 2 to version 3")
    assert rows_of(ranged) == LATER
    assert changes(spark, name, startingVersion=1) == sorted(FIRST + LATER)
    times = [row[0] for row in ranged.select("_commit_timestamp").distinct().collect()]
    by_time = f"select * from {name} changes from timestamp '{min(times)}'"
    assert rows_of(spark.sql(by_time)) == LATER
    raw = LATER + (COPIES if mode == "copy-on-write" else [])
    assert changes(spark, name, startingVersion=2, deduplicationMode="none") == sorted(raw)
    if version == 3:
        updated = [(1, "a1", "update_preimage", 2), (1, "u", "update_postimage", 2), LATER[2]]
        assert changes(spark, name, startingVersion=2, computeUpdates=True) == sorted(updated)
        net = changes(spark, name, startingVersion=1, deduplicationMode="netChanges")
        assert [row[:3] for row in net] == [
            (0, "a0", "insert"),
            (1, "u", "insert"),
            (3, "a3", "insert"),
        ]
    else:
        for option in ({"computeUpdates": True}, {"deduplicationMode": "netChanges"}):
            with pytest.raises(Exception, match=r"row ids, which tables have since format vers"):
                changes(spark, name, startingVersion=1, **option)


@pytest.mark.nightly
def test_the_bounds_of_a_feed(spark: SparkSession, name: str) -> None:
    create(spark, name, 3, "merge-on-read")
    snapshots = spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at")
    ids = [row[0] for row in snapshots.collect()]
    spark.sql(f"alter table {name} create tag t as of version {ids[1]}")
    for start in (2, ids[1], "t"):
        assert changes(spark, name, startingVersion=start) == LATER
        after = changes(spark, name, startingVersion=start, startingBoundInclusive=False)
        assert after == LATER[2:]
    upto = {"startingVersion": 1, "endingVersion": 3}
    assert changes(spark, name, **upto, endingBoundInclusive=False) == sorted(FIRST + LATER[:2])
    assert changes(spark, name, startingVersion=5) == []
    for wrong in ({"startingVersion": 6}, {"startingVersion": 1, "endingVersion": 5}):
        with pytest.raises(Exception, match=r"has no version [56].*sequence number is 4"):
            changes(spark, name, **wrong)
    for option, hint in (
        ("start-snapshot-id", "use startingVersion"),
        ("snapshot-id", "versionAsOf"),
    ):
        with pytest.raises(Exception, match=f"the option {option} does not choose.*{hint}"):
            changes(spark, name, startingVersion=1, **{option: ids[0]})
    spark.sql(f"alter table {name} create branch b")
    spark.sql(f"insert into {name}.branch_b values (9, 'b')")
    assert changes(spark, name, startingVersion=5, branch="b") == [(9, "b", "insert", 5)]
    spark.sql(
        f"call feeds.system.expire_snapshots(table => '{name}', snapshot_ids => array({ids[0]}))"
    )
    with pytest.raises(Exception, match=r"snapshots have expired; begin with version 3"):
        changes(spark, name, startingVersion=1)
    assert changes(spark, name, startingVersion=3) == LATER[2:]


@pytest.mark.nightly
def test_rows_without_row_ids_are_refused(spark: SparkSession, name: str) -> None:
    create(spark, name, 2, "merge-on-read")
    spark.sql(f"alter table {name} set tblproperties ('format-version'='3')")
    spark.sql(f"delete from {name} where id = 0")
    with pytest.raises(Exception, match=r"had no row id before.*begin after version 5"):
        changes(spark, name, startingVersion=5)
    spark.sql(f"delete from {name} where id = 1")
    assert changes(spark, name, startingVersion=6) == [(1, "u", "delete", 6)]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_stream_of_a_feed(spark: SparkSession, name: str, tmp_path: Path, mode: str) -> None:
    create(spark, name, 3, mode)

    def read(checkpoint: str, **options: Any) -> list[tuple[Any, ...]]:
        stream = spark.readStream.options(**options).changes(name).select(*COLUMNS)
        run = read_available(stream, tmp_path / checkpoint)
        return sorted(row for batch in run.batches for row in batch)

    raw = {"startingVersion": 1, "deduplicationMode": "none"}
    every = LATER + (COPIES if mode == "copy-on-write" else [])
    assert read("raw", **raw) == sorted(FIRST + every)
    assert read("raw", **raw) == []
    updates = {"startingVersion": 2, "computeUpdates": True}
    before = read("updates", **updates)
    spark.sql(f"insert into {name} values (9, 'x')")
    spark.sql(f"update {name} set v = 'y' where id = 9")
    assert read("raw", **raw)[-1] == (9, "y", "insert", 6)
    spark.sql(f"insert into {name} values (10, 'x')")
    after = read("updates", **updates)
    assert [row for row in sorted(before + after) if row[3] < 7] == sorted(
        [
            (1, "a1", "update_preimage", 2),
            (1, "u", "update_postimage", 2),
            (2, "a2", "delete", 3),
            (9, "x", "insert", 5),
            (9, "x", "update_preimage", 6),
            (9, "y", "update_postimage", 6),
        ]
    )
    current = {"stream-from-snapshot": "current", "deduplicationMode": "none"}
    rows = ((0, "a0"), (1, "u"), (3, "a3"), (9, "y"), (10, "x"))
    assert read("now", **current) == [(i, v, "insert", 7) for i, v in rows]
    with pytest.raises(Exception, match="a stream of changes has no end"):
        read("end", startingVersion=1, endingVersion=2)


@pytest.mark.nightly
def test_a_query_reads_only_its_columns_and_files(spark: SparkSession, name: str) -> None:
    create(spark, name, 3, "merge-on-read")
    frame = spark.read.option("startingVersion", 1).option("deduplicationMode", "none")
    ids = frame.changes(name).where("_commit_version = 1").select("id")
    plan = str(ids._jdf.queryExecution().executedPlan().toString())
    assert "ReadSchema: struct<id:bigint>" in plan
    assert "MapInArrow" not in plan
    assert sorted(ids.collect()) == [(0,), (1,), (2,), (3,)]
    assert frame.changes(name).where("_change_type = 'delete'").count() == 2
