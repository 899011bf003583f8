"""TPC-H lineitem: our data source compared with the JVM connector, in turn in one session.

`python -m tests.bench.tpch_bench [--scale 1]`. The result is the ratio of the medians: all
contestants run on the same machine at the same time, once unmeasured and then several times. The
floor is a data source that hands on Arrow batches of the same files (`floor_source.py`); `--cpu`
compares the CPU seconds of all processes, which other work disturbs less.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.cold_steps import cpu_seconds
from tests.bench.floor_source import read_floor, write_floor
from tests.bench.races import RUNS, Line, race, text_table
from tests.bench.tpch_queries import Q1_COLUMNS, Q6_COLUMNS, Q6_FILTER, full_scan, q1, q6
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
FILES = 8
MAX_OF_FLOOR = 1.1


def python_peak_mib(action: Callable[[], object]) -> float:
    """Return the peak resident memory in MiB of any Spark Python worker while an action runs."""
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "python" in process.name():
                        peak = max(peak, process.memory_info().rss / 2**20)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        action()
    finally:
        done.set()
        thread.join()
    return peak


class LineitemBench:
    """The lines on one lineitem table, which the JVM connector has written."""

    def __init__(self, oracle: Oracle, scratch: Path, scale: float) -> None:
        self.spark = oracle.spark
        self.scratch = scratch
        self.written = 0
        # One source for both writers, with as many files as the table will have.
        source = str(scratch / "lineitem")
        lineitem = self.spark.read.parquet(str(tpch(scale)["lineitem"]))
        lineitem.repartition(FILES).write.parquet(source)
        self.source = self.spark.read.parquet(source)
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        for name, version in (("lineitem", "2"), ("vectors", "3")):
            (
                self.source.repartition(FILES)
                .writeTo(f"java_hadoop.bench.{name}")
                .using("iceberg")
                .tableProperty("format-version", version)
                .tableProperty("write.delete.mode", "merge-on-read")
                .create()
            )
        oracle.sql("DELETE FROM java_hadoop.bench.vectors WHERE pmod(xxhash64(l_orderkey), 20) = 0")
        self.folder = oracle.warehouse / "bench"

    def ours(self, table: str = "lineitem", **options: str) -> DataFrame:
        """Return a table as our data source reads it."""
        source = self.spark.read.format("iceberg-py").options(**options)
        return source.load(str(self.folder / table))

    def jvm(self, table: str = "lineitem") -> DataFrame:
        """Return a table as the JVM connector reads it."""
        return self.spark.table(f"java_hadoop.bench.{table}")

    def floor(self, table: str = "lineitem", columns: str | None = None) -> DataFrame:
        """Return a table's files as pyarrow reads them."""
        return read_floor(self.spark, str(self.folder / table), columns)

    def lines(self, runs: int, *, cpu: bool) -> list[Line]:
        """Measure every line; `limit` is for the ratio to the floor."""

        def line(name: str, limit: float | None, **contestants: Callable[[], object]) -> Line:
            return race(
                name,
                {c: _cpu_of(action) for c, action in contestants.items()} if cpu else contestants,
                runs=runs,
                limit=limit,
                are_seconds=cpu,
            )

        return [
            line(
                "Q1, projected",
                MAX_OF_FLOOR,
                ours=lambda: q1(self.ours(columns=Q1_COLUMNS)),
                floor=lambda: q1(self.floor(columns=Q1_COLUMNS)),
                jvm=lambda: q1(self.jvm()),
            ),
            line(
                "Q6, projected and filtered",
                None,
                ours=lambda: q6(self.ours(columns=Q6_COLUMNS, filter=Q6_FILTER)),
                floor=lambda: q6(self.floor(columns=Q6_COLUMNS)),
                jvm=lambda: q6(self.jvm()),
            ),
            *(
                line(
                    name,
                    MAX_OF_FLOOR,
                    ours=lambda t=table: full_scan(self.ours(t)),  # type: ignore[misc]
                    floor=lambda t=table: full_scan(self.floor(t)),  # type: ignore[misc]
                    jvm=lambda t=table: full_scan(self.jvm(t)),  # type: ignore[misc]
                )
                for name, table in (("full scan", "lineitem"), ("the same, 5 % deleted", "vectors"))
            ),
            line(
                "append",
                MAX_OF_FLOOR,
                ours=self.append_ours,
                floor=self.append_floor,
                jvm=self.append_jvm,
            ),
        ]

    def append_ours(self) -> None:
        """Write all of lineitem to a new table with our data source."""
        self.written += 1
        path = str(self.scratch / f"ours{self.written}")
        self.source.write.format("iceberg-py").mode("append").save(path)

    def append_floor(self) -> None:
        """Write all of lineitem to new Parquet files with pyarrow."""
        self.written += 1
        write_floor(self.source, self.scratch / f"floor{self.written}")

    def append_jvm(self) -> None:
        """Write all of lineitem to a new table with the JVM connector."""
        self.written += 1
        self.source.writeTo(f"java_hadoop.bench.w{self.written}").using("iceberg").create()

    def worker_memory(self) -> dict[str, float]:
        """Return the peak memory in MiB of a Python worker in a full scan and in an append."""
        return {
            "full scan": python_peak_mib(lambda: full_scan(self.ours())),
            "append": python_peak_mib(self.append_ours),
        }


def _cpu_of(action: Callable[[], object]) -> Callable[[], float]:
    """Return a function that runs an action and returns its CPU seconds."""

    def run() -> float:
        started = cpu_seconds()
        action()
        return cpu_seconds() - started

    return run


def compare(scale: float = 1.0, runs: int = RUNS, *, cpu: bool = False) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            bench = LineitemBench(oracle, Path(scratch), scale)
            lines = bench.lines(runs, cpu=cpu)
            memory = bench.worker_memory()
        finally:
            oracle.spark.stop()
    kind = ", CPU seconds" if cpu else ""
    title = f"portable path: lineitem SF{scale:g}, {FILES} files, local[2], medians of {runs}{kind}"
    times = text_table(title, lines, {"floor": "floor", "jvm": "JVM"})
    sizes = TextTable("worker at its largest", "MiB", "at most", title="Python workers")
    for name, mib in memory.items():
        sizes.add_row(name, f"{mib:.0f}", "512")
    return [times, sizes]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.tpch_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--cpu", action="store_true")
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs, cpu=arguments.cpu):
        Console().print(table)


if __name__ == "__main__":
    main()
