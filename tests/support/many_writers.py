"""Many concurrent writers of one table, in threads and in processes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.changes.outcomes import Refused
from iceberg_pyspark.table.commits import commit
from tests.support.catalog_processes import EVENTS, open_catalog

SCHEMA = "id BIGINT, v STRING"
PATIENT = {"commit.retry.num-retries": "100", "commit.retry.max-wait-ms": "200"}
"""Properties of a table whose writers compete without turns: more retries than the default."""


def append_many(kind: str, folder: str, worker: int, appends: int) -> list[float]:
    """Append `appends` rows, each in its own commit; return the seconds of each append."""
    return append_rows(open_catalog(kind, folder), worker, appends)


def append_as_machine(
    kind: str, folder: str, worker: int, appends: int, writers: int
) -> tuple[int, int]:
    """Append as a writer on a machine of its own; return the appends, and the refused commits.

    The first commits of all `writers` meet, so that all of them but one are refused.
    """
    without_turns()
    catalog = open_catalog(kind, folder)
    commit_table = catalog.commit_table
    refusals: list[Refused] = []
    have_met = False

    def counting(*arguments: Any, **keywords: Any) -> Any:
        nonlocal have_met
        if not have_met:
            wait_for_all(Path(folder, "writers"), worker, writers)
            have_met = True
        outcome = commit_table(*arguments, **keywords)
        if isinstance(outcome, Refused):
            refusals.append(outcome)
        return outcome

    catalog.commit_table = counting  # type: ignore[method-assign]
    return len(append_rows(catalog, worker, appends)), len(refusals)


def without_turns() -> None:
    """Let this process compete: the writers of one machine take turns, those of several cannot."""
    commit.__dict__["commit_turn"] = lambda _: nullcontext()


def wait_for_all(folder: Path, worker: int, writers: int) -> None:
    """Wait, at most a minute, until as many processes as there are writers wait in this folder."""
    folder.mkdir(exist_ok=True)
    (folder / str(worker)).touch()
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < writers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(list(folder.iterdir()))} of {writers} writers came")
        time.sleep(0.005)


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
