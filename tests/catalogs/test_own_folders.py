"""The catalog determines a table's folders; locations in the metadata are not trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.table_folders import own_folders
from iceberg_pyspark.errors import LocationRefusedError
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.table.table_catalog import TableCatalog
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
    """The property `write.metadata.path` may put the metadata files elsewhere."""
    own = own_folders(catalog, loaded("s3://m/all/00001-x.metadata.json", "s3://b/wh/db/events"))
    assert own == OwnFolders(("s3://b/wh/db/events",), metadata_folder="s3://m/all")
    other = own_folders(catalog, loaded("s3://m/all/00001-x.metadata.json", "s3://b/wh/db/other"))
    assert other == OwnFolders((), metadata_folder="s3://m/all")


def test_warehouse_is_not_a_folder_of_a_table(catalog: MemoryCatalog) -> None:
    pointer = "s3a://b/wh/metadata/00001-x.metadata.json"
    assert own_folders(catalog, loaded(pointer, "s3://b/wh")) == OwnFolders(())


def test_catalog_without_a_warehouse_has_no_default_folder() -> None:
    own = own_folders(MemoryCatalog("lake"), loaded(POINTER, "/"))
    assert own == OwnFolders(("s3://b/wh/db/events",))


def test_a_table_about_to_be_made_is_where_its_maker_says(catalog: MemoryCatalog) -> None:
    assert own_folders(catalog, loaded("", "s3://x/y")) == OwnFolders(("s3://x/y",))
    assert own_folders(catalog, loaded("", "s3://b/wh")) == OwnFolders(())


def test_a_path_is_the_folder(tmp_path: Path) -> None:
    catalog, identifier = PathCatalog(), path_identifier(str(tmp_path / "t"))
    metadata = replace(commit_table().metadata, location=str(tmp_path / "t"))
    table = catalog.create_table(identifier, metadata)
    moved = replace(table, metadata=replace(metadata, location="/"))
    assert own_folders(catalog, table) == OwnFolders((str(tmp_path / "t"),))
    assert own_folders(catalog, moved) == OwnFolders((str(tmp_path / "t"),))


def registered(tmp_path: Path, claimed: str, **properties: str) -> tuple[Table, TableCatalog]:
    """Register another user's table, by its metadata file, in our catalog."""
    source = load_catalog("theirs", type="memory", warehouse=str(tmp_path / "theirs"))
    source.create_namespace("db", if_not_exists=True)
    file = Path(source.create_table("db.t", "id BIGINT").loaded.metadata_location)
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "location": claimed, "properties": properties}))
    catalog = load_catalog("ours", type="memory", warehouse=str(tmp_path / "ours"))
    catalog.create_namespace("db", if_not_exists=True)
    return catalog.register_table("db.evil", str(file)), catalog


def test_metadata_cannot_move_the_pointer(tmp_path: Path) -> None:
    """Otherwise the claimed folder would become the table's own with the next commit."""
    for properties in ({}, {"write.metadata.path": f"{tmp_path}/victim/metadata"}):
        table, catalog = registered(tmp_path, f"{tmp_path}/victim", **properties)
        own = own_folders(catalog.catalog, table.loaded)
        folder = Path(table.loaded.metadata_location).parent
        with table.update_properties() as update:
            update.set({"a": "1"})
        table.refresh()
        assert Path(table.loaded.metadata_location).parent == folder
        assert own_folders(catalog.catalog, table.loaded) == own
        catalog.drop_table("db.evil")


def test_a_user_moves_it_within_the_store(tmp_path: Path) -> None:
    catalog = load_catalog("ours", type="memory", warehouse=str(tmp_path / "ours"))
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT")
    with table.update_properties() as update:
        update.set({"write.metadata.path": f"{tmp_path}/elsewhere/t"})
    assert Path(table.refresh().loaded.metadata_location).parent == tmp_path / "elsewhere/t"
    before, elsewhere = table.loaded, {"write.metadata.path": "s3://elsewhere/t"}
    with (
        pytest.raises(LocationRefusedError, match="another store than file://"),
        table.update_properties() as update,
    ):
        update.set(elsewhere)
    assert table.refresh().loaded == before
    with pytest.raises(LocationRefusedError, match="another store"):
        catalog.create_table("db.u", "id BIGINT", properties=elsewhere)
