"""Sixteen writers of one table with default properties: how long an append waits for others.

`python -m tests.bench.writer_bench`. Every append is a separate commit; the limit applies to the
slowest append of all.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import TableCatalog
from tests.support.catalog_processes import EVENTS, open_catalog, run_together
from tests.support.many_writers import SCHEMA, append_in_threads, append_many

WRITERS = 16
APPENDS = 20
LIMIT_S = 10


def compare(appends: int = APPENDS) -> list[TextTable]:
    """Return a table with a row for each kind of catalog and of writers."""
    table = TextTable(title=f"{WRITERS} writers x {appends} appends, one table, default properties")
    for column in ("catalog", "writers", "acknowledged", "in all", "median", "slowest", "limit"):
        table.add_column(column, justify="left" if column in ("catalog", "writers") else "right")
    for kind in ("sql", "hadoop"):
        for how in ("threads", "processes"):
            took, whole = _measure(kind, how, appends)
            table.add_row(
                kind,
                how,
                f"{len(took)} of {WRITERS * appends}",
                f"{whole:.1f} s",
                f"{statistics.median(took):.2f} s",
                f"{max(took):.2f} s",
                f"{LIMIT_S} s",
            )
    return [table]


def _measure(kind: str, how: str, appends: int) -> tuple[list[float], float]:
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        catalog = open_catalog(kind, folder)
        catalog.create_namespace(EVENTS.namespace)
        TableCatalog(catalog).create_table(str(EVENTS), SCHEMA)
        started = time.monotonic()
        if how == "threads":
            done = append_in_threads(kind, folder, WRITERS, appends)
        else:
            arguments = [(kind, folder, worker, appends) for worker in range(WRITERS)]
            done = run_together(append_many, arguments)
        return [t for times in done for t in times], time.monotonic() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.bench.writer_bench")
    parser.add_argument("--appends", type=int, default=APPENDS)
    for table in compare(parser.parse_args().appends):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
