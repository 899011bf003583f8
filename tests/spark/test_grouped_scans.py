"""Joins of tables with equal partitioning need no shuffle; transforms are catalog functions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.native_read import deleted_rows
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.transforms import Transform, apply_transform, parse_transform
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
)
from tests.amounts import FULL_WORK
from tests.support.deleted_rows import delete_keys
from tests.support.native_lake import plan_of, sqlite_lake
from tests.support.parameters import cases, pairs
from tests.support.readings import INTERPRETED
from tests.support.rows import PlainRow, spark_rows
from tests.support.spark_settings import JOINS_OF_GROUPS, configured

SETTINGS = {**JOINS_OF_GROUPS, "spark.sql.session.timeZone": "America/Los_Angeles"}
ROWS = """
    select id, cast(id % 5 as int) g, concat('s', id % 11) s,
           timestampadd(HOUR, cast(id * 5 as int), timestamp'2024-01-01 00:00:00') t
    from range({}, {})
"""
MERGE_ON_READ = "tblproperties ('write.delete.mode'='merge-on-read')"
_plain_rows: dict[str, list[PlainRow]] = {}


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("grouped")
    with configured(spark, SETTINGS), sqlite_lake(spark, folder, "grouped") as lake:
        spark.sql(ROWS.format(0, 300)).createOrReplaceTempView("left_plain")
        spark.sql(ROWS.format(100, 500)).createOrReplaceTempView("right_plain")
        yield lake


def make(session: IcebergSession, name: str, view: str, clauses: str, where: str = "") -> None:
    """Create a table with the rows of a view, all or those of a condition."""
    spark = session.spark
    columns = [f"{c.name} {c.dataType.simpleString()}" for c in spark.table(view).schema]
    spark.sql(f"create table grouped.db.{name} ({', '.join(columns)}) {clauses}")
    append(session, name, view, where)


def append(session: IcebergSession, name: str, view: str, where: str) -> None:
    frame = session.spark.table(view)
    with configured(session.spark, INTERPRETED):
        rows = (frame.where(where) if where else frame).toArrow()
    session.table(f"grouped.db.{name}").append(rows)


def exchanges(plan: str) -> int:
    return plan.count("Exchange ")


def joined(session: IcebergSession, left: str, right: str, on: str) -> str:
    """Check that a join of two tables equals the join of plain rows; return its plan."""
    query = "select a.id, b.id, a.s, b.g from {} a join {} b on " + on
    ours = session.spark.sql(query.format(f"grouped.db.{left}", f"grouped.db.{right}"))
    plain = query.format("left_plain", "right_plain")
    assert spark_rows(ours.collect()) == plainly(session.spark, plain)
    return plan_of(ours)


def plainly(spark: SparkSession, query: str) -> list[PlainRow]:
    """Return the rows of a query of plain rows as Spark's interpreter has them."""
    if query not in _plain_rows:
        with configured(spark, INTERPRETED):
            _plain_rows[query] = spark_rows(spark.sql(query).collect())
    return _plain_rows[query]


@cases(
    ("partitioned", "on"),
    fast=[("bucket(4, id)", "a.id = b.id"), ("days(t)", "a.t = b.t")],
    nightly=[
        ("g", "a.g = b.g"),
        ("g, bucket(3, s)", "a.g = b.g and a.s = b.s"),
        ("bucket(4, s)", "a.s = b.s"),
        ("s", "a.s = b.s"),
        ("years(t)", "a.t = b.t"),
        ("months(t)", "a.t = b.t"),
    ],
)
def test_tables_partitioned_alike_are_joined_without_a_shuffle(
    session: IcebergSession, partitioned: str, on: str
) -> None:
    name = "".join(c if c.isalnum() else "_" for c in partitioned)
    for side in ("left", "right"):
        make(session, f"{side}_{name}", f"{side}_plain", f"partitioned by ({partitioned})")
    plan = joined(session, f"left_{name}", f"right_{name}", on)
    assert exchanges(plan) == 0, plan
    session.spark.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", "false")
    plan = joined(session, f"left_{name}", f"right_{name}", on)
    session.spark.conf.set("spark.sql.iceberg.planning.preserve-data-grouping", "true")
    assert exchanges(plan) == 2


def tasks(session: IcebergSession, query: str) -> int:
    return session.spark.sql(query).rdd.getNumPartitions()


