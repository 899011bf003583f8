"""The native path compared with the JVM connector and Spark's own Parquet source.

`python -m tests.bench.native_bench [--scale 1] [--only Q1] [--tables plain,vectors]`. The JVM
connector writes all tables in one session: lineitem without deletes, with deletion vectors on 5 %
of its rows, with position deletes on the same rows, and with 1,000 deleted keys; lineitem as ORC
files, also in a table of version 1, whose ORC files Python reads; and a table of many small files.
"""

from __future__ import annotations

import argparse
import tempfile
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import load_catalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.new_data import write_context_of
from tests.bench.races import RUNS, Line, race, text_table
from tests.bench.tpch_queries import full_scan, point_lookup, q1, q3, q6, row_count
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
FILES = 8
SMALL_FILES = 10_000
DELETED_KEYS = 1_000
LIMITS = {"plain": 1.0, "vectors": 1.0, "positions": 1.2, "keys": 1.2}
READ_BY_PYTHON = "orc_v1"
SHOWN = {
    "plain": "no deletes",
    "vectors": "deletion vectors 5 %",
    "positions": "position deletes 5 %",
    "keys": f"{DELETED_KEYS:,} deleted keys",
    "orc": "ORC",
}


class NativeBench:
    """The tables, and the lines on them."""

    def __init__(self, oracle: Oracle, scratch: Path, scale: float, tables: list[str]) -> None:
        self.oracle = oracle
        self.spark = oracle.spark
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        source = str(scratch / "lineitem")
        self.spark.read.parquet(str(tpch(scale)["lineitem"])).repartition(FILES).write.parquet(
            source
        )
        self.source = self.spark.read.parquet(source)
        for name in ("orders", "customer"):
            rows = self.spark.read.parquet(str(tpch(scale)[name]))
            rows.repartition(2).writeTo(f"java_hadoop.bench.{name}").using("iceberg").create()
        for name in tables:
            self._make(name)

    def _make(self, name: str) -> None:
        if name == "orc":
            self._make(READ_BY_PYTHON)
        full = f"java_hadoop.bench.{name}"
        version = {"vectors": "3", READ_BY_PYTHON: "1"}.get(name, "2")
        (
            self.source.repartition(FILES)
            .writeTo(full)
            .using("iceberg")
            .tableProperty("format-version", version)
            .tableProperty("write.format.default", "orc" if "orc" in name else "parquet")
            .tableProperty("write.delete.mode", "merge-on-read")
            .create()
        )
        if name in ("vectors", "positions"):
            self.oracle.sql(f"DELETE FROM {full} WHERE pmod(xxhash64(l_orderkey), 20) = 0")
        if name == "keys":
            keys = [
                (row[0],)
                for row in self.source.select("l_orderkey")
                .distinct()
                .orderBy("l_orderkey")
                .where("pmod(xxhash64(l_orderkey), 100) = 7")
                .limit(DELETED_KEYS)
                .collect()
            ]
            self.oracle.write_equality_deletes(full, ["l_orderkey"], keys)

    def contestants(
        self, table: str, query: Callable[..., object], *others: str
    ) -> Mapping[str, Callable[[], object]]:
        """Return the query on a table, joined with others if given, by contestant."""

        def run(catalog: str, first: str = table) -> object:
            return query(*(self.spark.table(f"{catalog}.bench.{t}") for t in (first, *others)))

        contestants: dict[str, Callable[[], object]] = {
            "ours": partial(run, "lake"),
            "jvm": partial(run, "java_hadoop"),
        }
        if table == "plain":
            contestants["parquet"] = lambda: query(*(self._parquet(t) for t in (table, *others)))
        if table == "orc":
            contestants["python"] = partial(run, "lake", READ_BY_PYTHON)
        return contestants

    def _parquet(self, table: str) -> DataFrame:
        return self.spark.read.parquet(str(self.oracle.warehouse / "bench" / table / "data"))

    def lines(self, table: str, runs: int, only: str | None) -> list[Line]:
        """Measure every line on one table."""
        queries: Mapping[str, tuple[Callable[..., object], tuple[str, ...]]] = {
            "full scan": (full_scan, ()),
            "Q1": (q1, ()),
            "Q6": (q6, ()),
            "count(*)": (row_count, ()),
            "point lookup": (point_lookup, ()),
            "Q3": (q3, ("orders", "customer")),
        }
        return [
            race(
                f"{name}: {SHOWN[table]}",
                self.contestants(table, query, *others),
                runs=runs,
                limit=LIMITS.get(table),
            )
            for name, (query, others) in queries.items()
            if only is None or only == name
        ]

    def small_files(self, runs: int) -> Line:
        """Measure a selective query on a table of many small files."""
        catalog = load_catalog("small", type="hadoop", warehouse=str(self.oracle.warehouse))
        catalog.create_namespace("bench", if_not_exists=True)
        table = catalog.create_table("bench.small", schema="id BIGINT, v STRING")
        context = write_context_of(
            "bench.small", table.metadata, table.io, write_id=str(uuid.uuid4())
        )
        rows = 20
        ids = pa.array(range(SMALL_FILES * rows))
        batch = pa.record_batch([ids, ids.cast(pa.string())], ["id", "v"])
        files: list[DataFile] = []
        for i in range(SMALL_FILES):
            piece = batch.slice(i * rows, rows)
            files += write_data_files(context, [piece], table.io, partition_id=i, task_id=i)
        with table.transaction() as transaction:
            transaction.add_snapshot(AppendFiles(data_files=tuple(files)))

        def run(catalog: str) -> object:
            rows = self.spark.table(f"{catalog}.bench.small")
            return rows.where("id BETWEEN 100000 AND 100100").collect()

        return race(
            f"some ids of {SMALL_FILES:,} small files",
            {"ours": partial(run, "lake"), "jvm": partial(run, "java_hadoop")},
            runs=runs,
            limit=1.0,
        )


def compare(
    scale: float = 1.0,
    runs: int = RUNS,
    *,
    tables: list[str] | None = None,
    only: str | None = None,
    small: bool = True,
) -> list[TextTable]:
    """Measure everything and return the table to print."""
    names = list(SHOWN) if tables is None else tables
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                bench = NativeBench(oracle, Path(scratch), scale, names)
                lines = [line for name in names for line in bench.lines(name, runs, only)]
                if small:
                    lines.append(bench.small_files(runs))
        finally:
            oracle.spark.stop()
    title = f"native scans beside the JVM connector and Spark's own Parquet source: SF{scale:g}, "
    title += f"{FILES} files, local[2], medians of {runs}"
    return [text_table(title, lines, {"jvm": "JVM", "parquet": "Parquet", "python": "Python"})]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.bench.native_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", help="the one query to run")
    parser.add_argument("--tables", default=",".join(SHOWN), help="which of " + ", ".join(SHOWN))
    parser.add_argument("--no-small", action="store_true", help="without the small files")
    arguments = parser.parse_args()
    tables = [t for t in arguments.tables.split(",") if t]
    for table in compare(
        arguments.scale,
        arguments.runs,
        tables=tables,
        only=arguments.only,
        small=not arguments.no_small,
    ):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
