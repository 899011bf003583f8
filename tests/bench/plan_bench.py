"""Planning a table of 100,000 files compared with PyIceberg and Iceberg's Java library.

`python -m tests.bench.plan_bench` also shows how planning grows with the table. Each query of each
library runs in a new process. "First" is the first plan of the process with all imports (for Java,
with loading classes into a running JVM, as in Spark's driver); "again" is the best of the later
plans; "CPU" is the least processor time of a later plan, which other work on the machine disturbs
less and which is unknown for Java. All libraries read the table's metadata again for every plan.
The tables are kept between runs in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rich.console import Console
from rich.table import Table as TextTable

FILES = 100_000
FILES_PER_MANIFEST = 10_000
AGAIN = 5


class Range(NamedTuple):
    """The filter `low <= column < high`; dates are days since 1970."""

    column: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.column} >= {self._shown(self.low)} AND {self.column} < " + self._shown(
            self.high
        )

    def _shown(self, value: int) -> str:
        if self.column != "l_shipdate":
            return str(value)
        return f"'{date(1970, 1, 1) + timedelta(days=value)}'"


QUERIES: Mapping[str, Range | None] = {
    "all files": None,
    "a month": Range("l_shipdate", 8100, 8131),
    "some keys": Range("l_orderkey", 5_000_000, 5_100_000),
}

Plan: TypeAlias = Callable[[str, Range | None], int]
"""A function from a metadata file's location and a filter to the number of scan tasks."""

# Imports are inside functions, so that no process loads the modules of the other libraries.
# ruff: noqa: PLC0415


def load_ours() -> Plan:
    """Return this package's planner."""
    from iceberg_pyspark.expressions.binding import bind
    from iceberg_pyspark.expressions.predicates import AlwaysTrue
    from iceberg_pyspark.formats.manifest_columns import entries_of_manifests
    from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
    from iceberg_pyspark.planning.scan_plan import ScanPlan
    from iceberg_pyspark.spec.table_metadata import metadata_from_bytes
    from iceberg_pyspark.sql_text.filters import parse_filter
    from iceberg_pyspark.storage.files.local import LocalFileIO

    def plan(location: str, selected: Range | None) -> int:
        io = LocalFileIO()
        metadata = metadata_from_bytes(io.read_bytes(location), location)
        snapshot = metadata.current_snapshot
        if snapshot is None:
            return 0
        predicate = AlwaysTrue() if selected is None else parse_filter(str(selected))
        scan_plan = ScanPlan(
            metadata=metadata,
            manifests=read_snapshot_manifests(io, snapshot),
            predicate=bind(predicate, metadata.current_schema),
            read_entries=partial(entries_of_manifests, io),
        )
        return len(list(scan_plan.tasks()))

    return plan


def load_pyiceberg() -> Plan:
    """Return PyIceberg's planner."""
    from pyiceberg.table import StaticTable

    def plan(location: str, selected: Range | None) -> int:
        table = StaticTable.from_metadata(location)
        scan = table.scan() if selected is None else table.scan(row_filter=str(selected))
        return len(list(scan.plan_files()))

    return plan


def load_jvm() -> Plan:
    """Return the planner of Iceberg's Java library, in the JVM of a running Spark driver."""
    jvm = _running_jvm()
    iceberg = jvm.org.apache.iceberg
    expressions = iceberg.expressions.Expressions
    count = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size

    def plan(location: str, selected: Range | None) -> int:
        io = iceberg.hadoop.HadoopFileIO(jvm.org.apache.hadoop.conf.Configuration())
        scan = iceberg.BaseTable(iceberg.StaticTableOperations(location, io), "bench").newScan()
        if selected is not None:
            scan = scan.filter(
                getattr(expressions, "and")(
                    expressions.greaterThanOrEqual(selected.column, selected.low),
                    expressions.lessThan(selected.column, selected.high),
                )
            )
        return int(count(scan.planFiles()))

    return plan


def _running_jvm() -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    from tests.support.oracle import oracle_jars
    from tests.support.spark_sessions import spark_environment

    os.environ.update(spark_environment())
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.driver.extraClassPath", os.pathsep.join(str(jar) for jar in oracle_jars()))
    conf.set("spark.driver.memory", "2g")
    return launch_gateway(conf).jvm  # type: ignore[no-untyped-call]


