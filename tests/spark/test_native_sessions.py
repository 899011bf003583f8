"""Native scans in every shape of query, kind of session and action."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import Table, install
from iceberg_pyspark.spark.native_read.filter_conditions import remaining_locations
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.deleted_rows import delete_keys, delete_positions
from tests.support.native_lake import plan_of, sqlite_conf
from tests.support.parameters import cases
from tests.support.rows import spark_rows
from tests.support.spark_settings import configured

# 4.1 has queries of many shapes, caches and views in tests/interop, and clones of sessions, as
# streams have them, in test_new_sessions.py.

PREFIX = "spark.sql.catalog.lake"
LIVE = [*range(5), 7, 8, 9, *range(12, 30)]
"""The live ids of `lake.db.t`: of 30, equality deletes removed two and position deletes two."""


@dataclass(frozen=True)
class Lake:
    """A session with Iceberg, and one without."""

    spark: SparkSession
    session: IcebergSession
    never: SparkSession
    """A session that was created before Iceberg was installed."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    settings = sqlite_conf("lake", folder)
    never = spark.newSession()
    with configured(spark, settings):
        session = install(spark)
        assert session.is_native
        spark.sql("create namespace lake.db")
        table = create(session, "lake.db.t")
        append(table, range(10))
        delete_keys(table, "id", [5, 6])
        append(table, range(10, 20))
        (path,) = {f.file_path for f in table.scan(filter="id >= 10").plan_files()}
        delete_positions(table, {path: [0, 1]})
        append(table, range(20, 30))
        create(session, "lake.db.changed")
        spark.createDataFrame(arrow(LIVE)).createOrReplaceTempView("plain")
        yield Lake(spark, session, never)
        session.uninstall()


def create(session: IcebergSession, name: str, clauses: str = "") -> Table:
    session.spark.sql(
        f"create table {name} (id bigint, g int, s string) {clauses} "
        "tblproperties ('format-version' = '3')"
    )
    return session.table(name)


def arrow(ids: list[int] | range) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "g": pa.array([i % 3 for i in ids], pa.int32()),
            "s": [str(i) for i in ids],
        }
    )


def append(table: Table, ids: range) -> None:
    table.refresh().append(arrow(ids))


def is_native(frame: DataFrame) -> bool:
    plan = plan_of(frame)
    ours = plan.count("IcebergPyParquetScan")
    return ours > 0 and plan.count("BatchScan") == ours


def same_rows(spark: SparkSession, query: str) -> None:
    """Check that a query of `{t}` is native and gives the same rows as the plain rows."""
    ours = spark.sql(query.format(t="lake.db.t"))
    assert is_native(ours)
    assert spark_rows(ours.collect()) == spark_rows(spark.sql(query.format(t="plain")).collect())


QUERIES = (
    "select a.id, b.s from {t} a join {t} b on a.id = b.id + 1 where a.g = 1",
    "select id, id in (select id from {t} where g = 1), (select max(id) from {t} where g = 0) "
    "from {t} a where exists (select 1 from {t} b where b.id = a.id + 1 and b.g = 2) "
    "or id not in (select id from {t} where g > 0)",
    "select a.id, x.s from {t} a, lateral (select b.s from {t} b where b.id = a.id + 3) x "
    "where a.id > (select avg(b.id) from {t} b where a.g = b.g)",
    "select g, s from {t} where g = 1 union all select * from (select g, s from {t} where g < 2 "
    "union select g, s from {t} where id < 3 except select g, s from {t} where id = 0)",
    "with c as (select *, rand(3) r from {t} where g = 1) "
    "select a.id, row_number() over (partition by a.g order by a.id) n "
    "from c a join c b on a.id = b.id and a.r = b.r",
    "with recursive r(n) as (select 0L union all select n + 1 from r where n < 3) "
    "select * from r join {t} on n = id",
)


@cases("query", fast=QUERIES[:2], nightly=QUERIES[2:])
def test_queries_of_every_shape(lake: Lake, query: str) -> None:
    same_rows(lake.spark, query)


def test_views_with_different_filters_on_one_frame(lake: Lake) -> None:
    frame = lake.spark.table("lake.db.t")
    for g in (1, 2):
        frame.filter(f"g = {g}").createOrReplaceTempView(f"of_{g}")
    both = "select (select count(*) from of_1) a, (select count(*) from of_2) b"
    assert lake.spark.sql(both).collect() == [(9, 8)]
    joined = lake.spark.table("of_1").alias("a").join(frame.alias("b"), "id")
    assert joined.count() == 9
    assert frame.filter("id < 3").union(frame.filter("id > 27")).count() == 5


