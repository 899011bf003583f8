"""Conditions that skip row groups of ORC files lose no rows: Java, Python and Spark agree."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake, plan_of
from tests.support.oracle import Oracle
from tests.support.parameters import pairs

pytestmark = pytest.mark.nightly

ROWS = 60_000
SEEDS = [0, 1, 2, *(pytest.param(seed) for seed in range(3, 12))]
# The tables of a seed's conditions, one after the other.
TABLES_OF_A_SEED = ["plain_java", "striped_java", "bloomed_ours", "parted_ours"]
if FULL_WORK:
    TABLES_OF_A_SEED += ["plain_ours", "striped_ours", "bloomed_java", "parted_java"]
DIGEST = "count(*), sum(id), bit_xor(xxhash64(id, i, s, day, c, flag, raw, st))"
# The texts have different lengths and increase with the id, so bounds of row groups separate some
# of them.
TEXTS = [
    "", "A", "Z", "a", "a ", "aa", "m", "z" * 40, "\u00e9", "\u00ff", "\u4e2d", "\ud7ff", "\ue000",
    "\ufffd", "\U00010000", "\U0001f600", "\U0001f600a", "\U0010ffff",
]  # fmt: skip
ZERO_KINDS = "case id % 5 when 0 then 0.0d when 1 then -0.0d when 2 then double('nan') else id end"
SPREAD = (
    "select id, if(id % 11 = 0, null, cast(id div 7 as int)) i, "
    f"element_at(array({', '.join(repr(t) for t in TEXTS)}), "
    f"cast(id * {len(TEXTS)} div {ROWS} as int) + 1) s, "
    "date_add(date'1960-01-01', cast(id div 5 as int)) day, "
    f"if(id < 20000, {ZERO_KINDS}, if(id % 2 = 0, double('nan'), -id / 8)) d, "
    "cast(id / 8 as decimal(20, 3)) c, id % 40000 < 20000 flag, "
    "cast(cast(id as string) as binary) raw, "
    "if(id < 30000, null, named_struct('x', if(id % 3 = 0, null, id))) st "
    f"from range(0, {ROWS}, 1, 1)"
)
BOUNDS_OF_DAYS = {
    "write.metadata.metrics.default": "none",
    "write.metadata.metrics.column.day": "full",
}
"""Without bounds of the day column, Python workers would read the table."""
TABLES = {
    "plain": ("", {}),
    "striped": (
        "",
        {"write.orc.stripe-size-bytes": "200000", "write.orc.compression-codec": "zstd"},
    ),
    "bloomed": (
        "",
        {
            "write.orc.bloom.filter.columns": "id,i,s,day,d,c",
            "write.orc.compression-codec": "snappy",
            **BOUNDS_OF_DAYS,
        },
    ),
    "parted": ("partitioned by (flag)", BOUNDS_OF_DAYS),
}

WITHOUT_ROWS_IN_GROUPS = [
    ("id = 31234", 10_000),
    ("id = 31234 and s is not null", 10_000),
    ("id in (5, 31234)", 20_000),
    ("id > 49999 or id < 10", 20_000),
    ("i between 2000 and 2001", 20_000),
    ("s = 'A' and d > 0", 20_000),
    ("s > 'y' and s < '\u00ff'", 30_000),
    ("day = date'1960-01-02'", 10_000),
    ("day > date'1990-01-01'", 20_000),
    ("day in (date'1960-01-02', date'1960-02-02')", 10_000),
    ("id < 20000 and not (s = 'm')", 20_000),
]
"""Conditions, with the most rows that the groups of rows have that must be read for them."""
COMPARED_OTHERWISE = [
    "s = '\ue000'",
    "s = '\U0001f600'",
    "s >= '\U00010000'",
    "s < '\U00010000'",
    "s in ('\ufffd', '\U0010ffff')",
    "d = 0.0d",
    "d = -0.0d",
    "d <= -0.0d and d >= 0.0d",
    "d > 1e300d",
    "d = double('nan')",
    "st.x is null",
    "st.x is null and id < 30000",
    "st.x < 30100",
    "i is null",
    "not (i is not null and id > 10)",
    "i <=> null",
    "day < date'1582-10-05' or id = 3",
    "day <> date'1960-01-01' and id < 10",
    "c = 3.125",
]


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        installed.sql(SPREAD).write.parquet(str(installed.warehouse / "spread"))
        copy = installed.spark.read.parquet(str(installed.warehouse / "spread")).coalesce(1)
        copy.cache().createOrReplaceTempView("spread")
        installed.sql("create namespace java_hadoop.filters")
        # Spark's cache skips batches too, and loses some NaN rows, so turn that off.
        pruning = "spark.sql.inMemoryColumnarStorage.partitionPruning"
        installed.spark.conf.set(pruning, "false")
        yield installed
        installed.spark.conf.unset(pruning)
        copy.unpersist()


def make(lake: Oracle, name: str) -> str:
    """Return the name in our catalog of a table; create it unless another test has."""
    table = f"lake.filters.{name}"
    if lake.spark.catalog.tableExists(table):
        return table
    kind, _, writer = name.partition("_")
    partitioned, properties = TABLES[kind]
    options = {"write.format.default": "orc", "format-version": "2"} | properties
    text = ", ".join(f"'{k}'='{v}'" for k, v in options.items())
    written, using = table, ""
    if writer == "java":
        written, using = f"java_hadoop.filters.{name}", "using iceberg"
    lake.sql(
        f"create table {written} (id bigint, i int, s string, day date, d double, "
        "c decimal(20, 3), flag boolean, raw binary, st struct<x: bigint>) "
        f"{using} {partitioned} tblproperties ({text})"
    )
    lake.sql(f"insert into {written} select * from spread")
    return table


def expected_digests(lake: Oracle, conditions: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return for each condition the digest of the rows of the plain copy, all from one query."""
    aggregates = ", ".join(
        f"{part} filter (where {condition})"
        for condition in conditions
        for part in DIGEST.split(", ", 2)
    )
    values = tuple(lake.sql(f"select {aggregates} from spread").first() or ())
    return {condition: values[3 * i : 3 * i + 3] for i, condition in enumerate(conditions)}


