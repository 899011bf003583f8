"""Tests that every catalog with views must pass, in addition to `catalog_contract.py`."""

from __future__ import annotations

import uuid
from typing import ClassVar

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.catalogs.view_catalog import ViewCatalog
from iceberg_pyspark.commits.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from tests.support.catalog_contract import SCHEMA, CatalogContract, create, new_name


def definition(sql: str) -> tuple[ViewUpdate, ...]:
    """Return the updates that set the query as the definition of a view."""
    return view_definition_updates(
        SCHEMA,
        (SqlRepresentation(sql, "spark"),),
        default_namespace=("db",),
        now_ms=1_700_000_000_000,
    )


def first_view(catalog: ViewCatalog, identifier: TableIdentifier, sql: str) -> ViewMetadata:
    """Return the metadata of a new view at its default location."""
    return new_view_metadata(
        definition(sql),
        catalog.default_view_location(identifier),
        {"owner": "me"},
        view_uuid=str(uuid.uuid4()),
        now_ms=1_700_000_000_000,
    )


class ViewContract(CatalogContract):
    has_views: ClassVar[bool] = True

    def test_a_view_is_created_replaced_renamed_and_dropped(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        assert isinstance(catalog, ViewCatalog)
        if not self.has_views:
            with pytest.raises(UnsupportedFeatureError):
                catalog.create_view(identifier, first_view(catalog, identifier, "SELECT 1"))
            assert catalog.list_views(identifier.namespace) == []
            return
        namespace = identifier.namespace
        created = catalog.create_view(identifier, first_view(catalog, identifier, "SELECT 1"))
        assert catalog.view_exists(identifier)
        assert catalog.load_view(identifier) == created
        assert catalog.list_views(namespace) == [identifier]
        assert catalog.list_tables(namespace) == []
        required = (AssertViewUUID(created.metadata.view_uuid),)
        done = catalog.commit_view(identifier, required, definition("SELECT 2")).result()
        assert catalog.load_view(identifier) == done
        assert done.metadata.current_version.sql("spark") == "SELECT 2"
        assert [v.version_id for v in done.metadata.versions] == [1, 2]
        again = catalog.commit_view(identifier, required, definition("SELECT 2")).result()
        assert again == done
        wrong = (AssertViewUUID(str(uuid.uuid4())),)
        with pytest.raises(CommitConflictError):
            catalog.commit_view(identifier, wrong, definition("SELECT 3")).result()
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(namespace)
        target = TableIdentifier(namespace=namespace, name=new_name("renamed"))
        catalog.rename_view(identifier, target)
        assert not catalog.view_exists(identifier)
        assert catalog.load_view(target).metadata == done.metadata
        catalog.drop_view(target)
        assert catalog.list_views(namespace) == []
        with pytest.raises(NoSuchViewError):
            catalog.load_view(target)
        with pytest.raises(NoSuchViewError):
            catalog.drop_view(target)
        with pytest.raises(NoSuchViewError):
            catalog.rename_view(target, identifier)
        with pytest.raises(NoSuchViewError):
            catalog.commit_view(target, (), definition("SELECT 4")).result()

    def test_a_view_and_a_table_do_not_share_a_name(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        assert isinstance(catalog, ViewCatalog)
        if not self.has_views:
            return
        table = TableIdentifier(namespace=identifier.namespace, name=new_name("table"))
        view = first_view(catalog, identifier, "SELECT 1")
        catalog.create_view(identifier, view)
        create(catalog, table)
        assert not catalog.table_exists(identifier)
        assert not catalog.view_exists(table)
        for other in (identifier, table):
            with pytest.raises(ViewAlreadyExistsError):
                catalog.create_view(other, view)
        with pytest.raises(TableAlreadyExistsError):
            create(catalog, identifier)
        with pytest.raises(TableAlreadyExistsError):
            catalog.rename_table(table, identifier)
        with pytest.raises(ViewAlreadyExistsError):
            catalog.rename_view(identifier, table)
        with pytest.raises(NoSuchTableError):
            catalog.drop_table(identifier)
        with pytest.raises(NoSuchViewError):
            catalog.drop_view(table)
        nowhere = TableIdentifier(namespace=(new_name("nope"),), name="v")
        with pytest.raises(NoSuchNamespaceError):
            catalog.create_view(nowhere, view)

    def test_a_view_is_registered(self, catalog: Catalog, identifier: TableIdentifier) -> None:
        assert isinstance(catalog, ViewCatalog)
        target = TableIdentifier(namespace=identifier.namespace, name=new_name("adopted"))
        if not self.has_views:
            with pytest.raises(UnsupportedFeatureError):
                catalog.register_view(target, "/nowhere.metadata.json")
            return
        created = catalog.create_view(identifier, first_view(catalog, identifier, "SELECT 1"))
        table = TableIdentifier(namespace=identifier.namespace, name=new_name("table"))
        create(catalog, table)
        for taken in (identifier, table):
            with pytest.raises(ViewAlreadyExistsError):
                catalog.register_view(taken, created.metadata_location)
        nowhere = TableIdentifier(namespace=(new_name("nope"),), name="v")
        with pytest.raises(NoSuchNamespaceError):
            catalog.register_view(nowhere, created.metadata_location)
        # the first view stays: Java deletes the metadata file of a view that is dropped
        registered = catalog.register_view(target, created.metadata_location)
        assert registered.metadata == created.metadata
        assert registered.metadata_location == created.metadata_location
        assert catalog.load_view(target) == registered
        assert set(catalog.list_views(identifier.namespace)) == {identifier, target}
        done = catalog.commit_view(target, (), definition("SELECT 2")).result()
        assert [v.version_id for v in done.metadata.versions] == [1, 2]
        assert catalog.load_view(identifier) == created
