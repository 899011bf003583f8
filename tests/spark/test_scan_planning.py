"""What Spark's planner makes of a native scan: it skips files by filters known while it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark import native_bitmaps
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.rows import spark_rows

ROWS = """
    select id, cast(id % 7 as int) g, concat('s', id % 7) s,
           timestampadd(DAY, cast(id % 7 as int), timestamp_ntz'2024-01-01 00:00:00') t
    from range(700)
"""
MERGE_ON_READ = "tblproperties ('write.delete.mode'='merge-on-read')"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    """Plans are carried out as they are first made, so that their scans can be asked."""
    before = str(spark.conf.get("spark.sql.adaptive.enabled"))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    with sqlite_lake(spark, tmp_path_factory.mktemp("planned"), "planned") as made:
        spark.sql(ROWS).createOrReplaceTempView("plain")
        names = "select id, 's' || id s, id in (2, 5) as chosen from range(7)"
        spark.sql(names).createOrReplaceTempView("names")
        yield made
    spark.conf.set("spark.sql.adaptive.enabled", before)


def make(session: IcebergSession, name: str, clauses: str) -> None:
    session.spark.sql(f"create table planned.db.{name} using iceberg {clauses} as {ROWS}")


def number(frame: DataFrame, name: str) -> int:
    """A metric of a query's native scans, of those that have it, added up once it has run."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves().iterator()
    values = []
    while leaves.hasNext():
        found = leaves.next().metrics().get(name)
        if found.isDefined():
            values.append(found.get().value())
    assert values, f"no scan has a metric {name}"
    return int(sum(values))


def same(session: IcebergSession, query: str, table: str) -> DataFrame:
    """A query of {t} that was run, with the rows that it has on the plain rows."""
    frame = session.spark.sql(query.format(t=f"planned.db.{table}"))
    assert spark_rows(frame.collect()) == spark_rows(
        session.spark.sql(query.format(t="plain")).collect()
    )
    return frame


@pytest.mark.parametrize(
    ("clauses", "column", "value"),
    [
        ("partitioned by (g)", "g", "cast(id as int)"),
        ("partitioned by (s)", "s", "s"),
        ("partitioned by (bucket(16, s))", "s", "s"),
        ("partitioned by (truncate(1, g))", "g", "cast(id as int)"),
        (
            "partitioned by (days(t))",
            "t",
            "timestampadd(DAY, cast(id as int), timestamp_ntz'2024-01-01 00:00:00')",
        ),
    ],
)
def test_files_are_skipped_by_what_the_other_side_of_a_join_has(
    session: IcebergSession, clauses: str, column: str, value: str
) -> None:
    name = "t_" + "".join(c if c.isalnum() else "_" for c in clauses)
    make(session, name, clauses)
    files = session.table(f"planned.db.{name}").scan().describe().statistics.data_files
    assert files > 4
    few = f"(select {value} as k, id as n from names where chosen) as few"
    query = f"select t.id, few.n from {{t}} t join {few} on t.{column} = few.k"
    frame = same(session, query, name)
    assert "dynamicpruning" in plan_of(frame)
    read, skipped = number(frame, "resultDataFiles"), number(frame, "runtimeSkippedDataFiles")
    assert read + skipped == files
    assert read <= 3
    # the same plan once more, and the same table without such a filter
    assert len(frame.collect()) == 200
    whole = same(session, "select count(id), sum(g) from {t}", name)
    assert number(whole, "resultDataFiles") == files


def test_a_side_without_rows_skips_all_files(session: IcebergSession) -> None:
    make(session, "none", "partitioned by (g)")
    query = (
        "select t.id from {t} t join (select cast(id as int) k from names where s = 'no') n "
        "on t.g = n.k"
    )
    assert number(same(session, query, "none"), "resultDataFiles") == 0


def test_files_are_skipped_by_the_bounds_of_what_a_table_is_sorted_by(
    session: IcebergSession,
) -> None:
    spark = session.spark
    spark.sql("create table planned.db.sorted (id bigint, g int, s string, t timestamp_ntz)")
    session.table("planned.db.sorted").replace_sort_order().asc("id").commit()
    for start in range(0, 700, 100):
        spark.sql(
            f"insert into planned.db.sorted select * from ({ROWS}) "
            f"where id >= {start} and id < {start + 100}"
        )
    query = (
        "select t.id, n.s from {t} t join (select id * 100 + 5 as k, s from names "
        "where chosen) n on t.id = n.k"
    )
    frame = same(session, query, "sorted")
    files = session.table("planned.db.sorted").scan().describe().statistics.data_files
    read, skipped = number(frame, "resultDataFiles"), number(frame, "runtimeSkippedDataFiles")
    assert read + skipped == files
    assert 0 < read < files / 3


def test_deleted_rows_stay_deleted_where_files_are_skipped(session: IcebergSession) -> None:
    make(session, "deletes", f"partitioned by (g) {MERGE_ON_READ}")
    table = "planned.db.deletes"
    session.spark.sql(f"delete from {table} where id in (2, 9, 400)")
    session.spark.sql(f"insert into {table} select * from plain where id = 9")
    query = (
        f"select t.id from {table} t join (select cast(id as int) k from names where chosen) n "
        "on t.g = n.k"
    )
    frame = session.spark.sql(query)
    live = [i for i in range(700) if i % 7 in (2, 5) and i not in (2, 400)]
    assert sorted(r.id for r in frame.collect()) == live
    assert number(frame, "runtimeSkippedDataFiles") == 5


def test_what_python_reads_is_in_the_same_plan(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters that are known only while a query runs are for scans, not for rows."""
    monkeypatch.setattr(native_bitmaps, "MAX_TOTAL_BYTES", 0)
    make(session, "both", f"partitioned by (g) {MERGE_ON_READ}")
    session.spark.sql("delete from planned.db.both where id = 5")
    query = (
        "select t.id from planned.db.both t "
        "join (select cast(id as int) k from names where chosen) n on t.g = n.k"
    )
    frame = session.spark.sql(query)
    assert "MapInArrow" in plan_of(frame)
    live = [i for i in range(700) if i % 7 in (2, 5) and i != 5]
    assert sorted(r.id for r in frame.collect()) == live
    assert number(frame, "resultDataFiles") == 1


def test_equal_scans_are_shuffled_once(session: IcebergSession) -> None:
    make(session, "reused", "partitioned by (bucket(4, id))")
    spark = session.spark
    query = (
        "with grouped as (select g, count(*) n from planned.db.reused group by g) "
        "select a.g, a.n from grouped a join grouped b on a.n = b.n"
    )
    frame = spark.sql(query)
    assert "ReusedExchange" in plan_of(frame)
    assert len(frame.collect()) == 49


def test_batches_are_columnar_in_generated_code(session: IcebergSession) -> None:
    make(session, "columnar", "")
    plan = plan_of(session.spark.sql("select sum(id) from planned.db.columnar where g = 3"))
    assert re.search(r"\*\(1\) Filter.*\n.*\*\(1\) ColumnarToRow\n.*BatchScan", plan), plan
