"""Random queries on tables with deletes and evolution: native, portable, Java and plain rows agree.

The seed fixes the queries.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.amounts import WORK
from tests.support.native_lake import native_lake, same_rows
from tests.support.oracle import Oracle
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

SEED, QUERIES = 1, 8 * WORK

TABLES = ("unpartitioned", "by_days", "by_value", "in_order")
COLUMNS = ("id", "p", "s", "ts", "d", "x", "n", "f", "added")
ROWS = (
    "SELECT id + {start} AS id, if(id % 7 = 0, null, CAST(id % 5 AS INT)) AS p, "
    "if(id % 11 = 0, null, concat('s', id % 13)) AS s, "
    "TIMESTAMP '2024-02-27 00:00:00' + make_interval(0, 0, 0, 0, id % 96) AS ts, "
    "DATE '2024-02-27' + CAST(id % 40 AS INT) AS d, "
    "if(id % 9 = 0, double('NaN'), (id % 50) / 8 - 2) AS x, "
    "if(id % 6 = 0, null, CAST((id % 70) / 4 - 5 AS DECIMAL(9, 2))) AS n, "
    "CAST((id % 50) / 10 - 2 AS FLOAT) AS f FROM range({count})"
)
ORDERS = ("", " DESC", " NULLS LAST", " DESC NULLS FIRST")
_FIRST_FIELD = {"by_days": "days(ts)", "by_value": "p"}

NAN_IS_LARGEST = "{a}.x > {n}.5"
"""A condition that NaN satisfies in Spark; Java's reader has been seen to omit such rows."""


def make_table(oracle: Oracle, name: str, version: int) -> None:
    """Create a table with Java and change its rows under several schemas and partition specs."""
    full = f"java_hadoop.random_queries.{name}"
    columns = (
        "id BIGINT, p INT, old STRING, ts TIMESTAMP, d DATE, x FLOAT, n DECIMAL(9, 2), f FLOAT"
    )
    oracle.sql(
        f"CREATE TABLE {full} ({columns}) USING iceberg TBLPROPERTIES ("
        f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.parquet.page-row-limit' = '20')"
    )
    if name in _FIRST_FIELD:
        oracle.sql(f"ALTER TABLE {full} ADD PARTITION FIELD {_FIRST_FIELD[name]}")
    # the ids of a file of `in_order` tell a join which files to skip
    count = 25 if name == "in_order" else 150
    for start in range(0, 150, count):
        oracle.sql(f"INSERT INTO {full} {ROWS.format(start=start, count=count)}")
    oracle.sql(f"DELETE FROM {full} WHERE id % 10 = 3")
    if version == 2:
        oracle.write_equality_deletes(full, ["id"], [(i,) for i in range(0, 150, 17)], spec_id=0)
    oracle.sql(f"ALTER TABLE {full} RENAME COLUMN old TO s")
    oracle.sql(f"ALTER TABLE {full} ALTER COLUMN x TYPE DOUBLE")
    oracle.sql(f"ALTER TABLE {full} ADD COLUMN added INT")
    oracle.sql(
        f"INSERT INTO {full} SELECT *, CAST(id AS INT) FROM ({ROWS.format(start=100, count=90)})"
    )
    oracle.sql(f"UPDATE {full} SET p = p + 1, added = -1 WHERE id % 14 = 5")
    oracle.sql(f"ALTER TABLE {full} ADD PARTITION FIELD truncate(2, s)")
    oracle.sql(f"INSERT INTO {full} SELECT *, 7 FROM ({ROWS.format(start=300, count=60)})")