@pytest.fixture(scope="module")
def digests(lake: Oracle) -> dict[str, tuple[Any, ...]]:
    """Return the expected digest for each condition that is not random."""
    conditions = [condition for condition, _ in WITHOUT_ROWS_IN_GROUPS]
    return expected_digests(lake, [*conditions, *COMPARED_OTHERWISE])


def digest_of(lake: Oracle, table: str, condition: str) -> tuple[Any, ...]:
    return tuple(lake.sql(f"select {DIGEST} from {table} where {condition}").first() or ())


def read(lake: Oracle, table: str, condition: str) -> int:
    """Return the number of rows that our scan outputs, before Spark evaluates the condition."""
    frame = lake.sql(f"select id from {table} where {condition}")
    plan = plan_of(frame)
    assert "IcebergPyOrcScan" in plan
    assert "MapInArrow" not in plan
    frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    assert leaves.size() == 1
    return int(leaves.head().metrics().get("numOutputRows").get().value())


def assert_found(lake: Oracle, table: str, condition: str, digest: tuple[Any, ...]) -> None:
    """Check that the rows are those of a copy from which nothing is skipped, by their digest."""
    ours = lake.sql(f"select id from {table} where {condition}")
    assert "IcebergPyOrcScan" in plan_of(ours)
    assert digest_of(lake, table, condition) == digest, condition


