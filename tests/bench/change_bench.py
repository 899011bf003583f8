"""Writes, DELETE, UPDATE and MERGE compared with the JVM connector, in one session.

`python -m tests.bench.change_bench [--scale 1] [--only changes]`. Both sides run the same SQL. Each
statement runs on its own table per contestant, which is rolled back before the next run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.races import RUNS, Line, race, text_table
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
CATALOGS = {"ours": "lake", "jvm": "java_hadoop"}
MERGE_ON_READ = (
    "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
)
ONE_ROW_APPENDS = 100
PARTITIONS = 1_000
ROWS_OF_PARTITIONS = 200_000
PYICEBERG_UPSERT = """
import time
from hashlib import sha512
import pyarrow as pa
from pyiceberg.catalog import load_catalog

def rows(start, was):
    ids = range(start, start + {rows})
    texts = [sha512(str(i).encode()).hexdigest() * 3 for i in ids]
    columns = [pa.array(ids, pa.int64()), pa.array([i * 1.5 for i in ids]), pa.array(texts)]
    return pa.table([*columns, pa.array([was] * {rows})], ["id", "a", "b", "c"])

catalog = load_catalog(
    "up", type="sql", uri="sqlite:///{warehouse}/up.db", warehouse="{warehouse}/up"
)
catalog.create_namespace("db")
before = rows(0, "before")
table = catalog.create_table("db.t", schema=before.schema)
table.append(before)
changed = rows({rows} // 2, "after")
started = time.perf_counter()
table.upsert(changed, join_cols=["id"])
print(time.perf_counter() - started)
"""


class ChangeBench:
    """The tables of both contestants, and the statements on them."""

    def __init__(self, oracle: Oracle, scratch: Path, scale: float) -> None:
        self.spark = oracle.spark
        self.sql = oracle.sql
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        for name in ("orders", "lineitem"):
            rows = self.spark.read.parquet(str(tpch(scale)[name]))
            path = str(scratch / name)
            rows.repartition(8).write.parquet(path)
            self.spark.read.parquet(path).createOrReplaceTempView(name)
        self.table_count = 0
        self._sources()

    def _sources(self) -> None:
        """Create the sources: changed rows of 1 % of orders; changed and new rows of lineitem."""
        self._view(
            "changed_orders",
            "SELECT * EXCEPT (o_comment), 'changed' AS o_comment FROM orders "
            "WHERE pmod(xxhash64(o_orderkey), 100) = 0",
        )
        self._view(
            "changed_lines",
            "SELECT * EXCEPT (l_comment), 'changed' AS l_comment FROM lineitem "
            "WHERE pmod(xxhash64(l_orderkey, l_linenumber), 100) = 1 UNION ALL "
            "SELECT l_orderkey + 100000000 AS l_orderkey, * EXCEPT (l_orderkey, l_comment), 'new' "
            "FROM lineitem WHERE pmod(xxhash64(l_orderkey, l_linenumber), 100) = 2",
        )

    def _view(self, name: str, query: str) -> None:
        with tempfile.TemporaryDirectory(prefix="iceberg-bench-source-") as folder:
            self.sql(query).coalesce(1).write.mode("overwrite").parquet(folder)
            self.spark.read.parquet(folder).cache().createOrReplaceTempView(name)
            self.spark.table(name).count()

    def create(self, name: str, query: str, contestants: Iterable[str] = CATALOGS) -> None:
        """Create a table per contestant with the same rows, written by the JVM connector."""
        for contestant in contestants:
            self.sql(
                f"CREATE TABLE java_hadoop.bench.{name}_{contestant} USING iceberg "
                f"TBLPROPERTIES ({MERGE_ON_READ}) AS {query}"
            )

    def seconds_of(self, text: str) -> float:
        """Run a statement and return its seconds."""
        started = time.perf_counter()
        self.sql(text)
        return time.perf_counter() - started

    def undo(self, table: str, contestant: str) -> None:
        """Take a table back to its first snapshot."""
        full = f"java_hadoop.bench.{table}_{contestant}"
        first = self.sql(f"SELECT snapshot_id FROM {full}.history ORDER BY made_current_at")
        self.sql(
            f"CALL java_hadoop.system.rollback_to_snapshot('bench.{table}_{contestant}', "
            f"{first.first()[0]})"  # type: ignore[index]
        )

    def statement(self, name: str, table: str, text: str, runs: int, limit: float) -> Line:
        """Measure a statement on {t}, which is undone after each run."""

        def run(contestant: str) -> None:
            full = f"{CATALOGS[contestant]}.bench.{table}_{contestant}"
            self.sql(text.format(t=full))

        return race(
            name,
            {contestant: partial(run, contestant) for contestant in CATALOGS},
            runs=runs,
            limit=limit,
            after={contestant: partial(self.undo, table, contestant) for contestant in CATALOGS},
        )

    def changes(self, runs: int) -> Iterator[Line]:
        """Measure MERGE, DELETE and UPDATE."""
        self.create("orders", "SELECT /*+ REPARTITION(8) */ * FROM orders")
        self.create("lineitem", "SELECT /*+ REPARTITION(8) */ * FROM lineitem")
        yield self.statement(
            "MERGE: 1 % of orders updated",
            "orders",
            "MERGE INTO {t} t USING changed_orders s ON t.o_orderkey = s.o_orderkey "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            runs,
            1.2,
        )
        yield self.statement(
            "MERGE: 1 % of lineitem updated, 1 % inserted",
            "lineitem",
            "MERGE INTO {t} t USING changed_lines s ON t.l_orderkey = s.l_orderkey AND "
            "t.l_linenumber = s.l_linenumber "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            runs,
            1.2,
        )
        one_in_100 = "WHERE pmod(xxhash64(l_orderkey), 100) = 3"
        yield self.statement(
            "DELETE: 1 % of lineitem", "lineitem", "DELETE FROM {t} " + one_in_100, runs, 1.2
        )
        yield self.statement(
            "UPDATE: 1 % of lineitem",
            "lineitem",
            "UPDATE {t} SET l_comment = 'changed', l_tax = l_tax + 1 " + one_in_100,
            runs,
            1.2,
        )

    def appends(self, runs: int) -> Iterator[Line]:
        """Measure appends of the whole lineitem into a new table, of some of its columns as nested
        ones, of a part of it into many partitions, and of single rows.
        """
        for name, layout in (("", ""), (" by month", "PARTITIONED BY (months(l_shipdate))")):
            yield race(
                f"append of lineitem{name}",
                {contestant: partial(self._append, contestant, layout) for contestant in CATALOGS},
                runs=runs,
                limit=1.1,
            )
        yield race(
            "append of lists, maps and structs",
            {contestant: partial(self._append_nested, contestant) for contestant in CATALOGS},
            runs=runs,
            limit=1.1,
        )
        yield race(
            f"append of {ROWS_OF_PARTITIONS:,} rows into {PARTITIONS:,} partitions",
            {
                contestant: partial(
                    self._append,
                    contestant,
                    f"PARTITIONED BY (bucket({PARTITIONS}, l_orderkey)) "
                    "TBLPROPERTIES ('write.distribution-mode' = 'none')",
                    ROWS_OF_PARTITIONS,
                )
                for contestant in CATALOGS
            },
            runs=1,
            limit=1.0,
        )
        yield race(
            f"{ONE_ROW_APPENDS} one-row appends",
            {contestant: partial(self._append_rows, contestant) for contestant in CATALOGS},
            runs=1,
            limit=1.5,
        )

    def _new(self, contestant: str, columns: str, layout: str) -> str:
        self.table_count += 1
        full = f"{CATALOGS[contestant]}.bench.appended{self.table_count}_{contestant}"
        self.sql(f"CREATE TABLE {full} ({columns}) USING iceberg {layout}")
        return full

    def _append(self, contestant: str, layout: str, rows: int | None = None) -> None:
        columns = ", ".join(
            f"{f.name} {f.dataType.simpleString()}" for f in self.spark.table("lineitem").schema
        )
        table, some = self._new(contestant, columns, layout), f"LIMIT {rows}" if rows else ""
        self.sql(f"INSERT INTO {table} SELECT * FROM lineitem {some}")

    def _append_nested(self, contestant: str) -> None:
        columns = (
            "k BIGINT, words ARRAY<STRING>, numbers MAP<STRING, DECIMAL(12, 2)>, "
            "days ARRAY<STRUCT<name: STRING, day: DATE>>"
        )
        table = self._new(contestant, columns, "")
        self.sql(
            f"INSERT INTO {table} SELECT l_orderkey, array(l_shipmode, l_shipinstruct), "
            "map('quantity', l_quantity, 'price', l_extendedprice), "
            "array(named_struct('name', 'ship', 'day', l_shipdate)) "
            "FROM lineitem"
        )

    def _append_rows(self, contestant: str) -> None:
        full = self._new(contestant, "id BIGINT, v STRING", "")
        for i in range(ONE_ROW_APPENDS):
            self.sql(f"INSERT INTO {full} VALUES ({i}, 'v{i}')")

    def files_by_month(self) -> Mapping[str, float]:
        """Return the mean number of files per partition after an append partitioned by month."""
        means = {}
        for contestant in CATALOGS:
            self._append(contestant, "PARTITIONED BY (months(l_shipdate))")
            full = f"java_hadoop.bench.appended{self.table_count}_{contestant}"
            counted = self.sql(f"SELECT avg(file_count) FROM {full}.partitions").first()
            assert counted is not None
            means[contestant] = float(counted[0])
        return means

    def upsert(self, rows: int) -> float:
        """Return the seconds of a MERGE of `rows` rows into as many, half of which exist already.

        The rows have the size of the rows in PyIceberg's issue 3129.
        """
        base = (
            "SELECT id, id * 1.5D AS a, repeat(sha2(CAST(id AS STRING), 512), 3) AS b, "
            f"'before' AS c FROM range({rows})"
        )
        self.sql(
            "CREATE TABLE lake.bench.upsert USING iceberg "
            f"TBLPROPERTIES ({MERGE_ON_READ}) AS {base}"
        )
        source = base.replace(f"range({rows})", f"range({rows // 2}, {rows // 2 + rows})")
        source = source.replace("'before'", "'after'")
        started = time.perf_counter()
        self.sql(
            f"MERGE INTO lake.bench.upsert t USING ({source}) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        return time.perf_counter() - started

    def peak_of_a_large_delete(self, rows: int) -> float:
        """Return the driver's peak Python memory in MiB while a tenth of the rows are deleted."""
        self.sql(
            f"CREATE TABLE lake.bench.large USING iceberg TBLPROPERTIES ({MERGE_ON_READ}) AS "
            f"SELECT id FROM range({rows})"
        )
        with driver_peak_mib() as peak:
            self.sql("DELETE FROM lake.bench.large WHERE pmod(xxhash64(id), 10) = 0")
        return peak[0]


@contextmanager
def driver_peak_mib() -> Iterator[list[float]]:
    """Yield a list with this process's peak resident memory in MiB during the block."""
    peak = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], psutil.Process().memory_info().rss / 2**20)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def pyiceberg_upsert(warehouse: Path, rows: int, max_seconds: float) -> float | None:
    """Return the seconds of the same upsert by PyIceberg in a new process, or None on timeout."""
    script = PYICEBERG_UPSERT.format(warehouse=warehouse, rows=rows)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            check=True,
            capture_output=True,
            text=True,
            timeout=max_seconds,
        )
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout)