def groups(session: IcebergSession, query: str) -> set[bool]:
    """Return whether the scans of a query tell Spark of groups."""
    result = session.spark.sql(query)._jdf.queryExecution().executedPlan().collectLeaves()
    leaves = [result.apply(i) for i in range(result.size())]
    scans = [leaf for leaf in leaves if leaf.getClass().getSimpleName() == "BatchScanExec"]
    return {"Unknown" not in s.outputPartitioning().getClass().getName() for s in scans}


BY_EXPRESSION = (
    "select g + 1, count(*) from {} group by g + 1",
    "select k, max(x) from (select g * 2 k, id x from {}) group by k",
    "select a.id, b.id n from {} a join {} b on a.g + 1 = b.g + 1 and a.id = b.id",
)
OF_A_KEY = [
    "select k, max(x) from (select g k, id + 1 x from {} where id > 3) group by k",
    "select id, row_number() over (partition by g order by id) from {}",
    "select a.id, b.id from (select id, g k from {}) a join right_g b on a.k = b.h",
]
if FULL_WORK:
    OF_A_KEY += [
        "select g, sum(id) from {} group by g",
        "select id from {} where g in (select h from right_g)",
    ]


@pytest.mark.nightly
def test_files_are_grouped_only_where_the_plan_wants_rows_of_a_key_together(
    session: IcebergSession,
) -> None:
    for side in ("left", "right"):
        make(session, f"use_{side}", f"{side}_plain", "partitioned by (g)")
    assert tasks(session, "select id + 1 from grouped.db.use_left where s <> 's1'") < 5
    assert tasks(session, "select g, id from grouped.db.use_left where g < 4") < 4
    assert groups(session, "select g, sum(id) from grouped.db.use_left group by g") == {True}
    for by_expression in BY_EXPRESSION:
        query = by_expression.format(*2 * ["grouped.db.use_left"])
        assert groups(session, query) == {False}, query
        assert spark_rows(session.spark.sql(query).collect()) == plainly(
            session.spark, by_expression.format(*2 * ["left_plain"])
        )
    by_another = "select s, sum(id), min(g) from grouped.db.use_left group by s"
    assert exchanges(plan_of(session.spark.sql(by_another))) == 1
    for query in OF_A_KEY:
        ours = query.replace("right_g", "(select g h, id from grouped.db.use_right)")
        plain = query.replace("right_g", "(select g h, id from right_plain)")
        frame = session.spark.sql(ours.format("grouped.db.use_left"))
        assert exchanges(plan_of(frame)) == 0, plan_of(frame)
        assert spark_rows(frame.collect()) == plainly(session.spark, plain.format("left_plain"))
    # If the rows of one side are not grouped, the join shuffles or broadcasts them.
    one_sided = "select a.id, b.id from {} a join right_plain b on a.g = b.g where b.id < 103"
    frame = session.spark.sql(one_sided.format("grouped.db.use_left"))
    with configured(session.spark, {"spark.sql.autoBroadcastJoinThreshold": "10MB"}):
        filtered = session.spark.sql(one_sided.format("grouped.db.use_left"))
        assert "dynamicpruning" in plan_of(filtered)
        assert filtered.rdd.getNumPartitions() < 4
    with configured(session.spark, {"spark.sql.sources.v2.bucketing.shuffle.enabled": "true"}):
        shuffled = session.spark.sql(one_sided.format("grouped.db.use_left"))
        assert exchanges(plan_of(shuffled)) == 1, plan_of(shuffled)
        expected = plainly(session.spark, one_sided.format("left_plain"))
        for rows in (frame, filtered, shuffled):
            assert spark_rows(rows.collect()) == expected
    union = "(select g, id from {0} union all select g, id from {1})"
    query = f"select a.id, b.id from {union} a join {{1}} b on a.g = b.g"
    frame = session.spark.sql(query.format("grouped.db.use_left", "grouped.db.use_right"))
    expected = plainly(session.spark, query.format("left_plain", "right_plain"))
    assert spark_rows(frame.collect()) == expected


