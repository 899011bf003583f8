"""TPC-H lineitem: our data source beside the JVM connector, in one session, in turn.

`python -m tests.bench.tpch_bench [--scale 1]`. What counts is the ratio of the medians: both run on
the same machine at the same time of day, each once unmeasured and then several times.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# the JVM as a user has it: tests run one that starts fast and never gets up to speed
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
RUNS = 5
FILES = 8
Q1_COLUMNS = "l_returnflag,l_linestatus,l_quantity,l_extendedprice,l_discount,l_tax,l_shipdate"
Q6_COLUMNS = "l_extendedprice,l_discount,l_quantity,l_shipdate"
Q6_FILTER = (
    "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measured line; `limit` is the ratio the project promises, None where it promises none."""

    name: str
    seconds: Mapping[str, list[float]]
    limit: float | None

    @property
    def ratio(self) -> float:
        """Our median over the JVM connector's."""
        return statistics.median(self.seconds["ours"]) / statistics.median(self.seconds["jvm"])


def q1(frame: DataFrame) -> None:
    """TPC-H query 1."""
    frame.createOrReplaceTempView("q1_input")
    frame.sparkSession.sql(
        """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)),
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM q1_input WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus
        """
    ).collect()


def q6(frame: DataFrame) -> None:
    """TPC-H query 6."""
    frame.createOrReplaceTempView("q6_input")
    frame.sparkSession.sql(
        f"SELECT sum(l_extendedprice * l_discount) FROM q6_input WHERE {Q6_FILTER}"
    ).collect()


def full_scan(frame: DataFrame) -> None:
    """Every column of every row, handed to nobody."""
    frame.write.format("noop").mode("overwrite").save()


def race(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    runs: int = RUNS,
    limit: float | None = None,
) -> Line:
    """Run the contestants in turn, once unmeasured, then `runs` times."""
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    for run in range(runs + 1):
        for who, action in contestants.items():
            started = time.perf_counter()
            action()
            if run:
                seconds[who].append(time.perf_counter() - started)
    return Line(name=name, seconds=seconds, limit=limit)


def python_peak_mib(action: Callable[[], object]) -> float:
    """The largest resident size of any Python worker of Spark while an action runs."""
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
    """The lines on one lineitem table, written by the JVM connector."""

    def __init__(self, oracle: Oracle, scratch: Path, scale: float) -> None:
        self.spark = oracle.spark
        self.scratch = scratch
        self.written = 0
        # one source for both writers, of as many files as the table is to have
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
        """The table read by our data source."""
        return self.spark.read.format("iceberg-py").options(**options).load(self.path)

    def jvm(self) -> DataFrame:
        """The table read by the JVM connector."""
        return self.spark.table("java_hadoop.bench.lineitem")

    def lines(self, runs: int) -> list[Line]:
        """Every line, measured."""
        return [
            race(
                "Q1, projected",
                {"ours": lambda: q1(self.ours(columns=Q1_COLUMNS)), "jvm": lambda: q1(self.jvm())},
                runs=runs,
                limit=2.5,
            ),
            race(
                "Q6, projected and filtered",
                {
                    "ours": lambda: q6(self.ours(columns=Q6_COLUMNS, filter=Q6_FILTER)),
                    "jvm": lambda: q6(self.jvm()),
                },
                runs=runs,
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
        """Largest Python worker of a full scan and of an append, in MiB."""
        return {
            "full scan": python_peak_mib(lambda: full_scan(self.ours())),
            "append": python_peak_mib(self.append_ours),
        }


def compare(scale: float = 1.0, runs: int = RUNS) -> list[TextTable]:
    """Measure everything; the tables to show."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            bench = LineitemBench(oracle, Path(scratch), scale)
            lines = bench.lines(runs)
            memory = bench.worker_memory()
        finally:
            oracle.spark.stop()
    title = f"TPC-H lineitem SF{scale:g}, {FILES} files, local[2], medians of {runs}"
    times = TextTable("line", "ours s", "JVM s", "ratio", "at most", title=title)
    for line in lines:
        times.add_row(
            line.name,
            f"{statistics.median(line.seconds['ours']):.2f}",
            f"{statistics.median(line.seconds['jvm']):.2f}",
            f"{line.ratio:.2f}",
            "" if line.limit is None else f"{line.limit}",
        )
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
