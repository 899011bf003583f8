"""Helpers for tests of the Hive catalog: catalogs, calls to replace, locks and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.hive.metastore_client import HiveClient
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.errors import CatalogUnavailableError
from tests.support.catalog_contract import create, new_name

ALTER = "alter_table_with_environment_context"
NO_ANSWER = CatalogUnavailableError("the answer is lost")


def open_catalog(uri: str, folder: Path, **properties: str) -> HiveCatalog:
    catalog = load_catalog("lake", uri=uri, warehouse=str(folder), **properties)
    assert isinstance(catalog, HiveCatalog)
    return catalog


def open_with(uri: str, folder: Path, locks: str) -> HiveCatalog:
    """Return a catalog that has asked the metastore already what it compares."""
    catalog = open_catalog(uri, folder, **{"iceberg.engine.hive.lock-enabled": locks})
    catalog._compares = True
    return catalog


def create_events(catalog: HiveCatalog) -> TableIdentifier:
    """Create the table `events` in a new namespace."""
    db = new_name("db")
    catalog.create_namespace((db,))
    identifier = TableIdentifier(namespace=(db,), name="events")
    create(catalog, identifier)
    return identifier


def calling(
    monkeypatch: pytest.MonkeyPatch, operation: str, instead: Callable[[Callable[[], Any]], Any]
) -> None:
    """Replace the next call of an operation by `instead`, which may make the call."""
    call = HiveClient.call

    def hooked(self: HiveClient, name: str, /, **arguments: Any) -> Any:
        if name != operation:
            return call(self, name, **arguments)
        monkeypatch.setattr(HiveClient, "call", call)
        return instead(lambda: call(self, name, **arguments))

    monkeypatch.setattr(HiveClient, "call", hooked)


def lost(make: Callable[[], Any]) -> Any:
    """Make a call and lose its answer."""
    make()
    raise NO_ANSWER


def locks_of(catalog: HiveCatalog, table: TableIdentifier) -> list[Any]:
    request = {"dbname": table.namespace[0], "tablename": table.name}
    answer = catalog._hive.call("show_locks", rqst=request)
    return list(answer.get("locks") or ())


def hold_lock(catalog: HiveCatalog, table: TableIdentifier) -> int:
    """Take the lock of a table for another client and return the lock's id."""
    component = {"type": 3, "level": 2, "dbname": table.namespace[0], "tablename": table.name}
    request = {"component": [component], "user": "other", "hostname": "elsewhere"}
    lock: int = catalog._hive.call("lock", rqst=request)["lockid"]
    return lock


def metadata_files(folder: Path) -> int:
    return len(list(folder.rglob("*.metadata.json")))
