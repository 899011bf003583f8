"""Run the same statements with our writer and with Java, each on its own table, and compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED_QUERY
from tests.support.rows import PlainRow, spark_rows
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
    tables = [f"{JAVAS}.writes.{name}_by_{writer}" for writer in (OURS, JAVAS)]
    ours, java = (definition_of(lake, table) for table in tables)
    assert ours == java
    ours, java = seen_by_java(lake, tables, counts)
    assert ours == java


def definition_of(lake: Oracle, table: str) -> dict[str, str]:
    """Return the spec, the schema and the sort order that Java loads."""
    loaded = lake.load_java_table(table)
    return {
        "spec": str(loaded.spec().toString()),
        "schema": str(loaded.schema().toString()),
        "order": str(loaded.sortOrder().toString()),
    }


def seen_by_java(
    lake: Oracle, tables: Sequence[str], counts: Collection[str]
) -> list[dict[str, Any]]:
    """Return Java's view of tables of one definition: rows, files and counts of summaries."""
    rows = rows_of_each(lake, tables, "*")
    names = [f"{table}.files" for table in tables]
    columns = ["spec_id", "sort_order_id", "file_format", "record_count"]
    if "partition" in lake.spark.table(names[0]).columns:
        columns.insert(0, "cast(partition as string)")
    files = rows_of_each(lake, names, *columns)
    snapshots = rows_of_each(
        lake, [f"{table}.snapshots" for table in tables], "committed_at", "operation", "summary"
    )
    return [
        {
            "rows": spark_rows(rows[side]),
            "files": counted(files[side]),
            "snapshots": [
                (operation, {k: summary[k] for k in counts if k in summary})
                for _, operation, summary in sorted(snapshots[side], key=lambda row: row[0])
            ],
        }
        for side in range(len(tables))
    ]


def rows_of_each(lake: Oracle, names: Sequence[str], *columns: str) -> list[list[PlainRow]]:
    """Return what Java reads of each table, all in one query."""
    frames = [
        lake.spark.table(name).selectExpr(f"{side} as side", *columns)
        for side, name in enumerate(names)
    ]
    result: list[list[PlainRow]] = [[] for _ in names]
    with configured(lake.spark, INTERPRETED_QUERY):
        for side, *row in reduce(DataFrame.unionAll, frames).collect():
            result[side].append(tuple(row))
    return result


def counted(files: Iterable[PlainRow]) -> dict[PlainRow, tuple[int, int]]:
    """Return the numbers of files and of records for all other values of the files' rows."""
    result: dict[PlainRow, tuple[int, int]] = {}
    for *key, records in files:
        number, total = result.get(tuple(key), (0, 0))
        result[tuple(key)] = number + 1, total + records
    return result
