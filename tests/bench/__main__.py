"""Every figure the project promises, measured and written to `tests/bench/RESULTS.md`: `make
bench`.
"""

from __future__ import annotations

import io
import os
import platform
from datetime import datetime, timezone
from pathlib import Path

import psutil
import pyarrow
import pyspark
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench import plan_bench, tpch_bench

RESULTS = Path(__file__).with_name("RESULTS.md")


def machine() -> str:
    """The machine's shape and what ran on it."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, pyspark {pyspark.__version__}, "
        f"pyarrow {pyarrow.__version__}; JVM connector iceberg-spark-runtime 1.12.0, "
        f"PyIceberg 0.12; {datetime.now(timezone.utc):%Y-%m-%d}"
    )


def as_text(table: TextTable) -> str:
    """A table as lines of plain text."""
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def main() -> None:
    """Measure, print, write."""
    tables = [plan_bench.compare(), *tpch_bench.compare()]
    blocks = "\n\n".join(f"```\n{as_text(t)}\n```" for t in tables)
    RESULTS.write_text(
        "# Figures\n\nMade by `make bench`, never typed. Ratios are ours over the other's, in "
        f"one run; times move with the machine.\n\n{machine()}\n\n{blocks}\n",
        encoding="utf-8",
    )
    for table in tables:
        Console().print(table)


if __name__ == "__main__":
    main()
