"""Queries of single fields of variants, compared with Spark's own Parquet source.

`python -m tests.bench.variant_bench`. Both tables are written by Spark's writer, with the fields in
columns of their own.
"""

from __future__ import annotations

import tempfile
from functools import partial

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import install
from tests.bench.races import race, text_table

ROWS = 600_000
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
    """Return the times of the queries."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        spark.conf.set("spark.sql.catalog.bench", "iceberg_pyspark")
        spark.conf.set("spark.sql.catalog.bench.type", "hadoop")
        spark.conf.set("spark.sql.catalog.bench.warehouse", f"{folder}/wh")
        install(spark)
        rows = spark.sql(VARIANTS.replace("{rows}", str(ROWS))).repartition(FILES)
        rows.write.parquet(f"{folder}/sparks")
        properties = {"format-version": "3", "write.parquet.shred-variants": "true"}
        writer = rows.writeTo("bench.d.ours").using("iceberg")
        for name, value in properties.items():
            writer = writer.tableProperty(name, value)
        writer.create()
        spark.read.parquet(f"{folder}/sparks").createOrReplaceTempView("sparks")
        tables = {"ours": "bench.d.ours", "parquet": "sparks"}
        lines = [
            race(
                title,
                {
                    side: partial(lambda text: spark.sql(text).collect(), query.format(t=table))
                    for side, table in tables.items()
                },
                warm_ups=3,
                limit=MAX_OF_QUERIES,
            )
            for title, query in QUERIES.items()
        ]
    title = f"fields of variants, {ROWS:,} rows in {FILES} files, and Spark's own Parquet source"
    return [text_table(title, lines, {"parquet": "Parquet"})]


def main() -> None:
    """Print the comparison."""
    for table in compare():
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
