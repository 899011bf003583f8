"""`spark.read.format("iceberg-py")` on Spark's own reader returns the rows of the portable path."""

import re
from collections.abc import Iterator
from functools import reduce

import pytest
from pyspark.sql import DataFrame

from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake, plan_of
from tests.support.oracle import Oracle
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

EVERY_QUERY = FULL_WORK
"""Whether to run more queries and filters of the same kinds."""

ROWS = "select id, cast(id % 3 as int) g, cast(id as string) s, id * 1.5 d from range(100)"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    oracle.spark.dataSource.register(IcebergDataSource)
    with native_lake(oracle) as installed:
        yield installed


def load(lake: Oracle, name: str, **options: str) -> DataFrame:
    path = str(lake.warehouse / name.replace(".", "/"))
    arguments = {name.replace("_", "-"): value for name, value in options.items()}
    return lake.spark.read.format("iceberg-py").options(**arguments).load(path)


def assert_alike(lake: Oracle, name: str, query: str, **options: str) -> str:
    """Check that native and portable rows of a query of {t} are equal; return the native plan."""
    plans = []
    rows = []
    for native in ("true", "false"):
        load(lake, name, native=native, **options).createOrReplaceTempView("t_" + native)
        frame = lake.spark.sql(query.format(t="t_" + native))
        plans.append(plan_of(frame))
        rows.append(spark_rows(frame.collect()))
    assert rows[0] == rows[1]
    assert "IcebergPyParquetScan" not in plans[1]
    return plans[0]


def read_schemas(plan: str) -> list[str]:
    return re.findall(r"ReadSchema: struct<(.*?)>", plan)


def test_columns_are_pruned_and_the_portable_path_gives_the_same(lake: Oracle) -> None:
    name = "source.plain"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} using iceberg partitioned by (g) as " + ROWS)
    plan = assert_alike(lake, name, "select s from {t} where id > 90 and g = 1")
    # g is the partition column: it is constant per file and not read.
    assert read_schemas(plan) == ["id:bigint,s:string"]
    assert "PushedFilters: [GreaterThan(id,90)]" in plan
    assert read_schemas(assert_alike(lake, name, "select count(*) from {t}")) == []
    assert read_schemas(assert_alike(lake, name, "select sum(d) from {t}")) == ["d:decimal(23,1)"]
    assert "IcebergPyParquetScan" in assert_alike(lake, name, "select * from {t}")
    # The query's filter prunes files; filters above a join of two relations stay above it.
    assert len(load(lake, name).filter("g = 1").inputFiles()) == 1
    joined = "select a.s, b.d from {t} a join {t} b on a.id = b.id where a.g = 2 or b.id < 5"
    assert read_schemas(assert_alike(lake, name, joined))
    assert_alike(lake, name, "select id from {t} where id = (select max(id) from {t})")
    if EVERY_QUERY:
        plan = assert_alike(lake, name, "select count(d * 0) from {t}")
        assert read_schemas(plan) == ["d:decimal(23,1)"]
        groups = "select g, count(*), max(s) from {t} group by g having g > 0"
        assert read_schemas(assert_alike(lake, name, groups)) == ["s:string"]
        assert_alike(lake, name, "select * from {t} where rand(7) < 2 and id < 5")


def test_a_frame_keeps_its_snapshot_and_options_choose_one(lake: Oracle) -> None:
    name = "source.pinned"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} (id bigint) using iceberg")
    lake.sql(f"insert into {table} values (1)")
    frame = load(lake, name)
    (first,) = lake.sql(f"select snapshot_id from {table}.snapshots").collect()
    lake.sql(f"alter table {table} create tag one")
    lake.sql(f"alter table {table} create branch side")
    lake.sql(f"insert into {table}.branch_side values (3)")
    lake.sql(f"insert into {table} values (2)")
    for query in (frame, frame.filter("id < 5"), frame.select("id")):
        assert "IcebergPyParquetScan" in plan_of(query)
        assert [r.id for r in query.collect()] == [1]
    assert load(lake, name).count() == 2
    assert load(lake, name, snapshot_id=str(first[0])).count() == 1
    assert load(lake, name, tag="one").count() == 1
    assert sorted(r.id for r in load(lake, name, branch="side").collect()) == [1, 3]
    together = load(lake, name).union(load(lake, name, tag="one"))
    assert sorted(r.id for r in together.collect()) == [1, 1, 2]


