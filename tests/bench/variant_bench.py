"""Queries of single fields of variants, and writes that shred them.

`python -m tests.bench.variant_bench`. The queries are compared with Spark's own Parquet
source: both tables are written by Spark's writer, with the fields in columns of their own. The
writes are compared with the JVM connector's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.races import race, text_table
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle

JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "2g"}
ROWS = 600_000
WRITTEN_ROWS = 100_000
FILES = 2
MAX_OF_QUERIES = 1.1
"""The limit of the time of a query, as a ratio to that of Spark's own source."""
VARIANTS = """
    SELECT id, parse_json(concat('{"a": ', id % 1000, ', "s": "text', id, '", "n": {"x": ', id,
        '.5}, "t": [1, 2, 3], "u": "', repeat('z', 40), '"}')) v FROM range({rows})"""
QUERIES = {
    "sum of a field": "SELECT sum(variant_get(v, '$.a', 'bigint')) FROM {t}",
    "one value of a field": "SELECT count(*) FROM {t} WHERE variant_get(v, '$.a', 'bigint') = 117",
    "two fields of filtered rows": "SELECT max(variant_get(v, '$.a', 'bigint')), "
    "max(try_variant_get(v, '$.s', 'string')) FROM {t} WHERE id > 10",
    "whole variants": "SELECT max(length(to_json(v))) FROM {t}",
}


def compare() -> list[TextTable]:
    """Return the times of the queries, and of writes."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        oracle = start_oracle(Path(folder), JVM)
        try:
            with native_lake(oracle):
                return [_queries(oracle, folder), _writes(oracle)]
        finally:
            oracle.spark.stop()


def _queries(oracle: Oracle, folder: str) -> TextTable:
    rows = oracle.sql(VARIANTS.replace("{rows}", str(ROWS))).repartition(FILES)
    rows.write.parquet(f"{folder}/sparks")
    _create(oracle, "ours", rows)
    oracle.spark.read.parquet(f"{folder}/sparks").createOrReplaceTempView("sparks")
    tables = {"ours": "lake.d.ours", "parquet": "sparks"}
    lines = [
        race(
            title,
            {
                side: partial(lambda text: oracle.sql(text).collect(), query.format(t=table))
                for side, table in tables.items()
            },
            warm_ups=3,
            limit=MAX_OF_QUERIES,
        )
        for title, query in QUERIES.items()
    ]
    title = f"fields of variants, {ROWS:,} rows in {FILES} files, and Spark's own Parquet source"
    return text_table(title, lines, {"parquet": "Parquet"})


def _writes(oracle: Oracle) -> TextTable:
    """Append the same rows to three tables, each with its own writer."""
    rows = oracle.sql(VARIANTS.replace("{rows}", str(WRITTEN_ROWS))).coalesce(1).cache()
    for name in ("native", "python", "javas"):
        _create(oracle, name, rows)
    python = rows.writeTo("lake.d.python").option("native-writer-enabled", "false")
    writes: dict[str, Callable[[], object]] = {
        "ours": lambda: rows.writeTo("lake.d.native").append(),
        "python": python.append,
        "jvm": lambda: rows.writeTo("java_hadoop.d.javas").append(),
    }
    title = f"append of {WRITTEN_ROWS:,} variants whose fields are shredded, one task"
    line = race("by Spark's writer, by Python's, by the connector's", writes)
    return text_table(title, [line], {"python": "Python", "jvm": "JVM connector"})


def _create(oracle: Oracle, name: str, rows: DataFrame) -> None:
    properties = {"format-version": "3", "write.parquet.shred-variants": "true"}
    writer = rows.writeTo(f"lake.d.{name}").using("iceberg")
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    writer.create()


def main() -> None:
    """Print the comparison."""
    for table in compare():
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
