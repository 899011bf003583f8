"""The fixed cost of a query before its first row: small reads and writes, and the bridge's start.

`python -m tests.bench.fixed_bench`. An idle Python data source, which returns three constant rows,
shows the cost of Spark's own machinery.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.races import RUNS, Line, race, text_table
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "2g"}
STARTS = 3
MAX_OF_PLANS = 1.0
"""The limit of the time to plan a query through the catalog, as a ratio to the connector's time."""
PLANS_PER_RUN = 8
_PLANNED = {
    "plan: three rows": "SELECT * FROM {catalog}.bench.small WHERE id > 1",
    "plan: partitions": (
        "SELECT p, sum(x) FROM {catalog}.bench.parted WHERE id > 77 AND p < 20 GROUP BY p"
    ),
    "plan: join": (
        "SELECT count(*) FROM {catalog}.bench.parted a JOIN {catalog}.bench.small b ON a.id = b.id"
    ),
}
"""Planning lasts from the query text to the executable plan, before the first task."""
_START = """
import sys, time
from pyspark.sql import SparkSession
from iceberg_pyspark import install
from iceberg_pyspark.spark.bridge.java_classes import load_modules

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
if sys.argv[1] == "warm":
    spark.range(100).selectExpr("sum(id * 2)").collect()
started = time.perf_counter()
load_modules(spark.sparkContext._gateway)
loaded = time.perf_counter()
install(spark)
print(loaded - started, time.perf_counter() - started)
"""


class _NoReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"id": [1, 2, 3]})


class _NoSource(DataSource):
    """A data source of three constant rows."""

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> str:
        return "id bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _NoReader()


class FixedBench:
    """The small tables, one of each kind, and the lines on them."""

    def __init__(self, oracle: Oracle) -> None:
        self.spark: SparkSession = oracle.spark
        self.spark.dataSource.register(_NoSource)
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        for name in ("small", "grows", "grows_native", "grows_portable"):
            oracle.sql(f"CREATE TABLE java_hadoop.bench.{name} (id BIGINT) USING iceberg")
        oracle.sql("INSERT INTO java_hadoop.bench.small VALUES (1), (2), (3)")
        oracle.sql(
            "CREATE TABLE java_hadoop.bench.parted USING iceberg PARTITIONED BY (p) AS "
            "SELECT id, cast(id % 80 AS INT) AS p, 'text' AS t, id AS x FROM range(100000)"
        )
        self.folder = oracle.warehouse / "bench"

    def sources(self) -> dict[str, Callable[[], DataFrame]]:
        """Return functions that load the table of three rows, by contestant."""
        spark = self.spark
        portable = spark.read.format("iceberg-py").option("native", "false")
        return {
            "ours": lambda: portable.load(str(self.folder / "small")),
            "native": lambda: spark.table("lake.bench.small"),
            "nothing": lambda: spark.read.format("nothing").load(),
            "jvm": lambda: spark.table("java_hadoop.bench.small"),
        }

    def lines(self, runs: int) -> Iterator[Line]:
        """Measure every line."""
        sources = self.sources()
        yield race("a DataFrame", sources, runs=runs)
        yield race("three rows", _each(sources, lambda frame: frame.collect()), runs=runs)
        none = {
            contestant: source for contestant, source in sources.items() if contestant != "nothing"
        }
        yield race("no row", _each(none, lambda f: f.where("id = 9").collect()), runs=runs)
        yield race("one row appended", self._appends(), runs=runs)
        for name, query in _PLANNED.items():
            yield race(name, self._plans(query), runs=runs * PLANS_PER_RUN, limit=MAX_OF_PLANS)

    def _plans(self, query: str) -> Mapping[str, Callable[[], object]]:
        def of(catalog: str) -> Callable[[], object]:
            text = query.format(catalog=catalog)
            return lambda: self.spark.sql(text)._jdf.queryExecution().executedPlan()

        return {"ours": of("lake"), "jvm": of("java_hadoop")}

    def _appends(self) -> Mapping[str, Callable[[], object]]:
        row = self.spark.createDataFrame([(1,)], "id bigint")
        portable = row.write.format("iceberg-py").option("native", "false").mode("append")
        return {
            "ours": lambda: portable.save(str(self.folder / "grows_portable")),
            "native": lambda: row.writeTo("lake.bench.grows_native").append(),
            "jvm": lambda: row.writeTo("java_hadoop.bench.grows").append(),
        }


def _each(
    sources: Mapping[str, Callable[[], DataFrame]], action: Callable[[DataFrame], object]
) -> dict[str, Callable[[], object]]:
    def of(source: Callable[[], DataFrame]) -> Callable[[], object]:
        return lambda: action(source())

    return {contestant: of(source) for contestant, source in sources.items()}


def starts() -> TextTable:
    """Measure `install()` in new processes, with and without compiling the bridge."""
    text = TextTable(
        "install()",
        "classes s",
        "in all s",
        title=f"start of the bridge: to compile its classes or load kept ones, medians of {STARTS}",
    )
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        for name, state, keep in (
            ("compiled in a new JVM", "cold", False),
            ("compiled after Spark's first query", "warm", False),
            ("with the classes that an earlier session has kept", "cold", True),
        ):
            seconds = []
            for run in range(STARTS):
                cache = str(Path(scratch) / ("kept" if keep else f"{state}{run}"))
                if keep and not run:
                    _start(state, cache)
                seconds.append(_start(state, cache))
            medians = (statistics.median(of) for of in zip(*seconds, strict=True))
            text.add_row(name, *(f"{m:.2f}" for m in medians))
    return text


def _start(state: str, cache: str) -> tuple[float, ...]:
    process = subprocess.run(
        [sys.executable, "-c", _START, state],
        env={**os.environ, "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(float, process.stdout.split()[-2:]))


def compare(runs: int = RUNS) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                lines = list(FixedBench(oracle).lines(runs))
        finally:
            oracle.spark.stop()
    others = {"native": "native", "nothing": "idle", "jvm": "JVM"}
    title = f"small reads and writes: portable path, native, an idle data source; medians of {runs}"
    return [text_table(title, lines, others), starts()]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.fixed_bench")
    parser.add_argument("--runs", type=int, default=RUNS)
    for table in compare(parser.parse_args().runs):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
