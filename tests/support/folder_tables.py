"""The table of a folder catalog in an object store, which writers of the tests compete for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import CommitStateUnknownError
from iceberg_pyspark.storage.files.file_io import FileIO
from tests.support.catalog_processes import EVENTS
from tests.support.many_writers import PATIENT, SCHEMA

ROW = pa.table({"id": pa.array([7], pa.int64()), "v": ["x"]})
_SOON = {"commit.status-check.min-wait-ms": "50", "commit.status-check.num-retries": "2"}


def create_events(properties: Mapping[str, str]) -> Table:
    """Create the table in the catalog with these properties."""
    catalog = FilesystemCatalog("lake", properties)
    catalog.create_namespace(EVENTS.namespace)
    TableCatalog(catalog).create_table(str(EVENTS), SCHEMA, properties={**_SOON, **PATIENT})
    return events(properties)


def events(properties: Mapping[str, str], io: FileIO | None = None) -> Table:
    """Load the table by a new catalog."""
    catalog = FilesystemCatalog("lake", properties, io=io)
    return Table(catalog, catalog.load_table(EVENTS))


def ids(table: Table) -> list[int]:
    """Return the column `id` of all rows, sorted."""
    result: list[int] = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(result)


def data_files(table: Table) -> set[str]:
    """Return the locations of all files in the table's data folder."""
    return {f.location for f in table.io.list_files(f"{table.location}/data")}


def check_commit_that_never_arrives(
    table: Table, properties: Mapping[str, str], losses: Callable[[], int]
) -> None:
    """Append by a table whose next commit gets lost: the outcome is unknown, and files stay."""
    before = data_files(table)
    with pytest.raises(CommitStateUnknownError):
        table.append(ROW)
    assert losses() == 1
    assert ids(events(properties)) == []
    assert len(data_files(table) - before) == 1
    # A writer that tries again on the current state loses nothing.
    events(properties).append(ROW)
    assert ids(events(properties)) == [7]
