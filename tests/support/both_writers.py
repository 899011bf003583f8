"""Run the same statements with our writer and with Java, each on its own table, and compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED
from tests.support.rows import spark_rows
from tests.support.spark_settings import configured

OURS, JAVAS = "lake", "java_hadoop"
COUNTS = (
    "added-data-files",
    "deleted-data-files",
    "added-records",
    "deleted-records",
    "total-records",
    "total-data-files",
    "changed-partition-count",
    "replace-partitions",
    "manifests-created",
    "manifests-kept",
    "manifests-replaced",
    "app-id",
    "app-name",
    "spark.app.id",
    "engine-name",
    "engine-version",
)

Statement: TypeAlias = str | Callable[[Oracle, str], Any]


@contextmanager
def writers_lake(oracle: Oracle) -> Iterator[Oracle]:
    """Yield a session that has both catalogs and the namespace `writes`, as `both` needs it."""
    with native_lake(oracle) as lake:
        lake.sql(f"create namespace if not exists {JAVAS}.writes")
        yield lake


def by_java(table: str) -> str:
    """Return the name under which Java's catalog has the table, for SQL that only Java supports."""
    return f"{JAVAS}.{table.partition('.')[2]}"


def both(lake: Oracle, name: str, *statements: Statement, counts: Collection[str] = COUNTS) -> None:
    """Run statements on {t} with our writer and with Java; Java must see both tables alike."""
    for writer in (OURS, JAVAS):
        for statement in statements:
            table = f"{writer}.writes.{name}_by_{writer}"
            if isinstance(statement, str):
                lake.sql(statement.format(t=table))
            else:
                statement(lake, table)
    with configured(lake.spark, INTERPRETED):
        ours, java = (
            seen_by_java(lake, f"{JAVAS}.writes.{name}_by_{w}", counts) for w in (OURS, JAVAS)
        )
    assert ours == java


def seen_by_java(lake: Oracle, table: str, counts: Collection[str]) -> dict[str, Any]:
    """Return Java's view of a table: rows, files, summary counts, spec, schema, sort order."""
    spark = lake.spark
    files = spark.table(f"{table}.files")
    partition = [F.col("partition").cast("string")] if "partition" in files.columns else []
    snapshots = spark.sql(f"select operation, summary from {table}.snapshots order by committed_at")
    return {
        "rows": spark_rows(spark.table(table).collect()),
        "files": spark_rows(
            files.groupBy(*partition, "spec_id", "sort_order_id", "file_format")
            .agg(F.count("*"), F.sum("record_count"))
            .collect()
        ),
        "snapshots": [
            (s.operation, {k: s.summary[k] for k in counts if k in s.summary})
            for s in snapshots.collect()
        ],
        "spec": str(lake.load_java_table(table).spec().toString()),
        "schema": str(lake.load_java_table(table).schema().toString()),
        "order": str(lake.load_java_table(table).sortOrder().toString()),
    }