def compare(scale: float = 1.0, runs: int = RUNS, only: str | None = None) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    rows = round(1_000_000 * scale)
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                bench = ChangeBench(oracle, Path(scratch), scale)
                lines: list[Line] = []
                if only in (None, "changes"):
                    lines += bench.changes(runs)
                if only in (None, "appends"):
                    lines += bench.appends(runs)
                others = TextTable("what", "ours", "other", "at most", title="others of changes")
                if only in (None, "others"):
                    _others(bench, Path(scratch), rows, others)
        finally:
            oracle.spark.stop()
    title = f"changes by SQL: TPC-H SF{scale:g}, local[2], medians of {runs}"
    return [text_table(title, lines, {"jvm": "JVM"}), others]


def _others(bench: ChangeBench, scratch: Path, rows: int, text: TextTable) -> None:
    files = bench.files_by_month()
    text.add_row(
        "files per month of lineitem", f"{files['ours']:.2f}", f"{files['jvm']:.2f} (JVM)", "1.1x"
    )
    ours = bench.upsert(rows)
    theirs = pyiceberg_upsert(scratch, rows, 10 * ours + 30)
    shown = f"more than {10 * ours:.0f} s" if theirs is None else f"{theirs:.1f} s"
    text.add_row(
        f"upsert of {rows:,} rows into {rows:,}", f"{ours:.1f} s", f"{shown} (PyIceberg)", "30 s"
    )
    deleted = 10 * rows
    peak = bench.peak_of_a_large_delete(10 * deleted)
    text.add_row(
        f"driver's Python, {deleted:,} deleted positions", f"{peak:.0f} MiB", "", "1024 MiB"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.change_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", choices=("changes", "appends", "others"))
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs, arguments.only):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
