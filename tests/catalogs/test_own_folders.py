"""Where a table lies is the catalog's knowledge; what its metadata claims is not believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.memory import MemoryCatalog
from iceberg_pyspark.catalogs.own_folders import own_folders
from iceberg_pyspark.catalogs.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.storage.own_folders import OwnFolders
from tests.support.commit_tables import commit_table

EVENTS = TableIdentifier(namespace=("db",), name="events")


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog("lake", {"warehouse": "s3://b/wh"})


def loaded(pointer: str, claimed: str) -> LoadedTable:
    metadata = replace(commit_table().metadata, location=claimed)
    return LoadedTable(identifier=EVENTS, metadata=metadata, metadata_location=pointer)


POINTER = "s3://b/wh/db/events/metadata/00001-x.metadata.json"


def test_the_folder_of_the_pointer(catalog: MemoryCatalog) -> None:
    expected = OwnFolders(("s3://b/wh/db/events",))
    assert own_folders(catalog, loaded(POINTER, "s3a://b/wh/db/events/")) == expected


@pytest.mark.parametrize("claimed", ["/", "s3://b", "s3://b/wh", "s3://b/wh/db/other", "x", ""])
def test_another_claim_is_not_believed(catalog: MemoryCatalog, claimed: str) -> None:
    assert own_folders(catalog, loaded(POINTER, claimed)) == OwnFolders(("s3://b/wh/db/events",))


def test_the_default_location_is_believed(catalog: MemoryCatalog) -> None:
    """A table whose metadata files are kept elsewhere, by `write.metadata.path`."""
    own = own_folders(catalog, loaded("s3://m/all/00001-x.metadata.json", "s3://b/wh/db/events"))
    assert own == OwnFolders(("s3://b/wh/db/events",), metadata_folder="s3://m/all")
    other = own_folders(catalog, loaded("s3://m/all/00001-x.metadata.json", "s3://b/wh/db/other"))
    assert other == OwnFolders((), metadata_folder="s3://m/all")


def test_the_warehouse_is_no_tables_own(catalog: MemoryCatalog) -> None:
    pointer = "s3a://b/wh/metadata/00001-x.metadata.json"
    assert own_folders(catalog, loaded(pointer, "s3://b/wh")) == OwnFolders(())


def test_without_a_warehouse_there_is_no_default() -> None:
    own = own_folders(MemoryCatalog("lake"), loaded(POINTER, "/"))
    assert own == OwnFolders(("s3://b/wh/db/events",))


def test_a_table_about_to_be_made_is_where_its_maker_says(catalog: MemoryCatalog) -> None:
    assert own_folders(catalog, loaded("", "s3://x/y")) == OwnFolders(("s3://x/y",))
    assert own_folders(catalog, loaded("", "s3://b/wh")) == OwnFolders(())


def test_a_path_is_the_folder(tmp_path: Path) -> None:
    catalog, identifier = PathCatalog(), path_identifier(str(tmp_path / "t"))
    metadata = replace(commit_table().metadata, location=str(tmp_path / "t"))
    made = catalog.create_table(identifier, metadata)
    moved = replace(made, metadata=replace(metadata, location="/"))
    assert own_folders(catalog, made) == OwnFolders((str(tmp_path / "t"),))
    assert own_folders(catalog, moved) == OwnFolders((str(tmp_path / "t"),))
