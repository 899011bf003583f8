"""Spark plans native scans well: run-time filters skip files, metadata answers aggregates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.data_source import metadata_tables
from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.requests.handlers import HANDLERS
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases
from tests.support.readings import INTERPRETED
from tests.support.rows import PlainRow, spark_rows
from tests.support.spark_settings import configured

# 4.1 sends one request of each kind: the responses are Python's, and tests/interop compares rows.

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
    """Yield a session without adaptive execution, so that the scans of a plan can be inspected."""
    lake = sqlite_lake(spark, tmp_path_factory.mktemp("planned"), "planned")
    with configured(spark, {"spark.sql.adaptive.enabled": "false"}), lake as created:
        spark.sql(ROWS).createOrReplaceTempView("plain")
        names = "select id, 's' || id s, id in (2, 5) as chosen from range(7)"
        spark.sql(names).createOrReplaceTempView("names")
        yield created


def rows(ids: range = range(700)) -> pa.Table:
    """Return the rows of `ROWS` with these ids."""
    start = datetime(2024, 1, 1)
    return pa.table(
        {
            "id": ids,
            "g": pa.array([i % 7 for i in ids], pa.int32()),
            "s": [f"s{i % 7}" for i in ids],
            "t": pa.array([start + timedelta(days=i % 7) for i in ids], pa.timestamp("us")),
        }
    )


def make(session: IcebergSession, name: str, clauses: str) -> None:
    session.spark.sql(
        f"create table planned.db.{name} (id bigint, g int, s string, t timestamp_ntz) {clauses}"
    )
    session.table(f"planned.db.{name}").append(rows())


def shared(session: IcebergSession, clauses: str) -> str:
    """Return the name of a table that tests only read; the first call creates it."""
    name = "t_" + "".join(c if c.isalnum() else "_" for c in clauses)
    if not session.spark.catalog.tableExists(f"planned.db.{name}"):
        make(session, name, clauses)
    return name


def leaves_of(frame: DataFrame) -> Iterator[Any]:
    """Yield the leaves of a query's physical plan."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves().iterator()
    while leaves.hasNext():
        yield leaves.next()


def number(frame: DataFrame, name: str) -> int:
    """Return the sum of a metric over the native scans of a query that has run."""
    results = [leaf.metrics().get(name) for leaf in leaves_of(frame)]
    values = [result.get().value() for result in results if result.isDefined()]
    assert values, f"no scan has a metric {name}"
    return int(sum(values))


def same(session: IcebergSession, query: str, table: str) -> DataFrame:
    """Check that a query of `{t}` gives the same rows on the table as on plain rows; return it."""
    frame = session.spark.sql(query.format(t=f"planned.db.{table}"))
    _, expected = plainly(session, query.format(t="plain"))
    assert spark_rows(frame.collect()) == expected
    return frame


def plainly(session: IcebergSession, query: str) -> tuple[DataFrame, list[PlainRow]]:
    """Return a query of plain rows, and its rows as Spark's interpreter has them."""
    with configured(session.spark, INTERPRETED):
        frame = session.spark.sql(query)
        return frame, spark_rows(frame.collect())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rows", "batch"),
    [(20, 128), (200, 200), (5000, 4096)],
)
def test_readers_allocate_batches_no_larger_than_the_files(
    session: IcebergSession, rows: int, batch: int
) -> None:
    name = f"planned.db.of_{rows}_rows"
    session.spark.sql(f"create table {name} as select * from range(0, {rows}, 1, 1)")
    frame = session.spark.table(name)
    (leaf,) = leaves_of(frame)
    readers = leaf.batch().createReaderFactory()
    assert readers.sqlConf().parquetVectorizedReaderBatchSize() == batch
    assert len(frame.collect()) == rows
    assert session.spark.conf.get("spark.sql.parquet.columnarReaderBatchSize") == "4096"


