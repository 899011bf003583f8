"""The first run of each TPC-H query in a process: `first_runs.py SIDE WAREHOUSE`.

`SIDE` is `jvm` (the connector) or `ours`. The queries run one after the other in one session, after
a query on another table that loads what every query needs. Prints one line of JSON: by query, the
seconds and the CPU seconds of all processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table as TextTable

from tests.bench.cold_steps import cpu_seconds
from tests.bench.races import Line
from tests.bench.tpch_bench import JVM
from tests.bench.tpch_queries import SETTINGS, tpch_queries
from tests.support.oracle import oracle_jars
from tests.support.spark_sessions import spark_environment, start_session

MAX_OF_ALL = 0.85
"""The limit of the geometric mean of the 22 ratios of CPU seconds."""

MAX_OF_ONE = 1.0
_WARM_UP = "SELECT n_regionkey, count(*), max(n_name) FROM nation GROUP BY n_regionkey ORDER BY 1"


def race_first_runs(warehouse: Path, runs: int) -> list[Line]:
    """Run both sides in processes of their own, in turns; return a line for each query."""
    seconds: dict[str, dict[str, list[float]]] = {}
    cpu: dict[str, dict[str, list[float]]] = {}
    turns = ["ours", "jvm"]
    for _ in range(runs):
        turns.reverse()
        for side in turns:
            for name, (taken, of_the_processor) in _run_side(side, warehouse).items():
                seconds.setdefault(name, {}).setdefault(side, []).append(taken)
                cpu.setdefault(name, {}).setdefault(side, []).append(of_the_processor)
    return [Line(name=name, seconds=seconds[name], cpu=cpu[name]) for name in seconds]


def table_of_first_runs(title: str, lines: Sequence[Line]) -> TextTable:
    """Return the medians of the processes, and the geometric means of the ratios."""
    runs = len(lines[0].seconds["ours"])
    title = f"first run of each query in a process: {title}, medians of {runs}"
    text = TextTable("line", title=title)
    columns = ("ours s", "JVM s", "ours/JVM", "ours CPU s", "JVM CPU s", "CPU ratio", "at most")
    for column in columns:
        text.add_column(column, justify="right")
    cpu = [line.of_the_processor() for line in lines]
    for line, of_the_processor in zip(lines, cpu, strict=True):
        cells = [
            f"{number:.2f}"
            for times in (line, of_the_processor)
            for number in (times.median("ours"), times.median("jvm"), times.ratio("jvm"))
        ]
        text.add_row(line.name, *cells, f"{MAX_OF_ONE}")
    wall_mean, cpu_mean = (
        f"{statistics.geometric_mean(t.ratio('jvm') for t in times):.2f}" for times in (lines, cpu)
    )
    text.add_row("mean of first runs", "", "", wall_mean, "", "", cpu_mean, f"{MAX_OF_ALL}")
    return text


def _run_side(side: str, warehouse: Path) -> Mapping[str, tuple[float, float]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.first_runs", side, str(warehouse)],
        env=spark_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{side}:\n{done.stdout}\n{done.stderr}")
    taken: Mapping[str, tuple[float, float]] = json.loads(done.stdout.splitlines()[-1])
    return taken


def main() -> None:
    """Run the queries of one side."""
    side, warehouse = sys.argv[1:]
    settings = {
        **JVM,
        **SETTINGS,
        "spark.sql.catalog.c": "iceberg_pyspark",
        "spark.sql.catalog.c.type": "hadoop",
        "spark.sql.catalog.c.warehouse": warehouse,
    }
    if side == "jvm":
        settings |= {
            "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions."
            "IcebergSparkSessionExtensions",
        }
    taken: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        spark = start_session(
            Path(scratch), settings, jars=oracle_jars()[:1] if side == "jvm" else []
        )
        if side == "ours":
            import iceberg_pyspark  # noqa: PLC0415

            iceberg_pyspark.install(spark)
        spark.sql("USE c.bench")
        spark.sql(_WARM_UP).collect()
        for name, query in tpch_queries().items():
            cpu, started = cpu_seconds(), time.perf_counter()
            spark.sql(query).collect()
            taken[name] = time.perf_counter() - started, cpu_seconds() - cpu
        spark.stop()
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
