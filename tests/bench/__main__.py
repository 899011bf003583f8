"""Measure every figure that the project promises and write `tests/bench/RESULTS.md`.

Run `make bench`, or `make bench ARGS="planning native"` for some sections only, which leaves the
other sections unchanged.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import psutil
import pyarrow
import pyspark
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench import (
    catalog_bench,
    change_bench,
    cold_bench,
    connect_bench,
    curve_bench,
    encryption_bench,
    fixed_bench,
    growth_bench,
    large_change_bench,
    maintenance_bench,
    native_bench,
    plan_bench,
    python_bench,
    query_bench,
    row_changes_bench,
    store_bench,
    store_scan_bench,
    stream_bench,
    tpch_bench,
    variant_bench,
    version_bench,
    writer_bench,
)

RESULTS = Path(__file__).with_name("RESULTS.md")
SECTIONS: Mapping[str, Callable[[], list[TextTable]]] = {
    "planning": lambda: [plan_bench.compare(), plan_bench.growth()],
    "native": native_bench.compare,
    "queries": query_bench.compare_queries,
    "scans": query_bench.compare_scans,
    "portable": tpch_bench.compare,
    "fixed": fixed_bench.compare,
    "cold": cold_bench.compare,
    "changes": change_bench.compare,
    "large_changes": large_change_bench.compare,
    "streams": stream_bench.compare,
    "row_changes": lambda: [*row_changes_bench.compare(), *connect_bench.compare()],
    "writers": writer_bench.compare,
    "python": python_bench.compare,
    "catalogs": catalog_bench.compare,
    "maintenance": maintenance_bench.compare,
    "curves": lambda: [*curve_bench.compare(), *growth_bench.compare()],
    "version_4": version_bench.compare,
    "encryption": encryption_bench.compare,
    "variants": variant_bench.compare,
    "stores": lambda: [*store_bench.compare(), *store_scan_bench.compare()],
}
WIDTH = 132
"""Width of the printed tables in columns, so wide that no line's name is wrapped."""

TITLE = (
    "# Figures\n\nMade by `make bench`, never typed. Ratios are ours over the other's, in one run; "
    "times move with the machine.\n"
)


def machine() -> str:
    """Return a description of the machine and of the software versions."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, pyspark {pyspark.__version__}, "
        f"pyarrow {pyarrow.__version__}; JVM connector iceberg-spark-runtime 1.12.0, "
        f"PyIceberg 0.12; {datetime.now(timezone.utc):%Y-%m-%d}"
    )


def as_text(table: TextTable) -> str:
    """Return a table as lines of plain text."""
    out = io.StringIO()
    Console(file=out, width=WIDTH, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def read_sections() -> dict[str, str]:
    """Return the sections of the results file by name."""
    if not RESULTS.exists():
        return {}
    _, *sections = re.split(r"^## (\w+)\n", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(sections[::2], sections[1::2], strict=True)}


def main() -> None:
    """Measure the requested sections, print them, and write the results file."""
    parser = argparse.ArgumentParser(prog="tests.bench")
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    names = parser.parse_args().sections or list(SECTIONS)
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if len(names) > 1:
        # A process has one JVM, whose jars are those of its first section.
        for name in names:
            subprocess.run([sys.executable, "-m", "tests.bench", name], check=True)
        return
    sections = read_sections()
    for name in names:
        tables = SECTIONS[name]()
        blocks = "\n\n".join(f"```\n{as_text(t)}\n```" for t in tables)
        sections[name] = f"{machine()}\n\n{blocks}"
        text = "".join(f"\n## {n}\n\n{sections[n]}\n" for n in SECTIONS if n in sections)
        RESULTS.write_text(TITLE + text, encoding="utf-8")
        for table in tables:
            Console(width=WIDTH).print(table)


if __name__ == "__main__":
    main()
