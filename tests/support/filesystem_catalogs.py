"""A filesystem catalog with one table, and the names of its metadata files."""

from __future__ import annotations

from pathlib import Path

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.storage.files.file_io import FileIO
from tests.support.catalog_contract import create, set_property

EVENTS = TableIdentifier(namespace=("db",), name="events")


def open_catalog(warehouse: Path, io: FileIO | None = None) -> FilesystemCatalog:
    catalog = FilesystemCatalog("lake", {"warehouse": str(warehouse)}, io=io)
    if not catalog.namespace_exists(("db",)):
        catalog.create_namespace(("db",))
    return catalog


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def table_of(catalog: FilesystemCatalog, versions: int) -> None:
    create(catalog, EVENTS)
    for n in range(2, versions + 1):
        set_property(catalog, EVENTS, "n", str(n))


def current_n(catalog: FilesystemCatalog) -> str:
    return catalog.load_table(EVENTS).metadata.properties["n"]