CUT_ROWS = """
    select id, cast(id - 60 as int) i, id * 7 - 300 l, concat('ñandú', id % 30, 'x') s,
           cast(concat('b', id % 30) as binary) b, cast((id - 60) / 4 as decimal(9, 2)) d,
           cast(id % 3 as int) g
    from range({}, {})
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("partitioned", "on"),
    [
        ("truncate(50, d)", "a.d = b.d"),
        ("bucket(3, i), truncate(6, s)", "a.i = b.i and a.s = b.s"),
        ("truncate(6, s)", "a.s = b.s"),
        ("truncate(2, b)", "a.b = b.b"),
        ("truncate(10, i)", "a.i = b.i"),
        ("truncate(50, l)", "a.l = b.l"),
        ("truncate(4, s)", "a.s = b.s"),
        ("g, truncate(6, s)", "a.g = b.g and a.s = b.s"),
    ],
)
def test_tables_cut_alike_are_joined_without_a_shuffle(
    session: IcebergSession, partitioned: str, on: str
) -> None:
    spark = session.spark
    names = []
    for side, (start, end) in {"left": (0, 150), "right": (40, 260)}.items():
        spark.sql(CUT_ROWS.format(start, end)).createOrReplaceTempView(f"{side}_cut")
        names.append(side + "".join(c if c.isalnum() else "_" for c in partitioned))
        make(session, names[-1], f"{side}_cut", f"partitioned by ({partitioned})")
    spark.sql(f"insert into grouped.db.{names[0]} select -1, null, null, null, null, null, null")
    query = f"select a.id, b.id, a.s, b.d from {{}} a {{}} join {{}} b on {on}"
    for how in ("", "left"):
        ours = spark.sql(query.format(f"grouped.db.{names[0]}", how, f"grouped.db.{names[1]}"))
        left = "(select * from left_cut union all select -1, null, null, null, null, null, null)"
        assert spark_rows(ours.collect()) == plainly(spark, query.format(left, how, "right_cut"))
        assert exchanges(plan_of(ours)) == 0, plan_of(ours)


@pytest.mark.nightly
def test_tables_cut_otherwise_are_shuffled(session: IcebergSession) -> None:
    make(session, "cut_to_two", "left_plain", "partitioned by (truncate(2, s))")
    make(session, "cut_to_three", "right_plain", "partitioned by (truncate(3, s))")
    make(session, "not_cut", "right_plain", "partitioned by (s)")
    assert exchanges(joined(session, "cut_to_two", "cut_to_three", "a.s = b.s")) > 0
    assert exchanges(joined(session, "cut_to_two", "not_cut", "a.s = b.s")) > 0


@pytest.mark.nightly
def test_tables_cut_alike_are_merged(session: IcebergSession) -> None:
    make(session, "cut_target", "left_plain", "partitioned by (truncate(2, s))")
    make(session, "cut_source", "right_plain", "partitioned by (truncate(2, s))")
    session.spark.sql(
        "merge into grouped.db.cut_target t using grouped.db.cut_source u "
        "on t.s = u.s and t.id = u.id when matched then update set g = -1 "
        "when not matched then insert *"
    )
    values = {r.id: r.g for r in session.spark.table("grouped.db.cut_target").collect()}
    assert values == {i: -1 if 100 <= i < 300 else i % 5 for i in range(500)}


def test_other_functions_or_columns_are_shuffled(session: IcebergSession) -> None:
    make(session, "by_four", "left_plain", "partitioned by (bucket(4, id))")
    make(session, "by_three", "right_plain", "partitioned by (bucket(3, id))")
    make(session, "by_text", "right_plain", "partitioned by (bucket(4, s))")
    assert exchanges(joined(session, "by_four", "by_three", "a.id = b.id")) > 0
    assert exchanges(joined(session, "by_four", "by_text", "a.id = b.id")) > 0


def test_deleted_rows_stay_deleted_in_groups(session: IcebergSession) -> None:
    clauses = f"partitioned by (bucket(4, id)) {MERGE_ON_READ}"
    make(session, "left_deleted", "left_plain", clauses)
    make(session, "right_deleted", "right_plain", "partitioned by (bucket(4, id))")
    spark = session.spark
    spark.sql("delete from grouped.db.left_deleted where id % 3 = 0")
    query = "select a.id from grouped.db.left_deleted a join grouped.db.right_deleted b using (id)"
    frame = spark.sql(query)
    assert exchanges(plan_of(frame)) == 0
    assert sorted(r.id for r in frame.collect()) == [i for i in range(100, 300) if i % 3]


def test_scans_with_different_keys_are_shuffled(session: IcebergSession) -> None:
    """Files of another partition spec lack the key, and days before 1970 may be wrong."""
    spark = session.spark
    make(session, "keyed", "left_plain", "")
    table = session.table("grouped.db.keyed")
    delete_keys(table, "id", [101, 102])
    table.refresh().update_spec().add_field("id", "bucket[4]").commit()
    spark.sql("insert into grouped.db.keyed select * from left_plain where id = 101")
    make(session, "right_keyed", "right_plain", "partitioned by (bucket(4, id))")
    query = "select a.id from grouped.db.keyed a join grouped.db.right_keyed b using (id)"
    frame = spark.sql(query)
    assert exchanges(plan_of(frame)) > 0
    assert sorted(r.id for r in frame.collect()) == [100, 101, *range(103, 300)]
    for name in ("old", "old_too"):
        spark.sql(
            f"create table grouped.db.{name} using iceberg partitioned by (days(t)) as "
            "select id, timestampadd(HOUR, cast(id * 5 as int), timestamp'1969-12-20 00:00:00') t "
            "from range(100)"
        )
    frame = spark.sql("select a.id from grouped.db.old a join grouped.db.old_too b using (t)")
    assert exchanges(plan_of(frame)) > 0
    assert frame.count() == 100


def test_scan_with_files_read_by_python_is_not_grouped(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleted_rows, "MAX_TOTAL_BYTES", 0)
    clauses = f"partitioned by (bucket(4, id)) {MERGE_ON_READ}"
    make(session, "left_read", "left_plain", clauses)
    make(session, "right_read", "right_plain", clauses)
    session.spark.sql("delete from grouped.db.left_read where id = 101")
    query = "select a.id from grouped.db.left_read a join grouped.db.right_read b using (id)"
    frame = session.spark.sql(query)
    assert "MapInArrow" in plan_of(frame)
    assert exchanges(plan_of(frame)) > 0
    assert sorted(r.id for r in frame.collect()) == [100, *range(102, 300)]


@pytest.mark.nightly
def test_filters_known_while_a_query_runs_leave_groups(session: IcebergSession) -> None:
    make(session, "left_pruned", "left_plain", "partitioned by (g)")
    make(session, "right_pruned", "right_plain", "partitioned by (g)")
    query = (
        "select a.id, b.id from {} a join {} b on a.g = b.g "
        "where a.g in (1, 3) and a.id % 50 = 1 and b.id % 50 = 3"
    )
    ours = session.spark.sql(query.format("grouped.db.left_pruned", "grouped.db.right_pruned"))
    assert exchanges(plan_of(ours)) == 0
    plain = query.format("left_plain", "right_plain")
    assert spark_rows(ours.collect()) == plainly(session.spark, plain)


VALUES: list[tuple[str, Type, list[Any]]] = [
    ("int", IntegerType(), [0, 7, -13, 2**31 - 1, -(2**31) + 2]),
    ("bigint", LongType(), [0, 34, -1, 2**63 - 1, -(2**63) + 2]),
    ("string", StringType(), ["", "iceberg", "\u00e9t\u00e9 \U0001f600 long enough"]),
    ("binary", BinaryType(), [b"", b"\x00\x01\x02\x03", bytes(range(200))]),
    ("decimal(9, 2)", DecimalType(9, 2), [Decimal("14.20"), Decimal("-0.01"), Decimal("0.00")]),
    ("date", DateType(), [date(2017, 11, 16), date(1970, 1, 1), date(1969, 12, 31)]),
    (
        "timestamp",
        TimestamptzType(),
        [
            datetime(2017, 11, 16, 22, 31, 8, 5, tzinfo=timezone.utc),
            datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc),
            datetime(2024, 3, 10, 10, 30, tzinfo=timezone.utc),
        ],
    ),
    ("timestamp_ntz", TimestampType(), [datetime(2017, 11, 16, 22, 31, 8), datetime(1960, 2, 29)]),
]
CALLS = {
    "bucket": ("bucket(16, {})", "bucket[16]"),
    "truncate": ("truncate(3, {})", "truncate[3]"),
    "years": ("years({})", "year"),
    "months": ("months({})", "month"),
    "days": ("days({})", "day"),
    "hours": ("hours({})", "hour"),
}
NOT_KNOWN = {"date": ("hours",)}


def physical(value: Any) -> Any:
    """Return a value in the specification's physical form: days or microseconds since 1970."""
    if isinstance(value, datetime):
        zone = timezone.utc if value.tzinfo is None else value.tzinfo
        delta = value.replace(tzinfo=zone) - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(
    ("sql", "type_", "values"),
    [
        pytest.param(*v, id=v[0], marks=() if v[0] == "string" else pytest.mark.nightly)
        for v in VALUES
    ],
)
def test_transforms_are_functions_of_the_catalog(
    session: IcebergSession, sql: str, type_: Type, values: list[Any]
) -> None:
    spark = session.spark
    inputs = [*values, None]
    rows = spark.createDataFrame(list(enumerate(inputs)), f"i int, v {sql}")
    rows.repartition(2).createOrReplaceTempView("given_values")
    times = isinstance(type_, DateType | TimestampType | TimestamptzType)
    for name, (call, text) in CALLS.items():
        if (name not in ("bucket", "truncate") and not times) or (name == "truncate" and times):
            continue
        if name in NOT_KNOWN.get(sql, ()):
            with pytest.raises(AnalysisException, match="is not known"):
                spark.sql(f"select grouped.system.{call.format('v')} from given_values")
            continue
        transform: Transform = parse_transform(text)
        frame = spark.sql(f"select i, grouped.system.{call.format('v')} r from given_values")
        for row in frame.collect():
            expected = apply_transform(transform, type_, physical(inputs[row.i]))
            assert physical(row.r) == expected, (call, inputs[row.i])


