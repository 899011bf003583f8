"""Planning a table of 100,000 files, beside PyIceberg: `python -m tests.bench.plan_bench`.

Each query of each library runs in a process of its own. "First" is that process's first plan,
"again" the best of the plans after it, and "CPU" its processor time, which other work on the
machine disturbs less. Both libraries read the table's metadata anew for every plan. The table is
kept between runs in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table as TextTable

FILES = 100_000
FILES_PER_MANIFEST = 10_000
AGAIN = 5


def _day(number: int) -> date:
    return date(1970, 1, 1) + timedelta(days=number)


QUERIES: Mapping[str, str | None] = {
    "all files": None,
    "a month": f"l_shipdate >= '{_day(8100)}' AND l_shipdate < '{_day(8131)}'",
    "some keys": "l_orderkey >= 5000000 AND l_orderkey < 5100000",
}

Plan: TypeAlias = Callable[[str, str | None], int]
"""From the location of a metadata file and a filter to the number of scan tasks."""

# Imports stand in functions, so that neither library's process pays for the other's in memory.
# ruff: noqa: PLC0415


def load_ours() -> Plan:
    """This package's planner."""
    from iceberg_pyspark.expressions.binding import bind
    from iceberg_pyspark.expressions.predicates import AlwaysTrue
    from iceberg_pyspark.planning.scan_plan import ScanPlan
    from iceberg_pyspark.spec.table_metadata import metadata_from_bytes
    from iceberg_pyspark.storage.local import LocalFileIO
    from iceberg_pyspark.storage.manifest_files import read_snapshot_manifests
    from iceberg_pyspark.storage.manifests import read_entries
    from iceberg_pyspark.table.filter_strings import parse_filter

    def plan(location: str, filter_text: str | None) -> int:
        io = LocalFileIO()
        metadata = metadata_from_bytes(io.read_bytes(location), location)
        snapshot = metadata.current_snapshot
        if snapshot is None:
            return 0
        predicate = AlwaysTrue() if filter_text is None else parse_filter(filter_text)
        scan_plan = ScanPlan(
            metadata=metadata,
            manifests=read_snapshot_manifests(io, snapshot),
            predicate=bind(predicate, metadata.current_schema),
            read_entries=partial(read_entries, io),
        )
        return len(list(scan_plan.tasks()))

    return plan


def load_pyiceberg() -> Plan:
    """PyIceberg's planner."""
    from pyiceberg.table import StaticTable

    def plan(location: str, filter_text: str | None) -> int:
        table = StaticTable.from_metadata(location)
        scan = table.scan() if filter_text is None else table.scan(row_filter=filter_text)
        return len(list(scan.plan_files()))

    return plan


LIBRARIES: Mapping[str, Callable[[], Plan]] = {"ours": load_ours, "PyIceberg": load_pyiceberg}


def _measure(library: str, query: str, location: str) -> None:
    """In a process of its own: plan, and print times and peak memory as JSON."""
    plan = LIBRARIES[library]()
    seconds = []
    cpu_seconds = []
    files = 0
    for _ in range(1 + AGAIN):
        start, cpu_start = time.perf_counter(), time.process_time()
        files = plan(location, QUERIES[query])
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


def _run(library: str, query: str, location: str) -> dict[str, float]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.plan_bench"]
    command += ["--library", library, "--query", query, "--metadata", location]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _table_location(files: int) -> str:
    from iceberg_pyspark.storage.local import LocalFileIO
    from tests.bench.plan_table import make_table

    folder = Path(tempfile.gettempdir()) / f"iceberg-pyspark-plan-bench-{files}"
    location = folder / "metadata" / "00000-bench.metadata.json"
    if not location.exists():
        # made under another name, so that a run that was broken off leaves no half table
        making = Path(tempfile.mkdtemp(dir=folder.parent))
        make_table(LocalFileIO(), str(making), str(folder), files, FILES_PER_MANIFEST)
        making.rename(folder)
    return str(location)


def compare(files: int = FILES) -> TextTable:
    """Plan every query with both libraries and tell the figures and their ratio."""
    location = _table_location(files)
    text = TextTable(title=f"planning a table of {files:,} data files")
    for column in ("query", "library"):
        text.add_column(column)
    for column in ("files", "first (s)", "again (s)", "CPU (s)", "peak (MiB)"):
        text.add_column(column, justify="right")
    for query in QUERIES:
        found = {library: _run(library, query, location) for library in LIBRARIES}
        for library, m in found.items():
            times = (f"{m[k]:.2f}" for k in ("first", "again", "cpu"))
            text.add_row(query, library, f"{m['files']:,}", *times, f"{m['peak_mib']:.0f}")
        ours, theirs = found.values()
        ratios = (theirs[k] / ours[k] for k in ("first", "again", "cpu", "peak_mib"))
        text.add_row("", "ratio", "", *(f"{r:.1f}x" for r in ratios), end_section=True)
        if ours["files"] != theirs["files"]:
            text.caption = "the two libraries disagree on the files to read"
    return text


def main() -> None:
    """Compare, or measure one query in the process that `compare` started."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="data files of the table")
    parser.add_argument("--library", choices=LIBRARIES, help=argparse.SUPPRESS)
    parser.add_argument("--query", choices=QUERIES, help=argparse.SUPPRESS)
    parser.add_argument("--metadata", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.library:
        _measure(arguments.library, arguments.query, arguments.metadata)
    else:
        Console().print(compare(arguments.files))


if __name__ == "__main__":
    main()
