"""How a name and properties select a catalog, and where properties come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.catalog_properties import (
    configured_names,
    configured_properties,
    default_name,
)
from iceberg_pyspark.catalogs.glue.glue_catalog import GlueCatalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.hive.hive_catalog import HiveCatalog
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, UnsupportedFeatureError


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide an empty home folder and working folder, and no `PYICEBERG_` variables."""
    for variable in list(os.environ):
        if variable.upper().startswith("PYICEBERG_"):
            monkeypatch.delenv(variable)
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")


def write_file(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / ".pyiceberg.yaml").write_text(text)


# Types.


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"type": "memory"}, MemoryCatalog),
        ({"type": "in-memory"}, MemoryCatalog),
        ({"type": "hadoop", "warehouse": "w"}, FilesystemCatalog),
        ({"type": "filesystem", "warehouse": "w"}, FilesystemCatalog),
        ({"type": "SQL", "uri": "sqlite://"}, SqlCatalog),
        ({"type": "jdbc", "uri": "jdbc:sqlite::memory:"}, SqlCatalog),
        ({"uri": "sqlite://"}, SqlCatalog),
        ({"uri": "jdbc:sqlite::memory:"}, SqlCatalog),
        ({"warehouse": "w"}, SqlCatalog),
        (
            {"catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog", "warehouse": "w"},
            FilesystemCatalog,
        ),
        ({"type": "rest", "uri": "http://localhost"}, RestCatalog),
        ({"uri": "https://localhost"}, RestCatalog),
        ({"type": "hive", "uri": "thrift://localhost"}, HiveCatalog),
        ({"uri": "thrift://one:9083,thrift://two:9083"}, HiveCatalog),
        (
            {"catalog-impl": "org.apache.iceberg.hive.HiveCatalog", "uri": "thrift://localhost"},
            HiveCatalog,
        ),
        ({"type": "glue"}, GlueCatalog),
        ({"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}, GlueCatalog),
        (
            {"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "uri": "http://localhost"},
            RestCatalog,
        ),
    ],
)
def test_the_type_is_given_or_told_from_the_uri(properties: dict[str, str], expected: type) -> None:
    catalog = load_catalog("lake", **properties)
    assert isinstance(catalog, expected)
    assert catalog.name == "lake"


@pytest.mark.parametrize(
    "properties",
    [
        {"type": "nessie"},
        {"catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"},
    ],
)
def test_types_that_are_not_there_yet_name_those_that_are(properties: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"sql.*hadoop.*memory.*rest"):
        load_catalog("lake", **properties)


def test_a_class_named_in_properties_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "work" / "evil.py").write_text("open('loaded', 'w')")
    for key in ("py-catalog-impl", "catalog-impl"):
        with pytest.raises(UnsupportedFeatureError, match="never loaded"):
            load_catalog("lake", **{key: "evil.Catalog"})
    assert not (tmp_path / "work" / "loaded").exists()


def test_properties_that_name_no_catalog_are_shown_without_their_values() -> None:
    with pytest.raises(InvalidRequestError, match=r"check the spelling of warehous, x$") as raised:
        load_catalog("lake", warehous="hunter2", x="y")
    assert "hunter2" not in str(raised.value)


def test_an_unknown_uri_is_refused_without_its_password() -> None:
    with pytest.raises(InvalidRequestError) as raised:
        load_catalog("lake", uri="oracle://me:hunter2@host/db")
    assert "hunter2" not in str(raised.value)
    assert "oracle://" in str(raised.value)


# The embedded catalog.


def test_with_nothing_configured_there_is_an_embedded_catalog(tmp_path: Path) -> None:
    catalog = load_catalog()
    assert isinstance(catalog, SqlCatalog)
    assert catalog.name == "default"
    folder = tmp_path / "work" / "iceberg-warehouse"
    assert (folder / "catalog.db").is_file()
    assert catalog.properties["warehouse"] == str(folder)
    catalog.create_namespace(("db",))
    assert load_catalog("default").list_namespaces() == [("db",)]


def test_a_sql_catalog_without_a_uri_keeps_its_database_in_the_warehouse(tmp_path: Path) -> None:
    load_catalog("lake", type="sql", warehouse="a b%20c#d").create_namespace(("db",))
    assert (tmp_path / "work" / "a b%20c#d" / "catalog.db").is_file()
    with pytest.raises(InvalidRequestError, match="uri"):
        load_catalog("lake", type="sql", warehouse="s3://bucket/warehouse")


