"""TPC-H lineitem: our data source compared with the JVM connector, in turn in one session.

`python -m tests.bench.tpch_bench [--scale 1]`. The result is the ratio of the medians: both
contestants run on the same machine at the same time, once unmeasured and then several times.
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

from tests.bench.races import RUNS, Line, race, text_table
from tests.bench.tpch_queries import Q1_COLUMNS, Q6_COLUMNS, Q6_FILTER, full_scan, q1, q6
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
FILES = 8


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
        self.source.repartition(FILES).writeTo("java_hadoop.bench.lineitem").using(
            "iceberg"
        ).create()
        self.path = str(oracle.warehouse / "bench" / "lineitem")

    def ours(self, **options: str) -> DataFrame:
        """Return the table as our data source reads it."""
        return self.spark.read.format("iceberg-py").options(**options).load(self.path)

    def jvm(self) -> DataFrame:
        """Return the table as the JVM connector reads it."""
        return self.spark.table("java_hadoop.bench.lineitem")

    def lines(self, runs: int) -> list[Line]:
        """Measure every line."""
        return [
            race(
                "Q1, projected",
                {"ours": lambda: q1(self.ours(columns=Q1_COLUMNS)), "jvm": lambda: q1(self.jvm())},
                runs=runs,
                limit=1.7,
            ),
            race(
                "Q6, projected and filtered",
                {
                    "ours": lambda: q6(self.ours(columns=Q6_COLUMNS, filter=Q6_FILTER)),
                    "jvm": lambda: q6(self.jvm()),
                },
                runs=runs,
                limit=1.7,
            ),
            race(
                "full scan",
                {"ours": lambda: full_scan(self.ours()), "jvm": lambda: full_scan(self.jvm())},
                runs=runs,
            ),
            race(
                "append",
                {"ours": self.append_ours, "jvm": self.append_jvm},
                runs=runs,
                limit=1.4,
            ),
        ]

    def append_ours(self) -> None:
        """Write all of lineitem to a new table with our data source."""
        self.written += 1
        path = str(self.scratch / f"ours{self.written}")
        self.source.write.format("iceberg-py").mode("append").save(path)

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


def compare(scale: float = 1.0, runs: int = RUNS) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            bench = LineitemBench(oracle, Path(scratch), scale)
            lines = bench.lines(runs)
            memory = bench.worker_memory()
        finally:
            oracle.spark.stop()
    title = f"portable path: TPC-H lineitem SF{scale:g}, {FILES} files, local[2], medians of {runs}"
    times = text_table(title, lines, {"jvm": "JVM"})
    sizes = TextTable("worker at its largest", "MiB", "at most", title="Python workers")
    for name, mib in memory.items():
        sizes.add_row(name, f"{mib:.0f}", "512")
    return [times, sizes]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.tpch_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs):
        Console().print(table)


if __name__ == "__main__":
    main()
