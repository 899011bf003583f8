"""Views, and conditional creation, in the catalog for Python users: names and schemas as text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)


@pytest.fixture(params=["memory", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ice.TableCatalog:
    properties = {"type": request.param, "warehouse": str(tmp_path / "w")}
    if request.param == "sql":
        properties["uri"] = f"sqlite:///{tmp_path}/catalog.db"
    catalog = ice.load_catalog("lake", **properties)
    catalog.create_namespace("db")
    return catalog


def test_a_view_from_its_creation_to_its_end(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    view = catalog.create_view(
        "db.v", "id BIGINT", "SELECT id FROM t", properties={"comment": "ids"}
    )
    assert (view.name, view.sql(), view.properties["comment"]) == (
        "db.v",
        "SELECT id FROM t",
        "ids",
    )
    assert [f.name for f in view.schema.fields] == ["id"]
    assert view.metadata.current_version.default_namespace == ("db",)
    assert catalog.list_views("db") == ["db.v"]
    assert catalog.view_exists("db.v")
    assert not catalog.table_exists("db.v")
    assert catalog.load_view("lake.db.v") == view
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view("db.v", "id BIGINT", "SELECT 1")
    replaced = catalog.create_view("db.v", pa.schema([("n", pa.int64())]), "SELECT 1", replace=True)
    assert replaced.sql() == catalog.load_view("db.v").sql() == "SELECT 1"
    assert len(replaced.metadata.versions) == 2
    catalog.rename_view("db.v", "db.u")
    assert catalog.list_views("db") == ["db.u"]
    copy = catalog.register_view("db.copy", catalog.load_view("db.u").loaded.metadata_location)
    assert copy.metadata == catalog.load_view("db.u").metadata
    catalog.drop_view("db.u")
    assert not catalog.view_exists("db.u")
    with pytest.raises(NoSuchViewError):
        catalog.load_view("db.u")


def test_error_of_a_view_without_the_dialect_names_its_dialects(catalog: ice.TableCatalog) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    view = catalog.create_view("db.v", "id BIGINT", "SELECT 1", dialect="trino")
    assert view.sql("trino") == "SELECT 1"
    with pytest.raises(InvalidRequestError, match="no query in dialect 'spark'; it has: trino"):
        view.sql()


def test_catalog_without_views_refuses_them_by_name(tmp_path: Path) -> None:
    catalog = ice.load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    for call in (
        lambda: catalog.list_views(),
        lambda: catalog.load_view("db.v"),
        lambda: catalog.load_view("/w/db/v"),
        lambda: catalog.create_view("db.v", "id INT", "SELECT 1"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="has no views"):
            call()


def test_a_namespace_that_is_missing_is_not_created(
    catalog: ice.TableCatalog, tmp_path: Path
) -> None:
    file = catalog.create_table("db.t", "id BIGINT").loaded.metadata_location
    for create in (
        lambda: catalog.create_table("dv.t", "id BIGINT"),
        lambda: catalog.create_table("dv.t", "id BIGINT", if_not_exists=True),
        lambda: catalog.create_view("dv.v", "id BIGINT", "SELECT 1"),
        lambda: catalog.register_table("dv.t", file),
        lambda: catalog.register_view("dv.v", file),
    ):
        with pytest.raises(NoSuchNamespaceError, match=r"namespace dv is not in .*create it first"):
            create()
    assert catalog.list_namespaces() == ["db"]
    # as in Java: a namespace is a folder
    folders = ice.load_catalog("folders", type="hadoop", warehouse=str(tmp_path / "f"))
    folders.create_table("dv.t", "id BIGINT")
    assert folders.list_namespaces() == ["dv"]


def test_existing_table_is_created_only_if_not_exists(catalog: ice.TableCatalog) -> None:
    table = catalog.create_table("db.t", "id BIGINT", if_not_exists=True)
    table.append(pa.table({"id": [1]}))
    same = catalog.create_table("db.t", "other STRING", if_not_exists=True)
    assert same.metadata == table.metadata
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", "id BIGINT")
    catalog.create_namespace("db", if_not_exists=True)
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("db")


def test_concurrently_created_table_is_returned_if_not_exists(
    catalog: ice.TableCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.t", "id BIGINT")
    monkeypatch.setattr(type(catalog.catalog), "table_exists", lambda *_: False)
    assert catalog.create_table("db.t", "id INT", if_not_exists=True).metadata == table.metadata
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", "id INT")