@pytest.mark.nightly
@pytest.mark.parametrize(("adaptive", "ansi"), [("true", "false"), ("false", "true")])
def test_adaptive_execution_and_ansi_on_and_off(lake: Lake, adaptive: str, ansi: str) -> None:
    settings = {"spark.sql.adaptive.enabled": adaptive, "spark.sql.ansi.enabled": ansi}
    with configured(lake.spark, settings):
        same_rows(
            lake.spark,
            "select a.g, count(*), sum(cast(a.s as int)) from {t} a join {t} b on a.id = b.id "
            "where cast(a.s as int) > 3 group by a.g",
        )


def test_columns_of_another_case(lake: Lake) -> None:
    same_rows(lake.spark, "select max(ID) from {t} where Id < 8 and S > '1'")
    with configured(lake.spark, {"spark.sql.caseSensitive": "true"}):
        same_rows(lake.spark, "select max(id) from {t} where id < 8 and s > '1'")
        with pytest.raises(AnalysisException):
            lake.spark.sql("select ID from lake.db.t")
        lake.spark.sql("create table lake.db.cases (a int, A int, `b.c` int)")
        table = lake.session.table("lake.db.cases")
        rows = {"a": [1, 2], "A": [3, 4], "b.c": [5, 6]}
        table.append(pa.table({k: pa.array(v, pa.int32()) for k, v in rows.items()}))
        frame = lake.spark.sql("select A, a, `b.c` from lake.db.cases where A > 3 and a < 3")
        assert is_native(frame)
        assert frame.collect() == [(4, 2, 6)]
        assert lake.spark.table("lake.db.cases").filter("`b.c` = 5").collect() == [(1, 3, 5)]


def test_a_cached_frame_stays_until_it_is_refreshed(lake: Lake) -> None:
    table = lake.session.table("lake.db.changed")
    append(table, range(5))
    cached = lake.spark.table("lake.db.changed").cache()
    try:
        assert cached.count() == 5
        append(table, range(5, 8))
        assert lake.spark.table("lake.db.changed").count() == 5
        lake.spark.sql("refresh table lake.db.changed")
        anew = lake.spark.table("lake.db.changed")
        assert (anew.count(), "InMemory" in plan_of(anew)) == (8, True)
    finally:
        lake.spark.catalog.clearCache()
    append(table, range(8, 10))
    assert lake.spark.table("lake.db.changed").count() == 10


@pytest.mark.nightly
def test_small_tasks_of_ours_share_a_task_and_pass_no_other_worker(lake: Lake) -> None:
    table = create(lake.session, "lake.db.appended")
    for i in range(20):
        append(table, range(i, i + 1))
    frame = lake.spark.table("lake.db.appended.files")
    lineage = frame._jdf.queryExecution().toRdd()
    assert lineage.getNumPartitions() == 2
    assert " PythonRDD[" not in lineage.toDebugString()
    assert sorted(row.record_count for row in frame.collect()) == [1] * 20


PRUNED_BY = {
    "spark.sql.optimizer.dynamicPartitionPruning.useStats": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": "1.0",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1",
}


@pytest.mark.nightly
def test_spark_prunes_other_tables_by_rows_of_ours(lake: Lake, tmp_path: Path) -> None:
    rows = lake.spark.range(100, numPartitions=1).selectExpr("id", "id % 40 as p")
    rows.write.partitionBy("p").parquet(str(tmp_path / "facts"))
    facts = lake.spark.read.parquet(str(tmp_path / "facts"))
    ours = lake.spark.table("lake.db.t").filter("s = '7'")
    broadcast = "spark.sql.autoBroadcastJoinThreshold"
    only = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
    for key, settings, expected in (
        ("p", {}, 3),
        ("p", {broadcast: "-1", only: "false"}, 3),
        ("id", {broadcast: "-1"}, 1),
    ):
        with configured(lake.spark, {**PRUNED_BY, **settings}):
            joined = facts.join(ours, facts[key] == ours.id)
            assert ("dynamicpruning" if key == "p" else "bloom_filter") in plan_of(joined)
            assert joined.count() == expected


