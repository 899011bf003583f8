"""Groups of files with the table's sort order are joined without a sort, others with a sort."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.amounts import FULL_WORK
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.readings import INTERPRETED
from tests.support.rows import spark_rows
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

SETTINGS = {**JOINS_OF_GROUPS, "spark.sql.iceberg.planning.preserve-data-ordering": "true"}
ROWS = """
    select id, if(id % 9 = 0, null, cast(id * 7919 % 61 as int)) g,
           if(id % 5 = 0, null, concat(char(cast(id * 31 % 96 + 32 as int)), 'é𝄞')) s,
           cast(id * 104729 % 97 as decimal(9, 2)) m, id * 0.1d f,
           timestampadd(HOUR, cast(id * 7907 % 89 as int), timestamp_ntz'1969-12-30 00:00:00') t
    from range({}, {})
"""
SUBSETS = "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled"
MERGE_ON_READ = "'write.delete.mode'='merge-on-read'"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("sorted")
    with configured(spark, SETTINGS), sqlite_lake(spark, folder, "sorted") as created:
        spark.sql(ROWS.format(0, 400)).createOrReplaceTempView("left_plain")
        spark.sql(ROWS.format(100, 500)).createOrReplaceTempView("right_plain")
        yield created


def make(
    session: IcebergSession,
    name: str,
    order: str,
    partitioned: str,
    properties: str = MERGE_ON_READ,
) -> None:
    """Create both sides of a join, with one sorted file in every partition."""
    hash_ = "'write.distribution-mode'='hash'"
    for side in ("left", "right"):
        table = f"sorted.db.{side}_{name}"
        session.spark.sql(
            f"create table {table} (id bigint, g int, s string, m decimal(9, 2), f double, "
            f"t timestamp_ntz) partitioned by ({partitioned}) tblproperties ({properties}, {hash_})"
        )
        session.spark.sql(f"alter table {table} write locally ordered by {order}")
        session.spark.sql(f"insert into {table} select * from {side}_plain")


def compared(session: IcebergSession, name: str, query: str, where: str = "true") -> str:
    """Check that a query of {l} and {r} equals the query of plain rows; return the tables' plan."""
    ours = session.spark.sql(query.format(l=f"sorted.db.left_{name}", r=f"sorted.db.right_{name}"))
    plain = "(select * from {}_plain where {})"
    with configured(session.spark, INTERPRETED):
        expected = session.spark.sql(
            query.format(l=plain.format("left", where), r=plain.format("right", where))
        ).collect()
    assert spark_rows(ours.collect()) == spark_rows(expected)
    return plan_of(ours)


def sorts(plan: str) -> int:
    return plan.count("Sort [")


JOIN = "select a.id, b.id, a.s, b.g from {l} a join {r} b on "
OTHER_ORDERS = {"desc": "id desc", "cut": "truncate(5, id)"}
if FULL_WORK:
    OTHER_ORDERS["last"] = "id nulls last"


@cases("key", fast=["s"], nightly=["id", *(k for k in ("g", "m", "t"))])
def test_sorted_groups_are_joined_without_a_sort(session: IcebergSession, key: str) -> None:
    name = f"by_{key}"
    make(session, name, key, f"bucket(4, {key})")
    # A merge join needs both sides sorted by the key.
    assert sorts(compared(session, name, f"{JOIN} a.{key} = b.{key}")) == 0
    session.spark.conf.set("spark.sql.iceberg.planning.preserve-data-ordering", "false")
    assert sorts(compared(session, name, f"{JOIN} a.{key} = b.{key}")) == 2
    session.spark.conf.set("spark.sql.iceberg.planning.preserve-data-ordering", "true")
    assert sorts(compared(session, name, f"{JOIN} a.{key} = b.{key} where a.id > 250")) == 0
    for side in ("left", "right"):
        session.spark.sql(f"delete from sorted.db.{side}_{name} where id % 7 = 3")
    remaining = "id % 7 != 3"
    for how in ("left", "full", "left anti") if FULL_WORK else ("full", "left anti"):
        join = JOIN if how != "left anti" else "select a.id from {l} a join {r} b on "
        join = join.replace("join", f"{how} join")
        assert sorts(compared(session, name, f"{join} a.{key} = b.{key}", remaining)) == 0


@pytest.mark.nightly
def test_scan_with_another_sort_order_is_sorted(session: IcebergSession) -> None:
    for name, order in OTHER_ORDERS.items():
        make(session, name, order, "bucket(4, id)")
        assert sorts(compared(session, name, JOIN + "a.id = b.id")) == 2, name
    make(session, "double", "f", "bucket(4, id)")
    assert sorts(compared(session, "double", "select a.id from {l} a join {r} b on a.f = b.f")) == 2


