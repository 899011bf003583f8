"""Requests of the JVM to a catalog."""

from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier, ViewCatalog
from iceberg_pyspark.errors import InvalidRequestError, NamespaceNotEmptyError
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import (
    CatalogOpen,
    NamespaceCreate,
    NamespaceDrop,
    NamespacesList,
)
from iceberg_pyspark.spark.bridge.protocol.table_messages import TablesList
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from tests.support.view_contract import first_view


@pytest.fixture
def callbacks() -> CatalogCallbacks:
    callbacks = CatalogCallbacks()
    opened = callbacks.open(CatalogOpen(session="s", name="lake", options={"type": "memory"}))
    assert opened.handle == "s/lake"
    return callbacks


def test_requests_are_handled(callbacks: CatalogCallbacks) -> None:
    callbacks.namespace_create(NamespaceCreate(catalog="s/lake", namespace=("db",), properties={}))
    response = callbacks.namespaces_list(NamespacesList(catalog="s/lake", namespace=()))
    assert response.namespaces == (("db",),)


def test_request_to_a_closed_catalog_is_refused(callbacks: CatalogCallbacks) -> None:
    with pytest.raises(InvalidRequestError, match="catalog lake was opened before"):
        callbacks.tables_list(TablesList(catalog="other/lake", namespace=("db",)))


def test_a_cascade_that_could_not_end_drops_nothing(tmp_path: Path) -> None:
    callbacks = CatalogCallbacks()
    options = {"type": "hadoop", "warehouse": str(tmp_path)}
    callbacks.open(CatalogOpen(session="s", name="lake", options=options))
    lake = TableCatalog(callbacks.catalog("s/lake"))
    lake.create_namespace("db")
    lake.create_namespace("db.inner")
    for name in ("db.t", "db.inner.u"):
        table = lake.create_table(name, schema="id BIGINT, p STRING", partitioned_by=["p"])
        table.append(pa.table({"id": [1], "p": ["a"]}))
    drop = NamespaceDrop(catalog="s/lake", namespace=("db",), cascade=True)
    with pytest.raises(NamespaceNotEmptyError, match=r"PURGE: db\.t, db\.inner\.u"):
        callbacks.namespace_drop(drop)
    assert lake.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]
    for name in ("db.t", "db.inner.u"):
        lake.drop_table(name, purge=True)
    callbacks.namespace_drop(drop)
    assert lake.list_namespaces() == []
    assert list(tmp_path.iterdir()) == []


def test_a_cascade_drops_what_is_in_a_namespace(
    callbacks: CatalogCallbacks, tmp_path: Path
) -> None:
    lake = TableCatalog(callbacks.catalog("s/lake"))
    lake.create_namespace("db", {"location": str(tmp_path / "db")})
    lake.create_namespace("db.inner")
    lake.create_table("db.inner.u", schema="id BIGINT", location=str(tmp_path))
    catalog, view = callbacks.catalog("s/lake"), TableIdentifier(namespace=("db",), name="v")
    assert isinstance(catalog, ViewCatalog)
    catalog.create_view(view, first_view(catalog, view, "SELECT 1"))
    callbacks.namespace_drop(NamespaceDrop(catalog="s/lake", namespace=("db",), cascade=True))
    assert lake.list_namespaces() == []
