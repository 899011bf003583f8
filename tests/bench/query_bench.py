"""Queries that Spark plans with information from the scan, compared with the JVM connector.

`python -m tests.bench.query_bench [--scale 1] [--only "Q14;limit 10"]`: the 22 queries of TPC-H on
tables partitioned by month and year; joins whose small side prunes files of the large side; joins
and MERGE of identically bucketed tables; aggregates and limits from metadata.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.first_runs import race_first_runs, table_of_first_runs
from tests.bench.native_bench import JVM
from tests.bench.races import RUNS, Line, race
from tests.bench.tpch_queries import SETTINGS, tpch_queries
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

MAX_OF_ALL = 0.95
"""The limit of the geometric mean of the 22 ratios."""
MAX_OF_ONE = 1.1
MAX_RATIO = 1.0
FILES_IN_ORDER = 32
FIRST_RUNS = 3
"""Processes of each side for the first runs."""

WARM_UPS = 3
"""Unmeasured runs before the measured runs of a query: the JVM still compiles the query's code, so
the later contestant would be up to a tenth faster.
"""
SHORT_RUNS = 5
"""The factor of runs for lines that take only a tenth of a second or two."""

SHORT_WARM_UPS = 3 * SHORT_RUNS


_PARTITIONED = {"lineitem": "months(l_shipdate)", "orders": "years(o_orderdate)"}
_LINES: Mapping[str, str] = {
    "run-time filter, identity": (
        "SELECT sum(f.x) FROM by_day f JOIN days d ON f.day = d.day WHERE d.name = 'd7'"
    ),
    "run-time filter, days": (
        "SELECT sum(f.x) FROM by_days f JOIN times d ON f.at = d.at WHERE d.name = 't7'"
    ),
    "run-time filter, bucket": (
        "SELECT sum(f.x) FROM by_bucket f JOIN ids d ON f.id = d.id WHERE d.name = 'i7'"
    ),
    "run-time filter, order of writes": (
        "SELECT sum(f.x) FROM in_order f JOIN ids d ON f.id = d.id WHERE d.name = 'i7'"
    ),
    "join of equal buckets": (
        "SELECT count(*), sum(a.x + b.x) FROM by_bucket a JOIN by_bucket_too b ON a.id = b.id"
    ),
    "min, max, count of a table": "SELECT min(id), max(id), count(*), count(id) FROM by_bucket",
    "min, max, count by partition": (
        "SELECT day, min(id), max(id), count(*) FROM by_day GROUP BY day ORDER BY day"
    ),
    "min, max, count of a filter that divides a file": (
        "SELECT min(id), max(id), count(*) FROM by_day WHERE at >= TIMESTAMP '2024-02-20 12:00:00'"
    ),
    "limit 10": "SELECT * FROM by_day LIMIT 10",
    "a filter that partitions prove": (
        "SELECT sum(l_quantity) FROM lineitem "
        "WHERE l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1995-07-01'"
    ),
}
_MERGE = "MERGE of equal buckets"


def make_tpch_tables(oracle: Oracle, scale: float) -> None:
    """Create the eight TPC-H tables with the JVM connector."""
    for name, file in tpch(scale).items():
        rows = oracle.spark.read.parquet(str(file))
        rows.createOrReplaceTempView("rows")
        by = f" PARTITIONED BY ({_PARTITIONED[name]})" if name in _PARTITIONED else ""
        oracle.sql(f"CREATE TABLE java_hadoop.bench.{name} USING iceberg{by} AS SELECT * FROM rows")


def make_line_tables(oracle: Oracle, scale: float) -> None:
    """Create tables of some million rows in each partitioning, and small tables to join."""
    rows = round(6_000_000 * scale)
    at = f"timestampadd(SECOND, id * 8640000 div {rows}, TIMESTAMP '2024-01-01 00:00:00')"
    oracle.spark.range(0, rows, 1, 4).selectExpr(
        "id", f"{at} AS at", f"cast({at} AS date) AS day", "id % 1000 AS x", "uuid() AS filling"
    ).createOrReplaceTempView("rows")
    for name, by in {
        "by_day": "day",
        "by_days": "days(at)",
        "by_bucket": "bucket(8, id)",
        "by_bucket_too": "bucket(8, id)",
    }.items():
        oracle.sql(
            f"CREATE TABLE java_hadoop.bench.{name} USING iceberg PARTITIONED BY ({by}) "
            "AS SELECT * FROM rows"
        )
    ordered = oracle.spark.range(0, rows, 1, FILES_IN_ORDER)
    ordered.selectExpr("id", "id % 1000 AS x", "uuid() AS filling").writeTo(
        "java_hadoop.bench.in_order"
    ).using("iceberg").create()
    for name, column, short in (("days", "day", "d"), ("times", "at", "t"), ("ids", "id", "i")):
        oracle.sql(
            f"CREATE TABLE java_hadoop.bench.{name} USING iceberg AS "
            f"SELECT {column}, concat('{short}', id div {rows // 100}) AS name FROM rows "
            f"WHERE id % {rows // 100} = 0"
        )


def contestants(spark: SparkSession, query: str) -> Mapping[str, Callable[[], object]]:
    """Return the query on the tables of each catalog, by contestant."""

    def run(catalog: str) -> object:
        spark.catalog.setCurrentCatalog(catalog)
        spark.catalog.setCurrentDatabase("bench")
        try:
            return spark.sql(query).collect()
        finally:
            spark.catalog.setCurrentCatalog("spark_catalog")

    return {"ours": partial(run, "lake"), "jvm": partial(run, "java_hadoop")}


def merge_line(oracle: Oracle, runs: int) -> Line:
    """Measure a MERGE of two identically bucketed tables that changes every tenth row."""
    rollbacks: dict[str, str] = {}
    for catalog in ("lake", "java_hadoop"):
        name = f"java_hadoop.bench.merged_by_{catalog}"
        oracle.sql(
            f"CREATE TABLE {name} USING iceberg PARTITIONED BY (bucket(8, id)) TBLPROPERTIES "
            "('format-version' = '3', 'write.merge.mode' = 'merge-on-read') "
            "AS SELECT * FROM java_hadoop.bench.by_bucket"
        )
        snapshot = oracle.spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").collect()[0][0]
        rollbacks[catalog] = f"CALL java_hadoop.system.rollback_to_snapshot('{name}', {snapshot})"
    oracle.sql(
        "CREATE TABLE java_hadoop.bench.changes USING iceberg PARTITIONED BY (bucket(8, id)) "
        "AS SELECT id, x + 1 AS x FROM java_hadoop.bench.by_bucket WHERE id % 10 = 0"
    )

    def merge(catalog: str) -> object:
        return oracle.spark.sql(
            f"MERGE INTO {catalog}.bench.merged_by_{catalog} t USING {catalog}.bench.changes s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x"
        )

    catalogs = {"ours": "lake", "jvm": "java_hadoop"}
    return race(
        _MERGE,
        {w: partial(merge, catalog) for w, catalog in catalogs.items()},
        runs=runs,
        warm_ups=WARM_UPS,
        limit=MAX_RATIO,
        after={w: partial(oracle.sql, rollbacks[catalog]) for w, catalog in catalogs.items()},
    )


def table_of_best(title: str, lines: Sequence[Line], mean: float | None) -> TextTable:
    """Return lines by their best times; with `mean`, add the geometric mean and its limit."""
    text = TextTable("line", title=title)
    for column in ("ours s", "JVM s", "ours/JVM", "at most"):
        text.add_column(column, justify="right")
    ratios = []
    for line in lines:
        ours, jvm = min(line.seconds["ours"]), min(line.seconds["jvm"])
        ratios.append(ours / jvm)
        limit = "" if line.limit is None else f"{line.limit}"
        text.add_row(line.name, f"{ours:.2f}", f"{jvm:.2f}", f"{ours / jvm:.2f}", limit)
    if mean is not None and ratios:
        geometric_mean = statistics.geometric_mean(ratios)
        text.add_row("geometric mean", "", "", f"{geometric_mean:.2f}", f"{mean}")
    return text


def compare(
    scale: float = 1.0, runs: int = RUNS, only: Sequence[str] | None = None
) -> list[TextTable]:
    """Measure everything and return the tables to print."""

    def is_selected(name: str) -> bool:
        return only is None or name in only

    short = runs * SHORT_RUNS
    whole = all(is_selected(name) for name in tpch_queries())
    lines: list[Line] = []
    first_runs: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), {**JVM, **SETTINGS})
        try:
            with native_lake(oracle):
                oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
                make_tpch_tables(oracle, scale)
                queries = [
                    race(
                        name,
                        contestants(oracle.spark, query),
                        runs=runs,
                        warm_ups=WARM_UPS,
                        limit=MAX_OF_ONE,
                    )
                    for name, query in tpch_queries().items()
                    if is_selected(name)
                ]
                if whole:
                    first_runs = race_first_runs(oracle.warehouse, FIRST_RUNS)
                if any(is_selected(name) for name in (*_LINES, _MERGE)):
                    make_line_tables(oracle, scale)
                    lines = [
                        race(
                            name,
                            contestants(oracle.spark, query),
                            runs=short,
                            warm_ups=SHORT_WARM_UPS,
                            limit=MAX_RATIO,
                        )
                        for name, query in _LINES.items()
                        if is_selected(name)
                    ]
                if is_selected(_MERGE):
                    lines.append(merge_line(oracle, short))
        finally:
            oracle.spark.stop()
    of = f"SF{scale:g}, local[2], best of"
    tables = []
    if queries:
        title = f"TPC-H on tables by months and years: {of} {runs}"
        tables.append(table_of_best(title, queries, MAX_OF_ALL if whole else None))
    if first_runs:
        tables.append(table_of_first_runs(f"SF{scale:g}, local[2]", first_runs))
    if lines:
        tables.append(table_of_best(f"what a scan tells Spark: {of} {short}", lines, None))
    return tables


def compare_queries() -> list[TextTable]:
    """Measure the 22 TPC-H queries."""
    return compare(only=list(tpch_queries()))


def compare_scans() -> list[TextTable]:
    """Measure the queries that use information from the scan."""
    return compare(only=[*_LINES, _MERGE])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.query_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", help="names of lines, by semicolons")
    arguments = parser.parse_args()
    only = None if arguments.only is None else arguments.only.split(";")
    for table in compare(arguments.scale, arguments.runs, only):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
