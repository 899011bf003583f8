"""Many concurrent writers of one table, in threads and processes, with default table properties."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import Catalog
from tests.support.catalog_processes import EVENTS, open_catalog

SCHEMA = "id BIGINT, v STRING"


def append_many(kind: str, folder: str, worker: int, appends: int) -> list[float]:
    """Append `appends` rows, each in its own commit; return the seconds of each append."""
    return append_rows(open_catalog(kind, folder), worker, appends)


def append_in_threads(kind: str, folder: str, workers: int, appends: int) -> list[list[float]]:
    """Append from several threads of this process that share one catalog."""
    catalog = open_catalog(kind, folder)
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(append_rows, catalog, w, appends) for w in range(workers)]
        return [f.result() for f in running]


def append_rows(catalog: Catalog, worker: int, appends: int) -> list[float]:
    """Append rows with one writer, each in its own commit; return the seconds of each."""
    table = Table(catalog, catalog.load_table(EVENTS))
    took = []
    for n in range(appends):
        rows = pa.table({"id": pa.array([worker * 10_000 + n], pa.int64()), "v": ["x"]})
        started = time.monotonic()
        table.append(rows)
        took.append(time.monotonic() - started)
    return took
