"""Distinct counts that Java computed reach Spark's cost-based optimizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.native_lake import native_lake, same_rows
from tests.support.oracle import Oracle
from tests.support.plan_statistics import KnownColumn, known_columns, known_rows

pytestmark = pytest.mark.nightly

COST_BASED = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")
ROWS = """
    select id, if(id % 4 = 0, null, cast(id % 10 as int)) g, concat('s', id % 7) s,
           date_add(date'1969-12-30', cast(id % 5 as int)) d, cast(id % 3 as decimal(9, 2)) m,
           timestampadd(DAY, cast(id % 6 as int), timestamp'2024-01-01 00:00:00') t,
           timestampadd(DAY, cast(id % 6 as int), timestamp_ntz'2024-01-01 00:00:00') ntz,
           id * 0.5d f, id % 2 = 0 b, cast(null as bigint) n
    from range(100)
"""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


@pytest.fixture
def cost_based(lake: Oracle) -> Iterator[Oracle]:
    for key in COST_BASED:
        lake.spark.conf.set(key, "true")
    yield lake
    for key in COST_BASED:
        lake.spark.conf.unset(key)


def make(lake: Oracle, name: str, rows: str, clauses: str = "") -> None:
    lake.sql(f"create table java_hadoop.{name} using iceberg {clauses} as {rows}")


def count_values(lake: Oracle, name: str) -> None:
    lake.sql(f"call java_hadoop.system.compute_table_stats(table => '{name}')").collect()


def test_counts_of_java_are_what_the_optimizer_knows(cost_based: Oracle) -> None:
    lake, name = cost_based, "known.counted"
    make(lake, name, ROWS, "partitioned by (g)")
    assert known_columns(lake.spark.table(f"lake.{name}")) == {}
    count_values(lake, name)
    ours = known_columns(lake.spark.table(f"lake.{name}"))
    java = known_columns(lake.spark.table(f"java_hadoop.{name}"))
    # Spark's estimates for these columns would fail or be wrong: see `metadata_aggregates.py`.
    assert java.keys() - ours.keys() == {"ntz", "f"}
    assert {c: ours[c].distinct for c in ours} == {c: java[c].distinct for c in ours}
    assert ours["id"] == KnownColumn(distinct=100, nulls=0, least="0", greatest="99")
    assert ours["g"] == KnownColumn(distinct=10, nulls=25, least="0", greatest="9")
    assert ours["s"] == KnownColumn(distinct=7, nulls=0, least=None, greatest=None)
    assert ours["d"] == KnownColumn(distinct=5, nulls=0, least="-2", greatest="2")
    assert ours["m"] == KnownColumn(distinct=3, nulls=0, least="0.00", greatest="2.00")
    assert ours["b"] == KnownColumn(distinct=2, nulls=0, least="false", greatest="true")
    assert (ours["n"].nulls, ours["n"].least) == (100, None)
    assert known_rows(lake.spark.table(f"lake.{name}")) == 100
    columns = "id, g, s, d, m, t, ntz, f, b, n"
    for condition in ("g = 3", "d > date'1970-01-01'", "ntz is not null and f < 9", "n is null"):
        same_rows(lake, f"select {columns} from {{t}}.{name} where {condition}")


def test_estimates_above_a_filter(cost_based: Oracle) -> None:
    """The estimates belong to the optimized plan, by which Spark chooses its joins."""
    lake = cost_based

    def estimate(catalog: str, table: str, condition: str) -> int:
        frame = lake.sql(f"select id as i, s, d from {catalog}.known.{table} where {condition}")
        rows = frame._jdf.queryExecution().optimizedPlan().stats().rowCount()
        return int(str(rows.get()))

    make(lake, "known.one_file", ROWS.replace("select", "select /*+ coalesce(1) */"))
    make(lake, "known.two_files", f"select /*+ repartition_by_range(2, id) */ * from ({ROWS})")
    for table in ("one_file", "two_files"):
        count_values(lake, f"known.{table}")
        assert estimate("lake", table, "s = 's3'") == 15
        assert estimate("java_hadoop", table, "s = 's3'") == 15
        assert estimate("lake", table, "d = date'1970-01-01'") == 20
    # Java does not pass bounds to Spark.
    assert estimate("lake", "one_file", "id < 25") == 26
    # The filter has pruned a file already, so its selectivity is not applied a second time.
    assert estimate("lake", "two_files", "id < 25") == 50


def test_counts_are_of_one_snapshot_and_for_sessions_that_want_them(cost_based: Oracle) -> None:
    lake, name = cost_based, "known.older"
    make(lake, name, ROWS)
    count_values(lake, name)
    counted = lake.sql(f"select snapshot_id from lake.{name}.snapshots").collect()[0][0]
    lake.sql(f"insert into java_hadoop.{name} {ROWS}")
    assert known_columns(lake.spark.table(f"lake.{name}")) == {}
    older = lake.sql(f"select * from lake.{name} version as of {counted}")
    assert known_columns(older)["id"].distinct == 100
    lake.spark.conf.set("spark.sql.iceberg.report-column-stats", "false")
    older = lake.sql(f"select * from lake.{name} version as of {counted}")
    assert known_columns(older) == {}
    lake.spark.conf.unset("spark.sql.iceberg.report-column-stats")
    lake.spark.conf.set("spark.sql.cbo.enabled", "false")
    older = lake.sql(f"select * from lake.{name} version as of {counted}")
    assert known_columns(older) == {}


def test_joins_are_ordered_by_what_is_known(cost_based: Oracle) -> None:
    """Joined with the larger table, 100 rows of the first remain; with the smaller one, 10,000."""
    lake = cost_based
    make(lake, "known.facts", "select id fact, id % 2 many from range(1000)")
    make(lake, "known.wide", "select id wide, id % 2 many_of from range(20)")
    make(lake, "known.few", "select id * 10 few from range(100)")
    query = (
        "select fact, wide from {t}.known.facts join {t}.known.wide on many = many_of "
        "join {t}.known.few on fact = few"
    )

    def order() -> list[str]:
        plan = lake.sql(query.format(t="lake"))._jdf.queryExecution().optimizedPlan().toString()
        return sorted(("many_of#", "few#"), key=str(plan).rindex)

    assert order() == ["many_of#", "few#"]
    for name in ("facts", "wide", "few"):
        count_values(lake, f"known.{name}")
    assert order() == ["few#", "many_of#"]
    same_rows(lake, query)