FILTERS = (
    "id = 3",
    "v <> 'a'",
    "v is null",
    "not (v = 'a' or id > 3)",
    "v in ('a', 'it\\'s')",
    "v not in ('a', 'b')",
    "v like 'i%'",
    "v not like 'i%'",
    "f > 1.0",
    "f <= 0.0",
    "isnan(f)",
    "not isnan(f)",
    "m = 1.50",
    "t < '2020-01-02T00:00:00+00:00'",
    "dt >= '2020-01-02'",
    "b = true",
    "n.x = 1",
    "u = X'00ff'",
)


def test_the_filter_option_selects_rows(lake: Oracle) -> None:
    name = "source.filtered"
    table = f"java_hadoop.{name}"
    lake.sql(
        f"create table {table} (id int, v string, f double, m decimal(10, 2), t timestamp, "
        "dt date, b boolean, n struct<x: int, y: int>, u binary) using iceberg"
    )
    lake.sql(
        f"insert into {table} values "
        "(1, 'a', 1.0, 1.50, timestamp'2020-01-01 00:00:00', date'2020-01-01', true, "
        "named_struct('x', 1, 'y', 2), X'00FF'), "
        "(2, null, double('NaN'), null, null, null, null, null, null), "
        "(3, 'it''s', double('-0.0'), 2.50, timestamp'2020-01-03 00:00:00', date'2020-01-03', "
        "false, named_struct('x', null, 'y', 2), X''), "
        "(null, 'b', null, 1.50, timestamp'2020-01-02 00:00:00', date'2020-01-02', true, "
        "named_struct('x', 1, 'y', null), null)"
    )
    pairs = list(zip(FILTERS[::2], FILTERS[1::2], strict=True))[:: 1 if EVERY_QUERY else 2]
    filters = [f"{first} or {second}" for first, second in pairs]
    native, portable = (
        reduce(
            DataFrame.union,
            [
                load(lake, name, native=on, filter=text).selectExpr(f"{i} as pair", "v", "m")
                for i, text in enumerate(filters)
            ],
        )
        for on in ("true", "false")
    )
    scans = plan_of(native).count("IcebergPyParquetScan")
    assert scans == len(pairs) - 1, "nested and binary columns have no exact condition"
    assert "IcebergPyParquetScan" not in plan_of(portable)
    native_rows, portable_rows = (spark_rows(f.collect()) for f in (native, portable))
    assert native_rows == portable_rows
    assert {row[0] for row in native_rows} == set(range(len(pairs)))
    lake.sql(f"alter table {table} rename column v to w")
    lake.sql(f"alter table {table} add column v string")
    lake.write_equality_deletes(table, ["id"], [(3,)])
    assert "MapInArrow" not in assert_alike(lake, name, "select f from {t}", filter="w <> 'a'")
    assert_alike(lake, name, "select * from {t}", filter="v is null and id > 0")


def test_columns_and_other_options(lake: Oracle) -> None:
    name = "source.options"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} using iceberg as select id, named_struct('a', id, 'b', 'x') n, "
             "'s' S from range(10)")  # fmt: skip
    plan = assert_alike(lake, name, "select * from {t}", columns="n.a,id,_file,_pos,_spec_id")
    assert "IcebergPyParquetScan" in plan
    assert_alike(lake, name, "select _pos from {t} where id = 3", columns="n.a,id,_pos")
    assert_alike(lake, name, "select s from {t}", split_size="1", case_sensitive="false")
    reader = lake.spark.read.format("iceberg-py").schema("s string, id bigint")
    frame = reader.load(str(lake.warehouse / "source/options"))
    assert "IcebergPyParquetScan" in plan_of(frame)
    assert frame.columns == ["s", "id"]
    assert sorted(r.id for r in frame.collect()) == list(range(10))


def test_a_small_remainder_of_a_table_is_broadcast(lake: Oracle) -> None:
    name = "source.sized"
    table = f"java_hadoop.{name}"
    lake.sql(f"create table {table} using iceberg partitioned by (g) as " + ROWS)
    frame = load(lake, name)
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    small = frame.filter("g = 1")
    part = small._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert part < size / 2
    lake.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str((part + size) // 2))
    try:
        other = lake.spark.range(10**6).withColumnRenamed("id", "x")
        assert "BroadcastHashJoin" in plan_of(other.join(small, other.x == small.id))
        assert "SortMergeJoin" in plan_of(other.join(frame, other.x == frame.id))
    finally:
        lake.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