def test_functions_of_literals_and_unknown_ones(session: IcebergSession) -> None:
    spark = session.spark
    assert spark.sql("select grouped.system.bucket(16, 34L)").collect()[0][0] == 3
    assert spark.sql("select grouped.system.days(date'2020-01-02')").collect()[0][0] == date(
        2020, 1, 2
    )
    with pytest.raises(AnalysisException):
        spark.sql("select grouped.system.nothing(1)")
    with pytest.raises(AnalysisException, match="takes a number and a column"):
        spark.sql("select grouped.system.bucket(1)")
    names = {r[0] for r in spark.sql("show user functions in grouped.system").collect()}
    assert "grouped.system.bucket" in names


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("partitioned", "key", "shuffles"), [("bucket(4, id)", "id", 2), ("g", "g", 1)]
)
def test_one_side_is_shuffled_by_keys_that_executors_know(
    session: IcebergSession, partitioned: str, key: str, shuffles: int
) -> None:
    make(session, f"shuffled_{key}", "left_plain", f"partitioned by ({partitioned})")
    query = f"select a.id, b.id from {{}} a join right_plain b on a.{key} = b.{key}"
    with configured(session.spark, {"spark.sql.sources.v2.bucketing.shuffle.enabled": "true"}):
        ours = session.spark.sql(query.format(f"grouped.db.shuffled_{key}"))
        assert exchanges(plan_of(ours)) == shuffles
        assert spark_rows(ours.collect()) == plainly(session.spark, query.format("left_plain"))