def compared(choose: random.Random) -> str:
    """Return a random comparison, which ORC's filters may or may not support."""
    column = choose.choice(["id", "id", "i", "s", "s", "day", "day", "d", "c", "flag", "st.x"])
    place = choose.choice([0, 1, choose.randrange(ROWS), choose.randrange(ROWS), ROWS, -5])
    match column:
        case "id" | "st.x":
            value = str(place)
        case "i":
            value = str(place // 7)
        case "s":
            value = repr(choose.choice(TEXTS))
        case "day":
            year = choose.choice(["1400-01-01", "1582-10-10", "9999-12-31"])
            near = f"date_add(date'1960-01-01', {place // 5})"
            value = choose.choice([near, near, near, f"date'{year}'"])
        case "d":
            value = choose.choice(["0.0d", "-0.0d", "double('nan')", f"{place}.0d", "-250.5d"])
        case "c":
            value = choose.choice([f"{place / 8:.3f}", f"{place}", "0.000"])
        case _:
            value = choose.choice(["true", "false"])
    match choose.randrange(8):
        case 0:
            return f"{column} is {choose.choice(['', 'not '])}null"
        case 1:
            values = [value, value, "null"][: choose.randrange(1, 4)]
            if column in ("id", "i"):
                values += [str(int(value) + step) for step in (1, 3, 50)]
                values += [str(int(value) + step) for step in range(choose.choice([0, 150]))]
            return f"{column} {choose.choice(['', '', 'not '])}in ({', '.join(values)})"
        case 2 | 3:
            return f"{column} {choose.choice(['=', '=', '<=>', '<>'])} {value}"
    return f"{column} {choose.choice(['<', '<=', '>', '>='])} {value}"


def condition(choose: random.Random, depth: int) -> str:
    if depth == 0:
        return compared(choose)
    left, right = (condition(choose, choose.randrange(depth)) for _ in range(2))
    joined = f"(({left}) {choose.choice(['and', 'and', 'or'])} ({right}))"
    return f"not {joined}" if choose.random() < 0.15 else joined


@pytest.mark.parametrize("seed", SEEDS)
def test_random_conditions_find_the_rows_of_a_plain_copy(lake: Oracle, seed: int) -> None:
    choose = random.Random(seed)
    requests = [condition(choose, choose.randrange(4)) for _ in TABLES_OF_A_SEED]
    digests = expected_digests(lake, requests)
    for name, request in zip(TABLES_OF_A_SEED, requests, strict=True):
        expected = digests[request]
        table = make(lake, name)
        assert digest_of(lake, table, request) == expected, (table, request)
        path = str(lake.warehouse / "filters" / name)
        portable = lake.spark.read.format("iceberg-py").option("native", "false").load(path)
        digest = portable.where(request).selectExpr(*DIGEST.split(", ", 2)).first() or ()
        assert tuple(digest) == expected, (table, request)


@pytest.mark.parametrize("written", ["java", "ours"])
@pytest.mark.parametrize(("condition", "most"), WITHOUT_ROWS_IN_GROUPS)
def test_row_groups_that_have_no_such_row_are_not_read(
    lake: Oracle, digests: dict[str, tuple[Any, ...]], written: str, condition: str, most: int
) -> None:
    table = make(lake, f"plain_{written}")
    assert_found(lake, table, condition, digests[condition])
    assert read(lake, table, condition) <= most


@pytest.mark.parametrize(("table", "written"), pairs(["plain", "bloomed"], ["java", "ours"]))
@pytest.mark.parametrize("condition", COMPARED_OTHERWISE)
def test_filter_that_orc_compares_differently_skips_no_row(
    lake: Oracle, digests: dict[str, tuple[Any, ...]], written: str, table: str, condition: str
) -> None:
    assert_found(lake, make(lake, f"{table}_{written}"), condition, digests[condition])


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/Los_Angeles", "Asia/Tokyo"])
def test_days_are_the_same_where_the_jvm_has_another_zone(lake: Oracle, zone: str) -> None:
    """In Apia, 30 December 2011 did not exist."""
    zones = lake.jvm.java.util.TimeZone
    before = zones.getDefault()
    name = f"filters.days_{zone.replace('/', '_')}"
    lake.sql(
        f"create table java_hadoop.{name} using iceberg tblproperties "
        "('write.format.default'='orc', 'format-version'='2') as select id, "
        "if(id < 30000, date'2011-12-30', date_add(date'2012-01-01', cast(id div 30000 as int))) d "
        "from range(0, 60000, 1, 1)"
    )
    zones.setDefault(zones.getTimeZone(zone))
    try:
        days = {"=": 30_000, ">=": 60_000, "<=": 30_000, "<": 0, ">": 30_000}
        for request, rows in days.items():
            frame = lake.sql(f"select id from lake.{name} where d {request} date'2011-12-30'")
            assert len(frame.collect()) == rows, request
        # The list of single days becomes a range of days.
        listed = ", ".join(f"date'2011-12-{day}'" for day in range(10, 31))
        frame = lake.sql(f"select id from lake.{name} where d in ({listed})")
        assert len(frame.collect()) == 30_000
    finally:
        zones.setDefault(before)


def test_a_column_that_files_lack_is_null_in_them(lake: Oracle) -> None:
    name = "filters.grown"
    lake.sql(
        f"create table java_hadoop.{name} using iceberg tblproperties "
        "('write.format.default'='orc', 'format-version'='2') "
        "as select id, cast(id as string) s from range(0, 30000, 1, 1)"
    )
    lake.sql(f"alter table java_hadoop.{name} add column n bigint")
    for condition in ("n = 5", "n > 0 or id < 9", "n is null and id > 29990", "n < 9 and s = '7'"):
        ours = lake.sql(f"select id, n from lake.{name} where {condition}")
        assert "IcebergPyOrcScan" in plan_of(ours)
    lake.sql(
        f"insert into java_hadoop.{name} "
        "select id + 30000, cast(id as string), id from range(0, 30000, 1, 1)"
    )
    for condition, rows in (
        ("n = 5", 1),
        ("n > 29990 or id < 9", 18),
        ("n is null and id > 29990", 9),
        ("n < 9 and s = '7'", 1),
        ("n is null", 30_000),
    ):
        ours = lake.sql(f"select id, n from lake.{name} where {condition}")
        assert len(ours.collect()) == rows, condition


def test_spark_may_be_told_to_skip_nothing(lake: Oracle) -> None:
    table = make(lake, "plain_java")
    lake.spark.conf.set("spark.sql.orc.filterPushdown", "false")
    try:
        assert read(lake, table, "id = 31234") == ROWS
    finally:
        lake.spark.conf.unset("spark.sql.orc.filterPushdown")
    # ORC readers that filter single rows return them without values, and Spark's reader ignores
    # that.
    for setting in ("orc.sarg.to.filter", "orc.filter.use.selected"):
        lake.spark.conf.set(setting, "true")
    try:
        conditions = ["id = 31234", "i in (1, 2, 3) or s = 'm'"]
        for condition, digest in expected_digests(lake, conditions).items():
            assert_found(lake, table, condition, digest)
    finally:
        for setting in ("orc.sarg.to.filter", "orc.filter.use.selected"):
            lake.spark.conf.unset(setting)