class Queries:
    """A generator of random queries; `{place}` precedes each table's name."""

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose

    def query(self) -> str:
        """Return a query for rows, for the first ordered rows, for groups or for aggregates, also
        for those that metadata of whole files may tell.
        """
        table = self._table()
        kind = self._choose.choice(["rows", "rows", "first", "groups", "groups", "all", "known"])
        if kind == "known":
            column = self._choose.choice(COLUMNS)
            aggregates = f"count(*), count({column}), min({column}), max({column})"
            return f"SELECT {aggregates} FROM {table} a WHERE {self._condition('a')}"
        source, aliases = f"{table} a", ["a"]
        if self._choose.random() < 0.5:
            join = self._choose.choice(
                ["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
            )
            key = self._choose.choice(["id", "p", "s", "ts", "d"])
            extra = f" AND {self._condition('b')}" if self._choose.random() < 0.4 else ""
            source += f" {join} {self._small()} b ON a.{key} = b.{key}{extra}"
            aliases += ["b"] if "SEMI" not in join and "ANTI" not in join else []
        where = [
            self._condition(self._choose.choice(aliases)) for _ in range(self._choose.randrange(3))
        ]
        if self._choose.random() < 0.4:
            where.append(self._subquery("a"))
        text = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        if kind == "all":
            return f"SELECT {self._aggregates('a')}{text}"
        select_list = [
            f"{alias}.{column} AS {alias}_{column}"
            for alias in aliases
            for column in self._choose.sample(COLUMNS, self._choose.randrange(1, 4))
        ]
        if kind == "groups":
            by = select_list[0].partition(" AS ")[0]
            return f"SELECT {by}, {self._aggregates('a')}{text} GROUP BY {by}"
        query = f"SELECT {', '.join(select_list)}{text}"
        if kind == "first":
            ordered = ", ".join(f"{i + 1}{self._order()}" for i in range(len(select_list)))
            query += f" ORDER BY {ordered} LIMIT {self._choose.choice([1, 3, 20])}"
        return query

    def _order(self) -> str:
        return self._choose.choice(ORDERS)

    def _table(self) -> str:
        return "{place}" + self._choose.choice(TABLES)

    def _small(self) -> str:
        """Return a table, or a filtered one whose few rows become a run-time filter of a join."""
        if self._choose.random() < 0.5:
            return self._table()
        return f"(SELECT * FROM {self._table()} c WHERE {self._condition('c')})"

    def _condition(self, a: str) -> str:
        n = self._choose.randrange(1, 9)
        return self._choose.choice(
            [
                f"{a}.id % 10 = {n}",
                f"{a}.id BETWEEN {n * 20} AND {n * 20 + 60}",
                f"{a}.p = {n % 5}",
                f"{a}.p IS NULL",
                f"NOT {a}.p IN (1, {n})",
                f"{a}.s >= 's{n}'",
                f"{a}.s LIKE 's1%'",
                f"NOT startswith({a}.s, 's{n}')",
                f"{a}.ts >= TIMESTAMP '2024-02-28 0{n}:00:00'",
                f"date({a}.ts) = DATE '2024-02-29'",
                f"{a}.d < DATE '2024-03-0{n}'",
                NAN_IS_LARGEST.format(a=a, n=n - 4),
                f"isnan({a}.x)",
                f"{a}.n <= {n}.25",
                f"{a}.f = {n / 10}F",
                f"{a}.f NOT IN ({n / 10}F, -{n / 5}F)",
                f"({a}.added IS NULL OR {a}.added > {n * 20})",
                f"({a}.p = {n % 5} OR {a}.d = DATE '2024-03-0{n}')",
            ]
        )

    def _subquery(self, a: str) -> str:
        inner = f"FROM {self._table()} q WHERE {self._condition('q')}"
        return self._choose.choice(
            [
                f"{a}.id IN (SELECT q.id {inner})",
                f"{a}.p NOT IN (SELECT q.p {inner} AND q.p IS NOT NULL)",
                f"EXISTS (SELECT * {inner} AND q.d = {a}.d)",
                f"{a}.id > (SELECT min(q.id) {inner})",
            ]
        )

    def _aggregates(self, a: str) -> str:
        column = self._choose.choice(COLUMNS)
        return (
            f"count(*), count({a}.{column}), min({a}.{column}), max({a}.{column}), "
            f"sum({a}.id), sum({a}.n), count(DISTINCT {a}.s)"
        )


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        native_oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.random_queries")
        yield native_oracle


def offer(lake: Oracle, name: str) -> None:
    """Offer a table as `lake.`, as `java_hadoop.`, and as the views `plain_` and `portable_`."""
    spark, full = lake.spark, f"java_hadoop.random_queries.{name}"
    if spark.catalog.tableExists(full):
        return
    make_table(lake, name, 2 + TABLES.index(name) % 2)
    rows = spark.table(full)
    spark.createDataFrame(rows.toArrow(), rows.schema).createOrReplaceTempView(f"plain_{name}")
    location = lake.load_java_table(full).location()
    portable = spark.read.format("iceberg-py").option("native", "false").load(location)
    portable.createOrReplaceTempView(f"portable_{name}")


@pytest.mark.parametrize("number", range(QUERIES))
def test_a_query_has_the_same_rows_wherever_it_runs(lake: Oracle, number: int) -> None:
    query = Queries(random.Random(SEED * 1_000 + number)).query()
    for name in TABLES:
        if f"{{place}}{name}" in query:
            offer(lake, name)
    places = {
        "plain": "plain_",
        "Java's": "java_hadoop.random_queries.",
        "native": "lake.random_queries.",
        "portable": "portable_",
    }
    rows = {
        reader: spark_rows(lake.sql(query.format(place=place)).collect())
        for reader, place in places.items()
    }
    if ".x > " in query:
        del rows["Java's"]
    wrong = [reader for reader, actual in rows.items() if actual != rows["plain"]]
    assert not wrong, f"{', '.join(wrong)} differ from the plain rows: {query}"


@pytest.mark.parametrize("name", TABLES)
def test_the_first_rows_of_any_order_are_those_of_the_connector(lake: Oracle, name: str) -> None:
    """Only files that may have them are read."""
    offer(lake, name)
    for column in COLUMNS:
        for order in ORDERS:
            query = f"SELECT {column} FROM {{t}} ORDER BY {column}{order} LIMIT 7"
            rows = [
                spark_rows(lake.sql(query.format(t=f"{place}{name}")).collect())
                for place in ("plain_", "java_hadoop.random_queries.", "lake.random_queries.")
            ]
            assert rows[0] == rows[1] == rows[2], query


def test_min_and_max_of_floats_are_those_of_the_connector(lake: Oracle) -> None:
    """Metadata tell them unless a file has a NaN or a zero, whose sign its bounds do not tell."""
    queries = [
        f"SELECT min(f), max(f), count(f), min(d), max(d), count(d), count(y) FROM {{t}} {where}"
        for where in (
            "WHERE p <= 3",
            "WHERE p = 1",
            "WHERE p = 4",
            "WHERE p = 5",
            "WHERE p = 6",
            "",
        )
    ]
    for writer in ("lake", "java_hadoop"):
        table = f"random_queries.floats_{writer}"
        lake.spark.sql(
            f"CREATE TABLE {writer}.{table} (p INT, f FLOAT, d DOUBLE, y BINARY) USING iceberg "
            "PARTITIONED BY (p)"
        )
        lake.spark.sql(
            f"INSERT INTO {writer}.{table} VALUES (1, 1.5, -2.25D, X'01'), "
            "(1, float('inf'), 1e300D, null), (2, float('-inf'), 4.9e-324D, X'02'), "
            "(3, null, null, null), (4, float('nan'), 1D, X''), (4, 3, double('nan'), X''), "
            "(5, -0.0, 0.0D, X'00'), (5, -1, -0.0D, null), (6, 0.1, 0.1D, X'00')"
        )
        plans = []
        for query in queries:
            plans.append(same_rows(lake, query.format(t=f"{{t}}.{table}")))
            ours = lake.spark.sql(query.format(t=f"lake.{table}")).collect()
            plain = lake.spark.table(f"java_hadoop.{table}").toArrow()
            lake.spark.createDataFrame(plain).createOrReplaceTempView("plain_floats")
            assert repr(ours) == repr(lake.spark.sql(query.format(t="plain_floats")).collect())
        is_read = ["IcebergPyParquetScan" in plan for plan in plans]
        assert is_read == [False, False, True, True, False, True]