@cases(
    ("clauses", "column", "value"),
    fast=[
        ("partitioned by (g)", "g", "cast(id as int)"),
        ("partitioned by (bucket(16, s))", "s", "s"),
    ],
    nightly=[
        ("partitioned by (s)", "s", "s"),
        pytest.param(*("partitioned by (truncate(1, g))", "g", "cast(id as int)")),
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
    name = shared(session, clauses)
    files = session.table(f"planned.db.{name}").scan().describe().statistics.data_files
    assert files > 4
    few = f"(select {value} as k, id as n from names where chosen) as few"
    query = f"select t.id, few.n from {{t}} t join {few} on t.{column} = few.k"
    frame = same(session, query, name)
    assert "dynamicpruning" in plan_of(frame)
    read, skipped = number(frame, "resultDataFiles"), number(frame, "runtimeSkippedDataFiles")
    assert read + skipped == files
    assert read <= 3
    # The same plan can run again, and the same table can be scanned without a run-time filter.
    assert len(frame.collect()) == 200
    whole = same(session, "select count(id), sum(g) from {t}", name)
    assert number(whole, "resultDataFiles") == files


@pytest.mark.nightly
def test_both_sides_may_be_native_scans(session: IcebergSession) -> None:
    """A dimension table that is a native scan is broadcast once; its keys select the fact files."""
    facts = shared(session, "partitioned by (g)")
    spark = session.spark
    spark.sql("create table planned.db.dims as select cast(id as int) k, s, chosen from names")
    query = (
        f"select f.id, d.s from planned.db.{facts} f join planned.db.dims d on f.g = d.k "
        "where d.chosen and d.s like 's%'"
    )
    frame = spark.sql(query)
    assert len(frame.collect()) == 200
    assert number(frame, "runtimeSkippedDataFiles") == 5
    assert "ReusedExchange" in plan_of(frame)


@pytest.mark.nightly
def test_a_side_without_rows_skips_all_files(session: IcebergSession) -> None:
    table = shared(session, "partitioned by (g)")
    query = (
        "select t.id from {t} t join (select cast(id as int) k from names where s = 'no') n "
        "on t.g = n.k"
    )
    assert number(same(session, query, table), "resultDataFiles") == 0


@pytest.fixture(scope="module")
def appended(session: IcebergSession) -> str:
    """Return the name of a table of seven appends, whose ids follow each other."""
    session.spark.sql(
        "create table planned.db.appended (id bigint, g int, s string, t timestamp_ntz)"
    )
    for start in range(0, 700, 100):
        session.table("planned.db.appended").append(rows(range(start, start + 100)))
    return "appended"


def test_files_are_skipped_by_the_bounds_of_columns_that_follow_the_order_of_appends(
    session: IcebergSession, appended: str
) -> None:
    query = (
        "select t.id, n.s from {t} t join (select id * 100 + 5 as k, s from names "
        "where chosen) n on t.id = n.k"
    )
    frame = same(session, query, appended)
    assert number(frame, "resultDataFiles") == 2
    assert number(frame, "runtimeSkippedDataFiles") == 5


def test_nothing_is_filtered_at_run_time_by_columns_of_the_same_values_in_all_files(
    session: IcebergSession, appended: str
) -> None:
    names = "(select cast(id as int) as k, s from names where chosen) n"
    for on in ("t.g = n.k", "t.s = n.s"):
        frame = same(session, f"select t.id, n.s from {{t}} t join {names} on {on}", appended)
        assert "dynamicpruning" not in plan_of(frame)
        assert number(frame, "resultDataFiles") == 7


@pytest.mark.nightly
def test_files_are_skipped_by_the_bounds_of_what_a_table_is_sorted_by(
    session: IcebergSession,
) -> None:
    spark = session.spark
    spark.sql("create table planned.db.sorted (id bigint, g int, s string, t timestamp_ntz)")
    session.table("planned.db.sorted").replace_sort_order().asc("id").commit()
    for start in range(0, 300, 100):
        session.table("planned.db.sorted").append(rows(range(start, start + 100)))
    query = (
        "select t.id, n.s from planned.db.sorted t join (select id * 100 + 5 as k, s from names "
        "where id = 2) n on t.id = n.k"
    )
    frame = spark.sql(query)
    assert [r.id for r in frame.collect()] == [205]
    assert number(frame, "resultDataFiles") == 1
    assert number(frame, "runtimeSkippedDataFiles") == 2


def test_deleted_rows_stay_deleted_where_files_are_skipped(session: IcebergSession) -> None:
    make(session, "deletes", f"partitioned by (g) {MERGE_ON_READ}")
    table = "planned.db.deletes"
    session.spark.sql(f"delete from {table} where id in (2, 9, 400)")
    session.table(table).append(rows(range(9, 10)))
    query = (
        f"select t.id from {table} t join (select cast(id as int) k from names where chosen) n "
        "on t.g = n.k"
    )
    frame = session.spark.sql(query)
    live = [i for i in range(700) if i % 7 in (2, 5) and i not in (2, 400)]
    assert sorted(r.id for r in frame.collect()) == live
    assert number(frame, "runtimeSkippedDataFiles") == 5


@pytest.mark.nightly
@pytest.mark.parametrize(
    "condition",
    [
        "g = (select max(cast(id as int)) from names)",
        "g >= (select max(cast(id as int)) - 1 from names)",
        "g in (select cast(id as int) from names where chosen)",
        "g not in (select cast(id as int) from names where chosen)",
        "exists (select 1 from names n where n.id = g and chosen) or g = 6",
    ],
)
def test_subqueries_on_what_files_are_skipped_by(session: IcebergSession, condition: str) -> None:
    table = shared(session, "partitioned by (g)")
    same(session, f"select id, g from {{t}} where {condition}", table)


@pytest.mark.nightly
def test_files_read_by_python_are_in_the_same_plan(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run-time filter also prunes files whose rows Python workers read."""
    monkeypatch.setattr(deleted_rows, "MAX_TOTAL_BYTES", 0)
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


@pytest.mark.nightly
def test_a_scan_and_its_copy_in_a_run_time_filter_are_planned_once(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed = shared(session, "partitioned by (g)")
    spark = session.spark
    spark.sql("create table planned.db.build using iceberg as select * from names")
    query = (
        f"select count(*) from planned.db.{probed} p "
        "join planned.db.build b on p.g = cast(b.id as int) where b.s > 's3'"
    )
    requests: list[str] = []
    plan = HANDLERS["scan.plan"]

    def counted(sessions: Any, request: Any) -> Any:
        requests.append(request.scan.table.handle)
        return plan(sessions, request)

    monkeypatch.setitem(cast("dict[str, Any]", HANDLERS), "scan.plan", counted)
    frame = spark.sql(query)
    assert "dynamicpruning" in plan_of(frame)
    assert [r[0] for r in frame.collect()] == [300]
    assert len(requests) == len(set(requests)) == 2
    # Two relations of the same table are two scans.
    both = "select count(*) from planned.db.build x join planned.db.build y on x.id = y.id + 1"
    assert [r[0] for r in spark.sql(both).collect()] == [6]
    assert len(requests) == 4


def test_settings_of_a_scan_are_what_hadoop_reads_of_them(session: IcebergSession) -> None:
    """Our serialization of a Hadoop configuration, five times as fast, is readable by executors."""
    spark = session.spark
    frame = spark.sql(f"select id from planned.db.{shared(session, '')}")
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    elements = leaf.scan().toBatch().createReaderFactory().productIterator()
    actual = [elements.next() for _ in iter(elements.hasNext, False)]
    (broadcast,) = [e for e in actual if isinstance(e, JavaObject) and "Broadcast(" in str(e)]
    conf = broadcast.value().value()
    assert conf.getClass().getName() == "IcebergPyConfiguration"
    jvm = spark._jvm
    assert jvm is not None
    out = jvm.java.io.ByteArrayOutputStream()
    conf.write(jvm.java.io.DataOutputStream(out))
    source = jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(out.toByteArray()))
    read = jvm.org.apache.hadoop.conf.Configuration(False)
    read.readFields(source)
    expected, values = settings_of(conf), settings_of(read)
    assert values == expected
    assert "spark.sql.parquet.binaryAsString" in values
    assert "fs.defaultFS" in values


def settings_of(conf: Any) -> dict[str, str]:
    """Return all entries of a Hadoop configuration."""
    lines, entries = {}, conf.iterator()
    while entries.hasNext():
        entry = entries.next()
        lines[entry.getKey()] = entry.getValue()
    return lines


@pytest.mark.nightly
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
    table = f"planned.db.{shared(session, '')}"
    plan = plan_of(session.spark.sql(f"select sum(id) from {table} where g = 3"))
    assert re.search(r"\*\(1\) Filter.*\n.*\*\(1\) ColumnarToRow\n.*BatchScan", plan), plan


def test_scans_of_equal_rows_are_read_once_whatever_their_conditions(
    session: IcebergSession,
) -> None:
    """As in query 21 of TPC-H, whose `a` and `c` differ only in conditions that all rows fulfil."""
    table = shared(session, "")
    query = (
        "select count(*) from {t} a where a.id > 9 and a.id > -1 "
        "and exists (select * from {t} b where b.g = a.g and b.s <> a.s) "
        "and not exists (select * from {t} c where c.g = a.g and c.s <> a.s and c.id > 9)"
    )
    with configured(session.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        plan = plan_of(same(session, query, table))
    assert plan.count("IcebergPyParquetScan") == 2, plan
    assert "ReusedExchange" in plan, plan
    joins = (
        "select /*+ broadcast(b, c) */ count(*) from {t} a "
        "join {t} b on a.id = b.id join {t} c on a.id = c.id "
        "where b.g = 1 and b.id is not null and c.g = 1"
    )
    plan = plan_of(same(session, joins, table))
    assert plan.count("IcebergPyParquetScan") == 2, plan
    assert "BroadcastMode(List(input[0, bigint, false])" in plan, "keys are known to have no null"


AGGREGATES = (
    "select count(*), count(g), min(id), max(id), min(t), max(t), min(d), max(d) from {t}",
    "select max(id) + min(id) * 2 as both, count(*) c from {t}",
    "select g, max(f), count(f), min(f), count(d) from {t} where g in (1, 2) group by g",
    "select g, count(*), max(id), count(s) from {t} group by g",
    "select g as h, min(t), g + 1 from {t} where g > 2 and g is not null group by g",
    "select count(*), max(id) from {t} where g in (1, 2)",
    "select distinct g from {t}",
    "select count(*), min(g), max(id) from {t} where g = 100",
    "select g, count(*) from {t} where g = 100 group by g",
    "select max(n) from (select g, count(*) n from {t} group by g)",
    "select id from {t} where id = (select max(id) from {t})",
)
READ = (
    "select max(s), count(*) from {t}",
    "select min(f) from {t}",
    "select count(distinct g) from {t}",
    "select sum(id) from {t}",
    "select count(*) from {t} where id > 350",
    "select g % 2, count(*) from {t} group by g % 2",
    "select max(id) filter (where g = 1) from {t}",
    "select count(*) from {t} where g = 1 or length(s) = 2",
    "select min(f), max(f) from {t} where g = 3",
)
VALUES = (
    "select id, g, s, t, cast(id / 4 as decimal(10, 2)) d, cast(id as double) f from plain "
    "where g is null or g <> 4"
)


@pytest.fixture(scope="module")
def counted(session: IcebergSession) -> str:
    """Create a table partitioned by `g`: one file has only nulls, another one null among values."""
    spark = session.spark
    spark.sql(VALUES).createOrReplaceTempView("values_plain")
    nulls = (
        "select * from values_plain union all select null, null, null, null, null, null "
        "union all select 7000, null, 'x', null, -3.5, 0.0 "
        "union all select null, 3, 'y', timestamp_ntz'1960-01-01 00:00:00.5', null, 0.0"
    )
    spark.sql(nulls).createOrReplaceTempView("counted_plain")
    spark.sql(
        "create table planned.db.counted using iceberg partitioned by (g) "
        f"{MERGE_ON_READ} as {nulls}"
    )
    return "planned.db.counted"


@pytest.mark.parametrize("query", [AGGREGATES[0], *AGGREGATES[1:]])
def test_aggregates_come_from_metadata(session: IcebergSession, counted: str, query: str) -> None:
    ours = session.spark.sql(query.format(t=counted))
    plain, expected = plainly(session, query.format(t="counted_plain"))
    scans = plan_of(ours).count("IcebergPyParquetScan")
    assert scans == (1 if query.startswith("select id") else 0), plan_of(ours)
    assert spark_rows(ours.collect()) == expected
    assert ours.schema.simpleString() == plain.schema.simpleString()


@pytest.mark.parametrize("query", READ)
def test_aggregates_unknown_to_metadata_are_read(
    session: IcebergSession, counted: str, query: str
) -> None:
    ours = session.spark.sql(query.format(t=counted))
    assert "IcebergPyParquetScan" in plan_of(ours)
    _, expected = plainly(session, query.format(t="counted_plain"))
    assert spark_rows(ours.collect()) == expected


def test_deletes_and_a_setting_have_aggregates_read(session: IcebergSession, counted: str) -> None:
    spark = session.spark
    name = "planned.db.deleted_most"
    spark.sql(
        f"create table {name} using iceberg partitioned by (g) {MERGE_ON_READ} "
        f"as select * from {counted}"
    )
    query = f"select max(id), min(id), count(id) from {name} where g = 2"
    assert "IcebergPyParquetScan" not in plan_of(spark.sql(query))
    with configured(spark, {"spark.sql.iceberg.aggregate-push-down.enabled": "false"}):
        assert "IcebergPyParquetScan" in plan_of(spark.sql(query))
    spark.sql(f"delete from {name} where id in (2, 695)")
    assert [tuple(r) for r in spark.sql(query).collect()] == [(688, 9, 98)]
    assert "IcebergPyParquetScan" in plan_of(spark.sql(query))
    other = f"select max(id), count(*) from {name} where g = 3"
    assert "IcebergPyParquetScan" not in plan_of(spark.sql(other)), "these have no deletes"
    by_rows = f"select count(*) from {name}"
    assert "IcebergPyParquetScan" not in plan_of(spark.sql(by_rows))
    assert spark.sql(by_rows).collect()[0][0] == len(spark.table(name).select("g").collect())


DIVIDED = (
    # a query, and how many of the seven files it reads
    ("select count(*), count(t), min(id), max(id), max(t) from {t} where id >= 150", 1),
    ("select count(id) * 2 + min(g) as n from {t} where id between 150 and 620", 2),
    ("select max(n) from (select id + 0 as j, id as n from {t} where id < 250) where n < 240", 1),
    ("select min(id) from {t} where id >= 150 having count(*) > 540", 1),
    ("select g from {t} where id = (select max(id) from {t} where id < 460)", 1 + 7),
)
"""Files have a hundred ids each, in order."""


@pytest.fixture(scope="module")
def divided(session: IcebergSession) -> str:
    session.spark.sql(
        "create table planned.db.divided (id bigint, g int, s string, t timestamp_ntz) "
        f"{MERGE_ON_READ}"
    )
    for first in range(0, 700, 100):
        session.table("planned.db.divided").append(rows(range(first, first + 100)))
    return "divided"


@pytest.mark.parametrize(("query", "read"), DIVIDED)
def test_aggregates_read_only_the_files_that_the_condition_divides(
    session: IcebergSession, divided: str, query: str, read: int
) -> None:
    frame = same(session, query, divided)
    plan = plan_of(frame)
    assert sum(map(int, re.findall(r"IcebergPyParquetScan\((\d+) files", plan))) == read, plan


def test_aggregates_read_only_the_files_that_have_deletes(
    session: IcebergSession, divided: str
) -> None:
    spark = session.spark
    spark.sql(f"create table planned.db.other {MERGE_ON_READ} as select * from plain limit 0")
    for first in range(0, 300, 100):
        session.table("planned.db.other").append(rows(range(first, first + 100)))
    spark.sql("delete from planned.db.other where id in (7, 99)")
    whole = "select min(id), max(id), count(t) from planned.db.other"
    for condition, expected, read in (("", (0, 299, 298), 1), ("where id < 150", (0, 149, 148), 2)):
        frame = spark.sql(f"{whole} {condition}")
        assert [tuple(r) for r in frame.collect()] == [expected]
        assert number(frame, "resultDataFiles") == read
    with configured(spark, {"spark.sql.iceberg.aggregate-push-down.enabled": "false"}):
        assert number(same(session, DIVIDED[0][0], divided), "resultDataFiles") == 6


def test_a_limit_takes_files_enough(session: IcebergSession) -> None:
    make(session, "limited", f"partitioned by (g) {MERGE_ON_READ}")
    spark = session.spark
    few = spark.sql("select id, s from planned.db.limited limit 20")
    assert len(few.collect()) == 20
    assert number(few, "resultDataFiles") == 1
    assert len(few.collect()) == 20
    more = spark.sql("select id from planned.db.limited limit 150")
    assert len(more.collect()) == 150
    assert number(more, "resultDataFiles") == 2
    assert len(spark.sql("select id from planned.db.limited limit 1000").collect()) == 700
    assert len(spark.sql("select id from planned.db.limited limit 20 offset 690").collect()) == 10
    assert spark.sql("select id from planned.db.limited order by id limit 2").collect() == [
        (0,),
        (1,),
    ]
    last = spark.sql("select g from planned.db.limited order by g desc limit 5")
    assert last.collect() == [(6,)] * 5
    assert number(last, "resultDataFiles") == 1, "the partition with the greatest value"
    assert (
        len(spark.sql("select id from planned.db.limited where id > 640 limit 59").collect()) == 59
    )
    spark.sql("delete from planned.db.limited where id < 690")
    assert len(spark.sql("select id from planned.db.limited limit 10").collect()) == 10


TOP_ROWS = (
    # a query, and how many of the seven files it reads
    ("select id from {t} order by id desc limit 5", 1),
    ("select id + 1, id as n from {t} where id >= 0 order by n desc, g limit 100", 1),
    ("select * from {t} where id < 450 order by id desc limit 5", 2),
    ("select x from {t} order by x nulls last limit 5", 1),
    ("select x from {t} order by x limit 5", 4),
    ("select x from {t} order by x desc limit 5", 3),
    ("select x from {t} order by x desc nulls first limit 5", 6),
    ("select t from {t} order by t limit 3 offset 2", 1),
    ("select s from {t} order by s desc limit 5", 1),
    ("select id from {t} where g = 2 order by id desc limit 5", 7),
    ("select id from {t} order by id % 10, id limit 5", 7),
    ("select g, max(id) from {t} group by g order by 2 limit 1", 7),
    ("select id from (select * from {t} order by id desc limit 90) order by id limit 5", 1),
)


@pytest.fixture(scope="module")
def ranges(session: IcebergSession) -> str:
    """Return the name of a table of seven files of 100 numbers, whose rows `ranges_plain` has.

    Of x, every third file has nulls only, and two others have a NaN.
    """
    name = "planned.db.ranges"
    columns = "id bigint, g int, s string, t timestamp_ntz, x double"
    session.spark.sql(f"create table {name} ({columns})")
    parts = []
    for start in range(0, 700, 100):
        ids = range(start, start + 100)
        x = [None if start % 300 == 0 else float(i) for i in ids]
        if start in (100, 400):
            x[-1] = float("nan")
        hours = [datetime(2024, 1, 1) + timedelta(hours=i) for i in ids]
        part = rows(ids).set_column(2, "s", [[f"{i:03}, and a text" for i in ids]])
        part = part.set_column(3, "t", pa.array(hours, pa.timestamp("us")))
        parts.append(part.append_column("x", pa.array(x, pa.float64())))
        session.table(name).append(parts[-1])
    session.spark.createDataFrame(pa.concat_tables(parts)).createOrReplaceTempView("ranges_plain")
    return name


@pytest.mark.parametrize(("query", "files"), TOP_ROWS)
def test_the_first_rows_of_an_order_are_read_from_few_files(
    session: IcebergSession, ranges: str, query: str, files: int
) -> None:
    ours = session.spark.sql(query.format(t=ranges))
    plain = session.spark.sql(query.format(t="ranges_plain"))
    assert str(ours.collect()) == str(plain.collect())
    assert number(ours, "resultDataFiles") == files


def read_schema(plan: str) -> str:
    (result,) = re.findall(r"ReadSchema: struct<(.*?)>", plan)
    return str(result)


@pytest.mark.parametrize(
    ("condition", "residual"),
    [
        ("t >= '2024-01-02' and t < '2024-01-04'", ""),
        ("t >= '2024-01-02' and t < '2024-01-03 12:00:00'", "t"),
        ("t >= '2024-01-02 00:00:00.000001' and t < '2024-01-04'", "t"),
        ("t < '2024-01-03 23:00:01'", ""),
        ("g > -1 and s is not null", ""),
        ("g > 1", "g"),
        ("t >= '2024-01-02' and length(s) > 1", "length"),
        ("not (g < 0 or g > 6)", ""),
        ("s > 's'", ""),
        ("s <= 's3'", "s"),
        ("g <=> 3 or id >= 0", ""),
    ],
)
def test_conditions_that_no_row_can_fail_are_not_evaluated(
    session: IcebergSession, condition: str, residual: str
) -> None:
    spark = session.spark
    hours = (
        "select id, cast(id % 5 as int) g, concat('s', id % 5) s, timestampadd("
        "HOUR, cast(id * 7 % 72 as int), timestamp_ntz'2024-01-01 00:00:00') t from range(700)"
    )
    if not spark.catalog.tableExists("planned.db.proven"):
        spark.sql(hours).createOrReplaceTempView("hours")
        spark.sql(f"create table planned.db.proven partitioned by (days(t)) as {hours}")
    query = f"select sum(id), count(*) from {{}} where {condition}"
    ours = spark.sql(query.format("planned.db.proven"))
    assert spark_rows(ours.collect()) == plainly(session, query.format("hours"))[1]
    plan = plan_of(ours)
    actual = re.findall(r"\) Filter (.*)", plan)
    if residual:
        assert len(actual) == 1
        assert residual in actual[0]
    else:
        assert not actual
        assert read_schema(plan) == "id:bigint"


def test_rows_of_a_file_with_a_null_are_looked_at(session: IcebergSession, counted: str) -> None:
    """The bounds of `id` satisfy the condition, but a null does not, so Spark must filter rows."""
    for condition in ("id >= 0", "not (id < 0)", "id is not null", "d > -100"):
        query = f"select count(*), sum(id), max(f) from {{t}} where {condition}"
        ours = session.spark.sql(query.format(t=counted))
        assert ") Filter " in plan_of(ours)
        _, expected = plainly(session, query.format(t="counted_plain"))
        assert spark_rows(ours.collect()) == expected


def scanned_as_nullable(frame: DataFrame) -> list[bool]:
    """Return, for each column of a query's only scan, whether Spark regards it as nullable."""
    leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    result = leaf.output()
    return [result.apply(i).nullable() for i in range(result.size())]


def test_spark_looks_for_no_nulls_where_no_row_has_one(session: IcebergSession) -> None:
    spark = session.spark
    spark.sql(
        "select id, cast(id % 3 as int) g, if(id % 3 = 0 and id % 2 = 0, null, id) v from range(60)"
    ).createOrReplaceTempView("with_nulls")
    spark.sql("create table planned.db.nulls partitioned by (g) as select * from with_nulls")
    for condition, nullable in (
        ("v is not null", [True]),
        ("v is not null and g > 0", [False]),
        ("v >= 0 and g > 0", [False]),
        ("v > 1 and g > 0", [False]),
        ("coalesce(v, 1) > 0 and g > 0", [True]),
        ("v is null and g > 0", []),
    ):
        query = f"select count(v), count(*), sum(v), max(v + 1) from {{}} where {condition}"
        ours = spark.sql(query.format("planned.db.nulls"))
        if nullable:
            assert scanned_as_nullable(ours) == nullable, condition
        assert spark_rows(ours.collect()) == plainly(session, query.format("with_nulls"))[1]
    joined = "select a.id, b.id from {0} a full join {0} b on a.v = b.id + 1 where a.g is null"
    ours = spark.sql(joined.format("planned.db.nulls"))
    assert spark_rows(ours.collect()) == plainly(session, joined.format("with_nulls"))[1]
    spark.sql(
        "create table planned.db.kept as select v from planned.db.nulls where v > 1 and g > 0"
    )
    for file in session.table("planned.db.kept").scan().plan_files():
        assert pq.read_schema(file.file_path.removeprefix("file:")).field("v").nullable
    spark.sql("alter table planned.db.nulls add column later int")
    spark.sql("insert into planned.db.nulls values (100, 1, 100, 5)")
    ours = spark.sql(
        "select count(later), sum(later) from planned.db.nulls where later is not null"
    )
    assert scanned_as_nullable(ours) == [True]
    assert ours.collect() == [(1, 5)]


@pytest.mark.parametrize("name", ["files", "all_entries", "manifests", "partitions"])
def test_few_manifests_are_read_by_the_driver_and_many_by_tasks(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spark, query = session.spark, f"select * from planned.db.shown.{name}"
    spark.sql(
        "create or replace table planned.db.shown using iceberg partitioned by (g) "
        "as select * from plain"
    )
    few = spark.sql(query)
    assert "MapInArrow" not in plan_of(few)
    monkeypatch.setattr(metadata_tables, "_MAX_MANIFESTS_HERE", 0)
    many = spark.sql(query)
    assert "MapInArrow" in plan_of(many)
    assert sorted(few.collect(), key=repr) == sorted(many.collect(), key=repr) != []
