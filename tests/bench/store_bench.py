"""A table in S3 on this machine, read and planned without Spark, compared with PyIceberg.

`python -m tests.bench.store_bench`. Requests are counted in the server's log. Planning is of one
manifest per file, with a delay of 20 ms before each answer of the server. Our metadata cache is
off, because PyIceberg has no such cache. Times are the best of three.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.table import StaticTable
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import Table, TableCatalog, load_catalog
from tests.services.s3 import S3Server, s3_server
from tests.services.toxiproxy import toxiproxy
from tests.support.tpch import tpch

SCALE_FACTOR = 1.0
SMALL_FILES = 100
LATENCY_MS = 20
_TIMES = 3
_NO_CACHE = {"io.manifest.cache-enabled": "false"}
_Q6 = (
    "l_shipdate >= '1994-01-01' AND l_shipdate < '1995-01-01' "
    "AND l_discount >= 0.05 AND l_discount <= 0.07 AND l_quantity < 24"
)
_Q6_COLUMNS = ("l_extendedprice", "l_discount")


def compare(scale_factor: float = SCALE_FACTOR) -> list[TextTable]:
    """Return a table with a row per query: times and requests of both sides."""
    table = TextTable(title=f"S3 on this machine, lineitem at scale factor {scale_factor:g}")
    for column in ("query", "here", "requests", "PyIceberg", "requests", "ratio"):
        table.add_column(column, justify="left" if column == "query" else "right")
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as name:
        folder = Path(name)
        with s3_server(folder / "s3") as s3, toxiproxy(folder) as proxies:
            warehouse = f"s3://{s3.new_bucket()}/warehouse"
            catalog = load_catalog(
                "lake", type="hadoop", warehouse=warehouse, **s3.properties(), **_NO_CACHE
            )
            catalog.create_namespace("db")
            lineitem = _lineitem(catalog, scale_factor)
            _add(table, "full scan", s3, lambda: _scan(lineitem), _their_scan(lineitem, s3))
            _add(
                table,
                "Q6's rows and columns",
                s3,
                lambda: _scan(lineitem, _Q6, _Q6_COLUMNS),
                _their_scan(lineitem, s3, _Q6, _Q6_COLUMNS),
            )
            small = _small_files(catalog)
            slow = proxies.proxy("s3", s3.endpoint)
            properties = s3.properties(slow.endpoint)
            far = load_catalog(
                "lake", type="hadoop", warehouse=warehouse, **properties, **_NO_CACHE
            )
            theirs = StaticTable.from_metadata(small.loaded.metadata_location, properties)
            with slow.toxic("latency", "downstream", latency=LATENCY_MS):
                _add(
                    table,
                    f"plan of {SMALL_FILES} manifests at {LATENCY_MS} ms",
                    s3,
                    lambda: len(list(far.load_table("db.small").scan().plan_files())),
                    lambda: len(list(theirs.scan().plan_files())),
                )
    return [table]


def _lineitem(catalog: TableCatalog, scale_factor: float) -> Table:
    rows = pq.read_table(tpch(scale_factor)["lineitem"])
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.lineitem", schema=rows.schema)
    for start in range(0, len(rows), -(-len(rows) // 8)):
        table.append(rows.slice(start, -(-len(rows) // 8)))
    return table


def _small_files(catalog: TableCatalog) -> Table:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(
        "db.small", "id BIGINT", properties={"commit.manifest-merge.enabled": "false"}
    )
    rows = pq.read_table(tpch(0.1)["lineitem"], columns=["l_orderkey"]).rename_columns(["id"])
    for number in range(SMALL_FILES):
        table.append(rows.slice(number, 1))
    return table


def _scan(table: Table, condition: str | None = None, columns: Any = None) -> int:
    return int(table.scan(filter=condition, columns=columns).to_arrow().num_rows)


def _their_scan(
    table: Table, s3: S3Server, condition: str | None = None, columns: Any = ("*",)
) -> Callable[[], int]:
    theirs = StaticTable.from_metadata(table.loaded.metadata_location, s3.properties())
    scan = theirs.scan(selected_fields=columns)
    if condition is not None:
        scan = scan.filter(condition)
    return lambda: int(scan.to_arrow().num_rows)


def _add(
    table: TextTable, query: str, s3: S3Server, ours: Callable[[], int], theirs: Callable[[], int]
) -> None:
    our_rows, our_s, our_requests = _best(s3, ours)
    their_rows, their_s, their_requests = _best(s3, theirs)
    if our_rows != their_rows:
        raise AssertionError(f"{query}: {our_rows} here, {their_rows} in PyIceberg")
    table.add_row(
        query,
        f"{our_s:.2f} s",
        str(our_requests),
        f"{their_s:.2f} s",
        str(their_requests),
        f"{our_s / their_s:.2f}x",
    )


def _best(s3: S3Server, run: Callable[[], int]) -> tuple[int, float, int]:
    best = float("inf")
    for _ in range(_TIMES):
        before, started = s3.requests().total(), time.monotonic()
        rows = run()
        best = min(best, time.monotonic() - started)
        requests = s3.requests().total() - before
    return rows, best, requests


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="tests.bench.store_bench")
    parser.add_argument("--scale-factor", type=float, default=SCALE_FACTOR)
    for table in compare(parser.parse_args().scale_factor):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