LIBRARIES: Mapping[str, Callable[[], Plan]] = {
    "ours": load_ours,
    "PyIceberg": load_pyiceberg,
    "JVM connector": load_jvm,
}


def _measure(library: str, selected: Range | None, location: str) -> None:
    """Plan in this new process, and print times and peak memory as JSON."""
    if library == "JVM connector":
        plan = load_jvm()  # the JVM starts with Spark, not with the first plan
    seconds = []
    cpu_seconds = []
    files = 0
    for run in range(1 + AGAIN):
        start, cpu_start = time.perf_counter(), time.process_time()
        if run == 0 and library != "JVM connector":
            plan = LIBRARIES[library]()
        files = plan(location, selected)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {
        "files": files,
        "first": seconds[0],
        "again": min(seconds[1:]),
        "cpu": min(cpu_seconds[1:]),
        "peak_mib": peak,
    }
    sys.stdout.write(json.dumps(result))


def _run(library: str, selected: Range | None, location: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.plan_bench"]
    command += ["--library", library, "--metadata", location]
    command += ["--range", json.dumps(selected)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _table_location(files: int, files_per_manifest: int, *, in_order: bool = False) -> str:
    from iceberg_pyspark.storage.files.local import LocalFileIO
    from tests.bench.plan_table import make_table

    name = f"iceberg-pyspark-plan-bench-{files}" + ("-in-order" if in_order else "")
    folder = Path(tempfile.gettempdir()) / name
    location = folder / "metadata" / "00000-bench.metadata.json"
    if not location.exists():
        # Use another name until the table is complete, so that an aborted run leaves no part.
        making = Path(tempfile.mkdtemp(dir=folder.parent))
        make_table(
            LocalFileIO(), str(making), str(folder), files, files_per_manifest, in_order=in_order
        )
        making.rename(folder)
    return str(location)


def compare(files: int = FILES) -> TextTable:
    """Plan every query with all libraries and return the figures and their ratios."""
    location = _table_location(files, FILES_PER_MANIFEST)
    text = TextTable(title=f"planning a table of {files:,} data files")
    for column in ("query", "library"):
        text.add_column(column)
    for column in ("files", "first (s)", "again (s)", "CPU (s)", "peak (MiB)"):
        text.add_column(column, justify="right")
    for query, selected in QUERIES.items():
        measurements = {library: _run(library, selected, location) for library in LIBRARIES}
        for library, m in measurements.items():
            shown = [f"{m[k]:.2f}" for k in ("first", "again", "cpu")]
            size = f"{m['peak_mib']:.0f}"
            if library == "JVM connector":
                shown[2] = size = ""
            text.add_row(query, library, f"{m['files']:,}", *shown, size)
        ours = measurements["ours"]
        for library, theirs in list(measurements.items())[1:]:
            ratios = [f"{ours[k] / theirs[k]:.2f}x" for k in ("first", "again")]
            text.add_row("", f"ours/{library}", "", *ratios, end_section=library == "JVM connector")
        if len({m["files"] for m in measurements.values()}) != 1:
            text.caption = "the libraries disagree on the files to read"
    return text


def growth() -> TextTable:
    """Plan about 1,000 files of ever larger tables whose files are sorted by partition."""
    from tests.bench.plan_table import DAYS, FIRST_DAY

    text = TextTable(title="planning some days of a table, 1,000 files a manifest")
    for column in ("data files", "found", "first (s)", "again (s)", "peak (MiB)"):
        text.add_column(column, justify="right")
    for files in (10_000, 100_000, 1_000_000):
        location = _table_location(files, 1000, in_order=True)
        days = DAYS * 1000 // files
        m = _run("ours", Range("l_shipdate", FIRST_DAY + 900, FIRST_DAY + 900 + days), location)
        times = (f"{m[k]:.2f}" for k in ("first", "again"))
        text.add_row(f"{files:,}", f"{m['files']:,}", *times, f"{m['peak_mib']:.0f}")
    return text


def main() -> None:
    """Compare, or measure one query in the process that `compare` started."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="data files of the table")
    parser.add_argument("--growth", action="store_true", help="only the tables that grow")
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--range", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--metadata", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.library:
        selected = None if arguments.range is None else Range(*arguments.range)
        _measure(arguments.library, selected, arguments.metadata)
        return
    if not arguments.growth:
        Console(width=110).print(compare(arguments.files))
    Console(width=110).print(growth())


if __name__ == "__main__":
    main()
