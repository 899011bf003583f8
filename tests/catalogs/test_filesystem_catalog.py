"""Behaviour specific to path tables: versions, the version hint, exclusive names, drops."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.changes.changes import (
    RemoveProperties,
    SetLocation,
    SetProperties,
    TableUpdate,
)
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from tests.support.catalog_contract import create, first_metadata, set_property
from tests.support.filesystem_catalogs import EVENTS, current_n, names, open_catalog, table_of


@pytest.fixture
def catalog(tmp_path: Path) -> FilesystemCatalog:
    return open_catalog(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "db" / "events" / "metadata"


def test_files_of_a_table(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 2)
    assert names(folder) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    assert (folder / "version-hint.text").read_text() == "2"
    assert json.loads((folder / "v2.metadata.json").read_text())["location"] == str(folder.parent)


# The version hint.


@pytest.mark.parametrize(
    "hint",
    [
        "1",
        "2",
        "3",
        "99",
        "0",
        "-1",
        "",
        "x",
        "3\n",
        " 3 ",
        "3.0",
        "\N{ARABIC-INDIC DIGIT TWO}",
        "9" * 40,
    ],
)
def test_any_hint_leads_to_the_last_version(
    catalog: FilesystemCatalog, folder: Path, hint: str
) -> None:
    """docs/conformance.md 93."""
    table_of(catalog, 3)
    (folder / "version-hint.text").write_text(hint)
    assert current_n(catalog) == "3"
    set_property(catalog, EVENTS, "n", "4")
    assert current_n(catalog) == "4"


def test_no_hint_and_a_hint_of_bytes(catalog: FilesystemCatalog, folder: Path) -> None:
    """docs/conformance.md 93."""
    table_of(catalog, 12)
    (folder / "version-hint.text").write_bytes(b"\xff\xfe")
    assert current_n(catalog) == "12"
    (folder / "version-hint.text").unlink()
    assert current_n(catalog) == "12"
    (folder / "version-hint.text").mkdir()
    assert current_n(catalog) == "12"
    # If the hint cannot be written, the commit succeeds anyway.
    set_property(catalog, EVENTS, "n", "13")
    assert current_n(catalog) == "13"


def test_a_hint_at_a_trimmed_version(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 5)
    for n in (1, 2, 3):
        (folder / f"v{n}.metadata.json").unlink()
    (folder / "version-hint.text").write_text("2")
    assert current_n(catalog) == "5"


def test_only_names_of_versions_count(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 2)
    (folder / "version-hint.text").unlink()
    for name in ("v9.metadata.json.tmp", "v.metadata.json", "vx.metadata.json", "v8.json"):
        (folder / name).write_text("{}")
    assert current_n(catalog) == "2"


def test_a_damaged_version_is_an_error_and_not_the_one_before(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 2)
    (folder / "v2.metadata.json").write_text("{")
    with pytest.raises(InvalidMetadataError, match=r"v2\.metadata\.json"):
        catalog.load_table(EVENTS)
    with pytest.raises(InvalidMetadataError):
        set_property(catalog, EVENTS, "a", "1")


# Gzipped metadata.


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v3.metadata.json.gz"])
def test_gzipped_versions_of_both_names_are_found(
    catalog: FilesystemCatalog, folder: Path, name: str
) -> None:
    """docs/conformance.md 94."""
    table_of(catalog, 3)
    plain = folder / "v3.metadata.json"
    (folder / name).write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert current_n(catalog) == "3"
    set_property(catalog, EVENTS, "n", "4")
    assert names(folder)[-2] == "v4.metadata.json"


def test_a_change_of_codec_takes_effect_one_commit_later(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    # All writers on one base version must race for one file name, whatever codec they set.
    create(catalog, EVENTS)
    set_property(catalog, EVENTS, "write.metadata.compression-codec", "gzip")
    set_property(catalog, EVENTS, "write.metadata.compression-codec", "none")
    set_property(catalog, EVENTS, "a", "1")
    assert names(folder) == [
        *("v1.metadata.json", "v2.metadata.json", "v3.gz.metadata.json", "v4.metadata.json"),
        "version-hint.text",
    ]


CODEC = "write.metadata.compression-codec"


def test_setting_an_unknown_metadata_codec_is_refused(catalog: FilesystemCatalog) -> None:
    refused = f"{CODEC}.*zstd.*none (n)?or gzip"
    with pytest.raises(InvalidRequestError, match=refused):
        create(catalog, EVENTS, properties={CODEC: "zstd"})
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match=refused):
        set_property(catalog, EVENTS, CODEC, "zstd")
    set_property(catalog, EVENTS, "n", "1")


@pytest.mark.parametrize(
    "mending", [RemoveProperties((CODEC,)), SetProperties({CODEC: "gzip"})], ids=["unset", "set"]
)
def test_table_with_an_unknown_metadata_codec_can_be_changed(
    catalog: FilesystemCatalog, folder: Path, mending: TableUpdate
) -> None:
    create(catalog, EVENTS)
    first = folder / "v1.metadata.json"
    text = json.loads(first.read_text())
    first.write_text(json.dumps({**text, "properties": {CODEC: "zstd"}}))
    with pytest.raises(InvalidRequestError, match="zstd"):
        set_property(catalog, EVENTS, "n", "1")
    catalog.commit_table(EVENTS, (), (mending,)).result()
    set_property(catalog, EVENTS, "n", "1")
    assert current_n(catalog) == "1"


# Requests that path tables refuse.


def test_a_location_elsewhere_is_refused(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="stays"):
        catalog.create_table(EVENTS, first_metadata(f"{tmp_path}/elsewhere"))
    assert not catalog.table_exists(EVENTS)
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match="stays"):
        catalog.commit_table(EVENTS, (), (SetLocation(f"{tmp_path}/elsewhere"),)).result()


def test_a_metadata_path_is_refused(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"write\.metadata\.path"):
        create(catalog, EVENTS, {"write.metadata.path": str(tmp_path)})
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match=r"write\.metadata\.path"):
        set_property(catalog, EVENTS, "write.metadata.path", str(tmp_path))


def test_a_newer_format_version_is_refused(catalog: FilesystemCatalog) -> None:
    metadata = first_metadata(catalog.default_table_location(EVENTS))
    with pytest.raises(UnsupportedFeatureError, match="version 3"):
        catalog.create_table(EVENTS, replace(metadata, format_version=4))


def test_a_table_whose_location_has_a_scheme_is_the_same_table(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    # Java writes the location with a scheme.
    create(catalog, EVENTS)
    file = folder / "v1.metadata.json"
    file.write_text(file.read_text().replace(f'"{folder.parent}"', f'"file:{folder.parent}"'))
    set_property(catalog, EVENTS, "a", "1")


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_warehouse_with_a_scheme(catalog: FilesystemCatalog, tmp_path: Path, scheme: str) -> None:
    other = FilesystemCatalog("lake", {"warehouse": f"{scheme}{tmp_path}/"})
    created = create(other, EVENTS)
    assert created.metadata.location == f"{scheme}{tmp_path}/db/events"
    assert catalog.list_tables(("db",)) == [EVENTS]
    set_property(catalog, EVENTS, "a", "1")
    assert other.load_table(EVENTS).metadata.properties["a"] == "1"


def test_a_warehouse_where_no_name_can_be_taken_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="https://host"):
        FilesystemCatalog("lake", {"warehouse": "https://host/warehouse"})
    with pytest.raises(InvalidRequestError, match="warehouse"):
        FilesystemCatalog("lake", {})


# Namespaces and folders.


def test_namespaces_are_folders(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    (tmp_path / "made" / "by").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").touch()
    assert catalog.list_namespaces() == [("db",), ("made",)]
    assert catalog.list_namespaces(("made",)) == [("made", "by")]
    assert not catalog.namespace_exists(("file",))
    assert catalog.load_namespace_properties(("made",)) == {"location": f"{tmp_path}/made"}


def test_table_is_not_a_namespace(catalog: FilesystemCatalog) -> None:
    create(catalog, EVENTS)
    assert not catalog.namespace_exists(("db", "events"))
    assert catalog.list_namespaces(("db",)) == []
    for namespace in (("db", "events"), ("db", "events", "below")):
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(namespace)


def test_table_cannot_be_created_over_a_namespace(catalog: FilesystemCatalog) -> None:
    catalog.create_namespace(("db", "events", "below"))
    with pytest.raises(TableAlreadyExistsError, match="namespace"):
        create(catalog, EVENTS)


def test_a_job_writes_the_files_of_its_table_before_it_creates_it(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    written = folder.parent / "data" / "day=1" / "a.parquet"
    written.parent.mkdir(parents=True)
    written.touch()
    create(catalog, EVENTS)
    assert catalog.list_tables(("db",)) == [EVENTS]


@pytest.mark.parametrize("namespace", [("db", "events"), ("db", "events", "data")])
def test_table_cannot_be_created_over_a_namespace_with_a_table_data(
    catalog: FilesystemCatalog, namespace: tuple[str, ...]
) -> None:
    catalog.create_namespace(namespace)
    create(catalog, TableIdentifier(namespace=namespace, name="data"))
    with pytest.raises(TableAlreadyExistsError, match="namespace"):
        create(catalog, EVENTS)


def test_table_without_a_namespace_is_in_the_warehouse(
    catalog: FilesystemCatalog, tmp_path: Path
) -> None:
    identifier = TableIdentifier(namespace=(), name="events")
    create(catalog, identifier)
    assert (tmp_path / "events" / "metadata" / "v1.metadata.json").is_file()
    assert catalog.list_tables(()) == [identifier]


def test_a_dropped_table_keeps_its_files_and_its_last_metadata(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 3)
    data = folder.parent / "data" / "a.parquet"
    data.parent.mkdir()
    data.touch()
    last = catalog.load_table(EVENTS).metadata
    catalog.drop_table(EVENTS)
    assert data.is_file()
    assert names(folder) == [f"dropped-v3-{last.table_uuid}.metadata.json"]
    # The remaining folder is neither a table nor a namespace, and so the namespace is not empty.
    assert catalog.list_namespaces(("db",)) == []
    with pytest.raises(NoSuchTableError):
        catalog.load_table(EVENTS)
    with pytest.raises(NamespaceNotEmptyError, match="dropped"):
        catalog.drop_namespace(("db",))


def test_a_drop_that_was_cut_short_leaves_the_table_whole(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 3)
    last = catalog.load_table(EVENTS)
    last_metadata = folder / f"dropped-v3-{last.metadata.table_uuid}.metadata.json"
    last_metadata.write_bytes((folder / "v3.metadata.json").read_bytes())
    (folder / "version-hint.text").unlink()
    (folder / "v1.metadata.json").unlink()
    assert catalog.load_table(EVENTS) == last
    catalog.drop_table(EVENTS)
    assert not catalog.table_exists(EVENTS)


def test_an_interrupted_create_can_be_done_again(catalog: FilesystemCatalog, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".0123.tmp").touch()
    assert not catalog.table_exists(EVENTS)
    create(catalog, EVENTS)
    catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),)).result()


def test_a_namespace_whose_tables_were_purged_can_be_dropped(
    catalog: FilesystemCatalog, tmp_path: Path
) -> None:
    tables = TableCatalog(catalog)
    tables.create_namespace("other")
    table = tables.create_table("other.t", schema="id BIGINT, p STRING", partitioned_by=["p"])
    table.append(pa.table({"id": [1], "p": ["a"]}))
    tables.drop_table("other.t", purge=True)
    stray_file = tmp_path / "other" / "t" / "data" / "p=a" / "of-another.parquet"
    stray_file.touch()
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(("other",))
    stray_file.unlink()
    catalog.drop_namespace(("other",))
    assert not (tmp_path / "other").exists()
