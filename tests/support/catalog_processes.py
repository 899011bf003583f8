"""Catalog clients in separate processes: concurrent committers, and clients that are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.errors import CommitConflictError, TableAlreadyExistsError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.services.glue import glue_properties
from tests.support.catalog_contract import create, set_property
from tests.support.hooked_storage import HookedFileIO, PassStep, around_writes, killed_at
from tests.support.row_commits import COLUMNS, SMALL_ROOTS, Row, RowCommitter

T = TypeVar("T")

SERVED = "database-url"
"""The name of the file, in the catalog's folder, that holds the URL of its server."""
KILLED = 1
"""The number of the row-committing client that is killed."""

# What a commit imports when it first needs it: most of a short process's time.
_PRELOADED = [
    __name__,
    "pandas",
    "psycopg",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "sqlglot.dialects.spark",
    "iceberg_pyspark.arrow.read.read_task",
    "iceberg_pyspark.sql_text.filters",
    "iceberg_pyspark.storage.objects.object_store_io",
]

EVENTS = TableIdentifier(namespace=("db",), name="events")

SHARED_BY_PROCESSES = {
    "commit.retry.num-retries": "20",
    "commit.retry.max-wait-ms": "300",
    "write.metadata.previous-versions-max": "10000",
}
"""Properties of a table that many processes change, all of whose metadata files are kept."""


def open_catalog(kind: str, folder: str, io: FileIO | None = None) -> Catalog:
    """Open a catalog as any process opens it; for `rest`, `folder` is the URI."""
    if kind == "rest":
        return RestCatalog("lake", {"uri": folder})
    if kind == "hadoop":
        return FilesystemCatalog("lake", {"warehouse": f"{folder}/warehouse"}, io=io)
    if kind == "hive":
        properties = {"uri": Path(folder, SERVED).read_text(), "warehouse": f"{folder}/warehouse"}
        return HiveCatalog("lake", {**properties, "lock-check-max-wait-time": "0.5"}, io=io)
    if kind == "glue":
        properties = glue_properties(Path(folder, SERVED).read_text(), f"{folder}/warehouse")
        return GlueCatalog("lake", properties, io=io)
    # A database server's URL is in a file of the folder.
    served = Path(folder, SERVED)
    uri = f"sqlite:///{folder}/catalog.db" if kind == "sql" else served.read_text()
    properties = {"uri": uri, "warehouse": f"{folder}/warehouse"}
    return SqlCatalog("lake", {**properties, "jdbc.busy_timeout": "60000"}, io=io)


def create_rows_table(
    kind: str,
    folder: Path,
    version: int = 2,
    properties: Mapping[str, str] | None = None,
    *,
    partitioned_by: Sequence[str] = ("p",),
) -> Catalog:
    """Create the table whose rows `RowCommitter` changes, in a catalog of its own."""
    catalog = open_catalog(kind, str(folder))
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(
        str(EVENTS),
        COLUMNS,
        partitioned_by=partitioned_by,
        properties={
            "format-version": str(version),
            **(SMALL_ROOTS if version == 4 else {}),
            **(properties or {}),
        },
    )
    return catalog


def run_together(work: Callable[..., T], arguments: list[tuple[Any, ...]]) -> list[T]:
    """Run a function once per argument tuple, at the same time, each in its own process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    with ProcessPoolExecutor(len(arguments), mp_context=context) as pool:
        return [f.result() for f in [pool.submit(work, *a) for a in arguments]]


def commit_properties(kind: str, folder: str, worker: int, commits: int) -> list[str]:
    """Commit `commits` properties, each until it succeeds; return the acknowledged keys."""
    catalog = open_catalog(kind, folder)
    chance = random.Random(worker)
    acknowledged = []
    for n in range(commits):
        key = f"w{worker}-{n}"
        while True:
            try:
                set_property(catalog, EVENTS, key, str(n))
                break
            except CommitConflictError:
                time.sleep(chance.random() * 0.02)
        acknowledged.append(key)
    return acknowledged


MIX = ("append", "append", "delete", "update", "replace_files", "compact")

MAINTENANCE = ("rewrite_data_files", "rewrite_deletes", "rewrite_manifests", "expire_snapshots")

KEYS = ("delete_keys", "delete_keys", "rewrite_equality_deletes")


def commit_rows(
    kind: str, folder: str, worker: int, commits: int, operations: Sequence[str] = MIX
) -> dict[int, Row]:
    """Run `commits` random operations on rows; return the rows of this worker that remain."""
    committer = RowCommitter(open_catalog(kind, folder), EVENTS, worker)
    chance = random.Random(worker)
    for n in range(commits):
        committer.run("append" if n == 0 else chance.choice(operations))
    return committer.rows


def create_events(kind: str, folder: str) -> str | None:
    """Create the table; return its UUID, or None if another client created it first."""
    try:
        return create(open_catalog(kind, folder), EVENTS).metadata.table_uuid
    except TableAlreadyExistsError:
        return None


def initialise(kind: str, folder: str) -> bool:
    """Open a catalog whose database may be empty; return whether the catalog has no namespaces."""
    return open_catalog(kind, folder).list_namespaces() == []


def die_at(kind: str, folder: str, step: int, operation: str = "set_property") -> int:
    """Run one commit in a process that is killed at a step; return its exit code, 0 if it finished.

    `operation` is a method of `RowCommitter`, run on rows that are in the table already.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_commit_and_die, args=(kind, folder, step, operation))
    process.start()
    process.join()
    return process.exitcode or 0


def _commit_and_die(kind: str, folder: str, step: int, operation: str) -> None:
    pass_step = killed_at(step)
    io = HookedFileIO(LocalFileIO(), around_writes(pass_step))
    catalog = open_catalog(kind, folder, io)
    write_once = Database._write_once

    def dying_write(database: Database, change: Callable[[Any], T]) -> T:
        def dying_change(connection: Any) -> T:
            result = change(connection)
            pass_step()
            return result

        result = write_once(database, dying_change)
        pass_step()
        return result

    Database._write_once = dying_write  # type: ignore[method-assign, assignment]
    # Killing a process does not lose what it has written, so there is no need to die around every
    # fsync.
    calls = ("fsync", "link", "unlink", "replace")
    for name in calls if operation == "set_property" else calls[1:]:
        setattr(os, name, _stepping(getattr(os, name), pass_step))
    if operation == "set_property":
        set_property(catalog, EVENTS, "n", str(step))
        return
    committer = RowCommitter(catalog, EVENTS, KILLED, io=io)
    committer.adopt()
    committer.run(operation)


def _stepping(call: Callable[..., Any], pass_step: PassStep) -> Callable[..., Any]:
    def stepping(*arguments: Any, **keywords: Any) -> Any:
        pass_step()
        return call(*arguments, **keywords)

    return stepping
