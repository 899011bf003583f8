"""MERGE by a client of Spark Connect, beside native SQL and the JVM connector, in turns.

`python -m tests.bench.connect_bench [--scale 1]`. Server and client are processes of their own; the
server has no Iceberg but the format `iceberg-py`. Each contestant changes its own copy of orders,
which the JVM connector wrote, and which is rolled back before the next run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.change_bench import JVM, ChangeBench
from tests.bench.races import RUNS, Line, race, text_table
from tests.support.native_lake import native_lake
from tests.support.oracle import start_oracle
from tests.support.spark_sessions import ROOT, connect_server, spark_environment

CATALOGS = {"ours": "java_hadoop", "native": "lake", "jvm": "java_hadoop"}
NAMES = {"native": "native", "jvm": "JVM"}
GOALS = "at most 1.5 of native, 1.0 of the JVM connector"

_MERGE = (
    "MERGE INTO {t} t USING changed_orders s ON t.o_orderkey = s.o_orderkey "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
_CLIENT = """
import sys, time
from pyspark.sql import SparkSession
import iceberg_pyspark as ice

url, path, source = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
table = ice.install(spark).table(path)
changed = spark.read.parquet(source).cache()
changed.count()
for line in sys.stdin:
    begin = time.perf_counter()
    merge = table.merge_into(changed, "t.o_orderkey = s.o_orderkey")
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    print(time.perf_counter() - begin, flush=True)
"""


class Client:
    """A process that merges when it is asked to."""

    def __init__(self, url: str, table: Path, source: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, url, str(table), str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=spark_environment(),
        )

    def merge(self) -> float:
        """Return the seconds of a merge."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("merge\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()


@contextmanager
def client(url: str, table: Path, source: Path) -> Iterator[Client]:
    """Run a client until the block ends."""
    started = Client(url, table, source)
    try:
        yield started
    finally:
        started.end()


def compare(scale: float = 1, runs: int = RUNS) -> list[TextTable]:
    """Measure a MERGE of 1 % of orders: updates only."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        scratch = Path(folder)
        oracle = start_oracle(scratch, JVM)
        try:
            with native_lake(oracle):
                bench = ChangeBench(oracle, scratch, scale)
                source = scratch / "changed_orders"
                oracle.sql("SELECT * FROM changed_orders").write.parquet(str(source))
                bench.create("orders", "SELECT /*+ REPARTITION(8) */ * FROM orders", CATALOGS)
                settings = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
                with connect_server(scratch / "server", settings) as url:
                    table = oracle.warehouse / "bench" / "orders_ours"
                    with client(url, table, source) as merging:
                        line = _merges(bench, merging, runs)
        finally:
            oracle.spark.stop()
    title = f"MERGE under Spark Connect: TPC-H SF{scale:g}, local[2], medians of {runs}; {GOALS}"
    return [text_table(title, [line], NAMES)]


def _merges(bench: ChangeBench, merging: Client, runs: int) -> Line:
    def run(contestant: str) -> float:
        if contestant == "ours":
            return merging.merge()
        table = f"{CATALOGS[contestant]}.bench.orders_{contestant}"
        return bench.seconds_of(_MERGE.format(t=table))

    return race(
        "MERGE: 1 % of orders updated",
        {contestant: partial(run, contestant) for contestant in CATALOGS},
        runs=runs,
        after={c: partial(bench.undo, "orders", c) for c in CATALOGS},
        are_seconds=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1)
    for text in compare(parser.parse_args().scale):
        Console(width=132).print(text)