@pytest.mark.nightly
def test_a_filter_at_run_time_knows_files_by_another_scheme(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheme of a planned file depends on credentials, which may be renewed by then."""
    table = create(lake.session, "lake.db.by_bucket", "partitioned by (bucket(8, id))")
    table.append(arrow(range(30)))
    answered: list[str] = []

    def renewed(*arguments: Any) -> tuple[str, ...]:
        answered.extend(remaining_locations(*arguments))
        return tuple(f"s3a-0123456789ab://{location}" for location in answered)

    monkeypatch.setattr("iceberg_pyspark.spark.requests.scan_requests.remaining_locations", renewed)
    keys = lake.spark.range(7, 8).filter("id % 2 = 1").withColumnRenamed("id", "x")
    keys.write.mode("overwrite").saveAsTable("late_keys")
    try:
        query = (
            "SELECT /*+ BROADCAST(late_keys) */ id FROM lake.db.by_bucket JOIN late_keys ON id = x "
            "WHERE x > 0"
        )
        with configured(lake.spark, PRUNED_BY):
            frame = lake.spark.sql(query)
            assert "dynamicpruning" in plan_of(frame)
            assert [row.id for row in frame.collect()] == [7]
    finally:
        lake.spark.sql("DROP TABLE late_keys")
    assert 0 < len(answered) < 8


@pytest.mark.nightly
def test_small_pruned_scan_is_broadcast(lake: Lake) -> None:
    table = create(lake.session, "lake.db.parts", "partitioned by (g)")
    table.append(arrow(range(30)))
    frame = lake.spark.table("lake.db.parts")
    one = frame.filter("g = 1")
    other = lake.spark.range(10**6).withColumnRenamed("id", "x")
    part, whole = (
        int(f._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()) for f in (one, frame)
    )
    assert 0 < part < whole
    limit = str((part + whole) // 2)
    with configured(lake.spark, {"spark.sql.autoBroadcastJoinThreshold": limit}):
        assert "BroadcastHashJoin" in plan_of(other.join(one, other.x == one.id))
        assert "BroadcastHashJoin" not in plan_of(other.join(frame, other.x == frame.id))


@pytest.mark.nightly
def test_queries_of_several_threads(lake: Lake) -> None:
    def count(i: int) -> int:
        return lake.spark.table("lake.db.t").filter(f"id % 6 = {i}").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(6))) == [sum(n % 6 == i for n in LIVE) for i in range(6)]


@pytest.mark.nightly
def test_frames_of_the_catalog_work_in_every_api(lake: Lake, tmp_path: Path) -> None:
    spark, frame = lake.spark, lake.spark.table("lake.db.t")
    assert frame.schema == spark.table("plain").schema
    for kind in ("extended", "formatted"):
        ((plan,),) = spark.sql(f"explain {kind} select * from lake.db.t").collect()
        assert "IcebergPyParquetScan" in plan
    assert len(frame.toPandas()) == len(LIVE)
    assert sorted(frame.toArrow()["id"].to_pylist()) == LIVE
    assert sorted(frame.rdd.map(lambda row: row.id).collect()) == LIVE
    assert frame.mapInArrow(lambda batches: batches, frame.schema).count() == len(LIVE)
    assert 0 < frame.sample(fraction=0.5, seed=3).count() < len(LIVE)
    assert frame.limit(3).count() == 3
    assert frame.select("id").orderBy("id").offset(5).take(1) == [(7,)]
    assert len(frame.inputFiles()) == 3
    assert frame.localCheckpoint().filter("g = 1").count() == 9
    frame.filter("g = 1").write.parquet(str(tmp_path / "written"))
    assert spark.read.parquet(str(tmp_path / "written")).count() == 9


def test_sessions_made_from_one_with_iceberg_have_it(lake: Lake) -> None:
    path = lake.session.table("lake.db.t").location
    new_session = lake.spark.newSession()
    read = new_session.read.format("iceberg-py").load(path)
    assert is_native(read)
    assert read.count() == len(LIVE)
    for key in ("", ".type", ".uri", ".warehouse"):
        new_session.conf.set(PREFIX + key, str(lake.spark.conf.get(PREFIX + key)))
    again = new_session.newSession().read.format("iceberg-py").load(path)
    assert is_native(again)
    assert is_native(new_session.table("lake.db.t"))
    assert install(new_session).is_native
    install(new_session).uninstall()
    assert not is_native(new_session.read.format("iceberg-py").load(path))
    # Sessions that never installed Iceberg are unchanged.
    assert not is_native(lake.never.read.format("iceberg-py").load(path))
    assert not is_native(lake.never.newSession().read.format("iceberg-py").load(path))


@pytest.mark.nightly
def test_batches_of_a_stream_read_and_join_tables(lake: Lake, tmp_path: Path) -> None:
    spark = lake.spark
    path = lake.session.table("lake.db.t").location
    spark.range(10).write.parquet(str(tmp_path / "source"))
    batches: list[tuple[bool, int]] = []

    def look(batch: DataFrame, _number: int) -> None:
        for table in (
            batch.sparkSession.table("lake.db.t"),
            batch.sparkSession.read.format("iceberg-py").load(path),
        ):
            joined = batch.join(table, "id")
            batches.append((is_native(joined), joined.count()))

    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "source"))
    stream.writeStream.foreachBatch(look).trigger(availableNow=True).start().awaitTermination()
    assert batches == [(True, 8), (True, 8)]