@pytest.mark.nightly
def test_scan_of_partly_sorted_files_is_sorted(session: IcebergSession) -> None:
    """Files with two sort orders, and two files in one group."""
    spark, on = session.spark, "a.id = b.id"
    make(session, "mixed", "id", "bucket(4, id)")
    spark.sql("alter table sorted.db.left_mixed write unordered")
    spark.sql("insert into sorted.db.left_mixed select * from left_plain where id = 17")
    doubled = "(select * from left_plain union all select * from left_plain where id = 17)"
    ours = spark.sql((JOIN + on).format(l="sorted.db.left_mixed", r="sorted.db.right_mixed"))
    with configured(spark, INTERPRETED):
        plain = spark.sql((JOIN + on).format(l=doubled, r="right_plain")).collect()
    assert spark_rows(ours.collect()) == spark_rows(plain)
    assert sorts(plan_of(ours)) == 1
    # If the join uses only some of the keys, Spark merges groups, and their rows are not sorted.
    make(session, "two_keys", "id", "g, bucket(2, id)")
    with configured(spark, {SUBSETS: "true"}):
        compared(session, "two_keys", JOIN + on)
        if FULL_WORK:
            compared(session, "two_keys", JOIN + "a.g = b.g and a.id = b.id")


@pytest.mark.nightly
def test_run_time_filters_leave_groups_sorted(session: IcebergSession) -> None:
    make(session, "filtered", "id", "bucket(8, id)")
    session.spark.sql("select * from values (120L), (121L) as v(k)").createOrReplaceTempView("few")
    query = JOIN + "a.id = b.id where a.id in (select k from few where k > 120)"
    compared(session, "filtered", query)


@cases("seed", fast=[0, 1], nightly=[*(n for n in range(2, 10))])
def test_random_orders_and_queries(session: IcebergSession, seed: int) -> None:
    chance = random.Random(seed)
    columns = ("id", "g", "s", "m", "t")
    order = ", ".join(
        f"{c} {chance.choice(('asc', 'desc'))} nulls {chance.choice(('first', 'last'))}"
        for c in chance.sample(columns, 3)
    )
    key = chance.choice(columns)
    name = f"random_{seed}"
    make(session, name, order, chance.choice((f"bucket(3, {key})", key if key == "g" else "g")))
    for _ in range(3 if FULL_WORK else 1):
        one, other = chance.sample(columns, 2)
        direction = chance.choice(("asc", "desc nulls first", "desc", "asc nulls last"))
        compared(session, name, f"{JOIN} a.{key} = b.{key} and a.{one} <=> b.{one}")
        compared(
            session,
            name,
            f"select id, rank() over (partition by {key} order by {one} {direction}, id) n, "
            f"sum(id) over (partition by {one} order by {other} {direction}, id) m from {{l}}",
        )
        compared(session, name, f"select {key}, count(*), min({other}) from {{l}} group by {key}")


@pytest.mark.nightly
def test_large_files_of_one_row_group_are_sorted(session: IcebergSession) -> None:
    """Whatever the split size is, such a file is one split, so that its rows stay in order."""
    make(session, "one_row_group", "id", "bucket(2, id)")
    with configured(session.spark, {"spark.sql.iceberg.read.split-size": "512"}):
        sizes = session.spark.table("sorted.db.left_one_row_group.files").collect()
        assert [len(f.split_offsets) for f in sizes] == [1, 1]
        assert min(f.file_size_in_bytes for f in sizes) > 4096
        frame = session.spark.table("sorted.db.left_one_row_group")
        scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
        assert scan.inputPartitions().size() == 2
        assert sorts(compared(session, "one_row_group", JOIN + "a.id = b.id")) == 0


@pytest.mark.nightly
def test_parallelism_is_not_given_up(session: IcebergSession) -> None:
    """A file that Spark would split is split, and its rows are sorted again."""
    row_groups = "'write.parquet.row-group-size-bytes'='4096'"
    make(session, "large", "id", "bucket(2, id)", f"{MERGE_ON_READ}, {row_groups}")
    with configured(session.spark, {"spark.sql.iceberg.read.split-size": "4096"}):
        frame = session.spark.table("sorted.db.left_large")
        scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
        assert scan.inputPartitions().size() > 2
        assert sorts(compared(session, "large", JOIN + "a.id = b.id")) > 0