@pytest.mark.parametrize("properties", [{}, {"s3.region": "here"}])
def test_error_of_an_unknown_name_lists_the_known_names(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    write_file(tmp_path / "home", "catalog:\n  lake:\n    type: memory\n")
    with pytest.raises(InvalidRequestError, match=r"'lak'.*lake.*PYICEBERG_CATALOG__LAK__URI"):
        load_catalog("lak", **properties)
    assert not (tmp_path / "work" / "iceberg-warehouse").exists()


# File and environment.


def test_explicit_properties_win_over_variables_and_those_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(
        tmp_path / "home",
        "catalog:\n  Lake:\n    type: memory\n    a: file\n    b: file\n    C: file\n    n: 007\n "
        "   t: true\n",
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__B", "variable")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__C", "variable")
    properties = dict(load_catalog("LAKE", c="explicit").properties)
    assert properties == {
        "type": "memory",
        "a": "file",
        "b": "variable",
        "c": "explicit",
        "n": "007",
        "t": "true",
    }


def test_the_first_file_with_content_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "catalog:\n  lake:\n    type: memory\n    from: {}\n"
    write_file(tmp_path / "work", text.format("work"))
    assert configured_properties("lake", os.environ)["from"] == "work"
    write_file(tmp_path / "home", "")
    assert configured_properties("lake", os.environ)["from"] == "work"
    write_file(tmp_path / "home", text.format("home"))
    assert configured_properties("lake", os.environ)["from"] == "home"
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path / "conf"))
    assert configured_properties("lake", os.environ)["from"] == "home"
    write_file(tmp_path / "conf", text.format("conf"))
    assert configured_properties("lake", os.environ)["from"] == "conf"


def test_names_of_variables() -> None:
    environment = {
        "PYICEBERG_HOME": "/nowhere",
        "PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID": "id",
        "pyiceberg_catalog__lake__uri": "sqlite://",
        "PYICEBERG_CATALOG__MY_LAKE__URI": "x",
        "PYICEBERG_MAX_WORKERS": "3",
        "OTHER": "y",
    }
    assert configured_properties("Lake", environment) == {
        "s3.access-key-id": "id",
        "uri": "sqlite://",
    }
    assert configured_names(environment) == ["lake", "my-lake"]
    with pytest.raises(InvalidRequestError, match="PYICEBERG_CATALOG__LAKE"):
        configured_names({"PYICEBERG_CATALOG__LAKE": "x"})


def test_the_default_catalog_can_be_named(tmp_path: Path) -> None:
    assert default_name({}) == "default"
    write_file(tmp_path / "home", "default-catalog: lake\ncatalog:\n  lake:\n    type: memory\n")
    assert load_catalog().name == "lake"
    assert default_name({"PYICEBERG_DEFAULT_CATALOG": "pond"}) == "pond"


def test_the_mappings_of_tls_and_authentication_are_keys_with_dots(tmp_path: Path) -> None:
    tls = "{cabundle: ca.pem, client: {CERT: c.pem, key: c.key}}"
    auth = "{type: custom, impl: a.Login, custom: {team: data}}"
    write_file(
        tmp_path / "home", f"catalog:\n  lake:\n    type: rest\n    ssl: {tls}\n    auth: {auth}\n"
    )
    assert configured_properties("lake", os.environ) == {
        "type": "rest",
        "ssl.cabundle": "ca.pem",
        "ssl.client.cert": "c.pem",
        "ssl.client.key": "c.key",
        "auth.type": "custom",
        "auth.impl": "a.Login",
        "auth.custom.team": "data",
    }


@pytest.mark.parametrize(
    "text",
    [
        "catalog:\n  lake:\n    ssl: {client: [hunter2]}",
        "catalog: [unclosed",
        "- a list",
        "catalog:\n  - lake",
        "catalog:\n  lake: text",
        "catalog:\n  lake:\n    password: {hunter2: x}",
        "catalog:\n  lake:\n\tpassword: hunter2",
        "catalog: !!python/object/apply:os.system ['true']",
        "\x00hunter2",
    ],
)
def test_a_broken_file_is_an_error_that_shows_nothing_of_it(tmp_path: Path, text: str) -> None:
    write_file(tmp_path / "home", text)
    with pytest.raises(IcebergError, match=r"pyiceberg\.yaml") as raised:
        load_catalog("lake", type="memory")
    assert "hunter2" not in str(raised.value)


def test_values_become_text() -> None:
    properties = load_catalog("lake", type="memory", a=True, b=3, c=None).properties  # type: ignore[arg-type]
    assert dict(properties) == {"type": "memory", "a": "true", "b": "3"}


def test_storage_gets_none_of_the_catalogs_secrets(tmp_path: Path) -> None:
    catalog = load_catalog(
        "lake",
        uri="sqlite://",
        warehouse=str(tmp_path),
        **{"jdbc.password": "hunter2", "s3.region": "here", "s3.secret-access-key": "hunter3"},
    )
    assert isinstance(catalog, SqlCatalog)
    assert dict(catalog._config) == {"s3.region": "here", "s3.secret-access-key": "hunter3"}
    assert "hunter" not in repr(catalog._config)