@pytest.fixture
def partial(session: IcebergSession) -> Iterator[None]:
    """Spread large groups over several tasks, each joined with the other side's whole group."""
    settings = {
        "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": "true",
        "spark.sql.iceberg.read.split-size": "1",
    }
    with configured(session.spark, settings):
        yield


HOW = ["inner", "left", "right", "full", "left semi", "left anti"]


@pytest.mark.nightly
@pytest.mark.usefixtures("partial")
@pytest.mark.parametrize(
    ("partitioned", "how"),
    pairs(["g", "bucket(4, id)"], HOW),
)
def test_large_groups_are_spread_over_tasks(
    session: IcebergSession, partitioned: str, how: str
) -> None:
    spark, key = session.spark, "g" if partitioned == "g" else "id"
    names = [f"{side}_p_{key}_{how.replace(' ', '_')}" for side in ("left", "right")]
    for name, side in zip(names, ("left", "right"), strict=True):
        clauses = f"partitioned by ({partitioned}) {MERGE_ON_READ}"
        make(session, name, f"{side}_plain", clauses, "id % 2 = 0")
        append(session, name, f"{side}_plain", "id % 2 = 1")
        spark.sql(f"delete from grouped.db.{name} where id % 10 = 3")
    columns = "a.id, a.s" if how in ("left semi", "left anti") else "a.id, b.id, a.s, b.s"
    query = f"select {columns} from {{}} a {how} join {{}} b on a.{key} = b.{key}"
    ours = spark.sql(query.format(*(f"grouped.db.{name}" for name in names)))
    subquery = "(select * from {}_plain where id % 10 != 3)"
    plain = query.format(subquery.format("left"), subquery.format("right"))
    assert spark_rows(ours.collect()) == plainly(spark, plain)
    assert exchanges(plan_of(ours)) == 0
    groups = 5 if key == "g" else 4
    # A full join can split neither side over several tasks, a left join not its smaller side.
    assert (ours.rdd.getNumPartitions() > groups) is (how not in ("full", "left"))
    counted = "select {k}, count(*), sum(n) from (select a.{k}, a.id n from {l} a {how} join {r} b "
    counted += "on a.{k} = b.{k}) group by {k}"
    ours = spark.sql(
        counted.format(k=key, how=how, l=f"grouped.db.{names[0]}", r=f"grouped.db.{names[1]}")
    )
    plain = counted.format(k=key, how=how, l=subquery.format("left"), r=subquery.format("right"))
    assert spark_rows(ours.collect()) == plainly(spark, plain)
