"""Tables named by a path: folders of versions, folders of a catalog's metadata, single files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from tests.support.catalog_contract import create, set_property


@pytest.fixture
def catalog() -> PathCatalog:
    return PathCatalog()


def metastore_table(warehouse: Path) -> str:
    """Create a table of three versions in a metastore catalog's layout; return its folder."""
    catalog = MemoryCatalog("m", {"warehouse": str(warehouse)})
    catalog.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="events")
    create(catalog, identifier)
    set_property(catalog, identifier, "n", "1")
    set_property(catalog, identifier, "n", "2")
    return f"{warehouse}/db/events"


def load(path: str) -> LoadedTable:
    return PathCatalog().load_table(path_identifier(path))


def test_a_path_is_created_committed_and_loaded(catalog: PathCatalog, tmp_path: Path) -> None:
    identifier = path_identifier(f"{tmp_path}/deep/events/")
    assert not catalog.table_exists(identifier)
    created = create(catalog, identifier)
    assert created.metadata.location == f"{tmp_path}/deep/events"
    done = set_property(catalog, identifier, "a", "1")
    assert done.metadata_location == f"{tmp_path}/deep/events/metadata/v2.metadata.json"
    assert load(f"{tmp_path}/deep/events") == done
    assert load(f"file:{tmp_path}/deep/events").metadata == done.metadata
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, identifier)
    catalog.drop_table(identifier)
    assert not catalog.table_exists(identifier)


def test_a_relative_path_starts_at_the_working_folder(
    catalog: PathCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    identifier = path_identifier("warehouse/events")
    assert identifier.name == f"{tmp_path}/warehouse/events"
    create(catalog, identifier)
    monkeypatch.chdir("/")
    assert catalog.table_exists(identifier)


def test_a_table_of_a_filesystem_catalog_is_writable_by_path(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    lake = FilesystemCatalog("lake", {"warehouse": str(tmp_path)})
    lake.create_namespace(("db",))
    by_name = TableIdentifier(namespace=("db",), name="events")
    create(lake, by_name)
    set_property(catalog, path_identifier(f"{tmp_path}/db/events"), "a", "1")
    assert lake.load_table(by_name).metadata.properties["a"] == "1"


def test_a_catalogs_table_loads_by_path_and_is_read_only(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    folder = metastore_table(tmp_path)
    identifier = path_identifier(folder)
    loaded = catalog.load_table(identifier)
    assert loaded.metadata.properties["n"] == "2"
    assert "/00002-" in loaded.metadata_location
    with pytest.raises(UnsupportedFeatureError, match="through that catalog"):
        set_property(catalog, identifier, "n", "3")
    with pytest.raises(UnsupportedFeatureError, match="read-only"):
        catalog.drop_table(identifier)
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, identifier)


def test_two_newest_files_of_a_catalogs_table_are_not_guessed_between(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    folder = metastore_table(tmp_path)
    newest = Path(load(folder).metadata_location)
    shutil.copy(newest, newest.with_name("00002-other.metadata.json"))
    with pytest.raises(InvalidRequestError, match="00002-other"):
        catalog.load_table(path_identifier(folder))
    assert load(str(newest)).metadata.properties["n"] == "2"


def test_interop_a_file_that_the_version_hint_names_is_a_read_only_table(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    """DuckDB's COPY writes `<uuid>.metadata.json`, without last-sequence-number."""
    identifier = path_identifier(f"{tmp_path}/t")
    create(catalog, identifier)
    folder = tmp_path / "t" / "metadata"
    [version] = folder.glob("*.metadata.json")
    data = json.loads(version.read_text())
    del data["last-sequence-number"]
    version.unlink()
    name = "0191d5a4-8a2e-7c3f-b1a2-6a9f3c1e2d4b"
    (folder / f"{name}.metadata.json").write_text(json.dumps(data))
    (folder / "version-hint.text").write_text(f"{name}\n")
    loaded = catalog.load_table(identifier)
    assert loaded.metadata_location == f"{folder}/{name}.metadata.json"
    assert loaded.metadata.last_sequence_number == 0
    with pytest.raises(UnsupportedFeatureError, match="read-only"):
        set_property(catalog, identifier, "n", "3")
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, identifier)
    for hint in ("../metadata/x", "gone", ""):
        (folder / "version-hint.text").write_text(hint)
        assert not catalog.table_exists(identifier)


def test_a_metadata_file_is_a_read_only_table(catalog: PathCatalog, tmp_path: Path) -> None:
    folder = metastore_table(tmp_path)
    first = next((Path(folder) / "metadata").glob("00000-*"))
    identifier = path_identifier(str(first))
    assert "n" not in catalog.load_table(identifier).metadata.properties
    with pytest.raises(UnsupportedFeatureError, match="read-only"):
        set_property(catalog, identifier, "n", "3")
    with pytest.raises(NoSuchTableError):
        load(f"{tmp_path}/nothing.metadata.json")
    with pytest.raises(InvalidRequestError, match="folder"):
        catalog.default_table_location(path_identifier(f"{tmp_path}/new.metadata.json"))


def test_path_without_a_table_raises_no_such_table_error(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    (tmp_path / "file.parquet").touch()
    for path in (tmp_path, tmp_path / "file.parquet", tmp_path / "nothing"):
        with pytest.raises(NoSuchTableError, match=str(path)):
            load(str(path))
        assert not catalog.table_exists(path_identifier(str(path)))


def test_a_folder_of_other_files_does_not_become_a_table(
    catalog: PathCatalog, tmp_path: Path
) -> None:
    (tmp_path / "part-0.parquet").touch()
    with pytest.raises(InvalidRequestError, match=r"part-0\.parquet"):
        create(catalog, path_identifier(str(tmp_path)))


def test_an_empty_folder_becomes_a_table(catalog: PathCatalog, tmp_path: Path) -> None:
    create(catalog, path_identifier(str(tmp_path)))


def test_a_copied_table_is_read_and_not_written(catalog: PathCatalog, tmp_path: Path) -> None:
    create(catalog, path_identifier(f"{tmp_path}/a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copied = path_identifier(f"{tmp_path}/b")
    assert catalog.load_table(copied).metadata.location == f"{tmp_path}/a"
    with pytest.raises(InvalidRequestError, match="copied"):
        set_property(catalog, copied, "a", "1")


def test_paths_have_no_namespaces(catalog: PathCatalog, tmp_path: Path) -> None:
    assert catalog.list_namespaces() == []
    assert not catalog.namespace_exists(("db",))
    with pytest.raises(UnsupportedFeatureError):
        catalog.create_namespace(("db",))
    with pytest.raises(UnsupportedFeatureError):
        catalog.list_tables(())
    with pytest.raises(InvalidRequestError, match="is not a path"):
        catalog.load_table(TableIdentifier(namespace=("db",), name="events"))
    with pytest.raises(UnsupportedFeatureError):
        catalog.rename_table(path_identifier("/a"), path_identifier("/b"))
