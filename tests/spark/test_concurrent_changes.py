"""Two Spark processes change one table by SQL at once: each change is applied exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.spark_sessions import session_conf, spark_environment
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

TIMES = 2
STATEMENTS = (
    # Both processes increment the same rows, and each inserts one row of its own.
    "merge into {t} t using (select * from values (0L), (1L), (2L), ({own}L) as v(k)) u "
    "on t.k = u.k when matched then update set n = n + 1 "
    "when not matched then insert (k, n) values (u.k, 1)",
    "update {t} set n = n + 1 where k < 2",
    "delete from {t} where k = {own}",
)
ANOTHER = """
import json, sys
from pyspark.sql import SparkSession
from iceberg_pyspark import install

conf, statements = map(json.loads, sys.argv[1:])
builder = SparkSession.builder.master("local[1]")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
install(spark)
print("ready", flush=True)
sys.stdin.readline()
for statement in statements:
    spark.sql(statement)
"""


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("shared"), "shared") as lake_session:
        yield lake_session


def test_counts_of_two_processes_add_up(session: IcebergSession, tmp_path: Path) -> None:
    spark, tables = session.spark, {v: f"shared.db.counts_{v}" for v in (2, 3)}
    for version, name in tables.items():
        make(spark, name, version)
    row_ids = lineage(spark, tables[3])
    with another(spark, tmp_path, statements(tables.values(), own=10)) as start:
        start()
        for statement in statements(tables.values(), own=20):
            spark.sql(statement)
    for name in tables.values():
        actual = {r.k: r.n for r in spark.table(name).collect()}
        assert actual == {0: 4 * TIMES, 1: 4 * TIMES, 2: 2 * TIMES}
        table = session.table(name)
        assert table_problems(table) == []
        assert len(table.snapshots) == 1 + 2 * TIMES * len(STATEMENTS)
    assert lineage(spark, tables[3]) == row_ids


def make(spark: SparkSession, name: str, version: int) -> None:
    modes = {"delete": "merge-on-read", "update": "copy-on-write", "merge": "merge-on-read"}
    options = "".join(f", 'write.{op}.mode'='{mode}'" for op, mode in modes.items())
    spark.sql(
        f"create table {name} (k bigint, n int) tblproperties ('format-version'='{version}', "
        f"'commit.retry.num-retries'='50', 'commit.retry.max-wait-ms'='500'{options})"
    )
    spark.sql(f"insert into {name} values (0, 0), (1, 0), (2, 0)")


def lineage(spark: SparkSession, name: str) -> dict[int, int]:
    return {r.k: r._row_id for r in spark.table(name).select("k", "_row_id").collect()}


def statements(tables: Iterable[str], *, own: int) -> list[str]:
    return [
        statement.replace("{t}", name).replace("{own}", str(own))
        for name in tables
        for statement in STATEMENTS * TIMES
    ]


@contextmanager
def another(
    spark: SparkSession, scratch: Path, statements: Sequence[str]
) -> Iterator[Callable[[], None]]:
    """Start another process that runs the statements once the yielded function is called.

    On exit, wait for the process and check that it succeeded.
    """
    catalog = {k: v for k, v in spark.conf.getAll.items() if k.startswith("spark.sql.catalog.")}
    settings = {**session_conf(scratch), **catalog}
    process = subprocess.Popen(
        [sys.executable, "-c", ANOTHER, json.dumps(settings), json.dumps(statements)],
        env=spark_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield lambda: print("go", file=process.stdin, flush=True)
        assert process.wait(timeout=300) == 0
    finally:
        process.kill()
        process.communicate()
