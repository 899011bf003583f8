"""Tests that every catalog with views must pass, in addition to `catalog_contract.py`.

tests/catalogs/test_java_behaviours.py lists which test of Java's catalogs each test here stands
for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier, ViewCatalog
from iceberg_pyspark.changes.changes import (
    AssertCreate,
    RemoveProperties,
    SetLocation,
    SetProperties,
)
from iceberg_pyspark.changes.new_table import new_table_updates
from iceberg_pyspark.changes.outcomes import Refused
from iceberg_pyspark.changes.view_changes import (
    AssertViewUUID,
    ViewUpdate,
    new_view_metadata,
    view_definition_updates,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from iceberg_pyspark.table.commits.define_view import (
    NewDefinition,
    create_or_replace_view,
    replace_view,
)
from tests.support.catalog_contract import (
    SCHEMA,
    CatalogContract,
    beside,
    create,
    first_metadata,
    new_name,
    set_property,
)

OTHER_SCHEMA = Schema(fields=(NestedField(field_id=1, name="other", type=LongType()),))
SPARK = SqlRepresentation("SELECT * FROM t", "spark")
TRINO = SqlRepresentation("SELECT * FROM t USING x", "trino")


def definition(sql: str) -> tuple[ViewUpdate, ...]:
    """Return the updates that set the query as the definition of a view."""
    return definition_of(SqlRepresentation(sql, "spark"))


def definition_of(
    *representations: SqlRepresentation,
    schema: Schema = SCHEMA,
    default_catalog: str | None = None,
) -> tuple[ViewUpdate, ...]:
    """Return the updates that define a view by one query in each dialect."""
    return view_definition_updates(
        schema,
        representations,
        default_namespace=("db",),
        default_catalog=default_catalog,
        now_ms=1_700_000_000_000,
    )


def counting(expression: str) -> NewDefinition:
    """Return a new definition in the dialect of Spark."""
    query = SqlRepresentation(f"SELECT count({expression}) FROM t", "spark")
    return NewDefinition(schema=SCHEMA, query=query, default_namespace=("db",))


def new_view(
    location: str, *updates: ViewUpdate, properties: dict[str, str] | None = None
) -> ViewMetadata:
    """Return the metadata of a new view with this definition."""
    return new_view_metadata(
        updates,
        location,
        properties or {},
        view_uuid=str(uuid.uuid4()),
        now_ms=1_700_000_000_000,
    )


def together(calls: list[Callable[[], Any]]) -> None:
    """Run the calls at the same time, each in a thread; raise the error of one that failed."""
    with ThreadPoolExecutor(len(calls)) as pool:
        for running in [pool.submit(call) for call in calls]:
            running.result()


def first_view(catalog: ViewCatalog, identifier: TableIdentifier, sql: str) -> ViewMetadata:
    """Return the metadata of a new view at its default location."""
    location = catalog.default_view_location(identifier)
    return new_view(location, *definition(sql), properties={"owner": "me"})


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


class ViewChangeContract(ViewContract):
    """The changes of views, for catalogs that have views."""

    @pytest.fixture
    def views(self, catalog: Catalog) -> ViewCatalog:
        assert isinstance(catalog, ViewCatalog)
        return catalog

    def test_a_view_has_all_that_it_was_created_with(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        location = f"{views.default_view_location(identifier)}_of_its_own"
        properties = {"a": "1", "write.metadata.path": f"{location}/elsewhere"}
        updates = definition_of(SPARK, TRINO, default_catalog="lake")
        created = views.create_view(identifier, new_view(location, *updates, properties=properties))
        view = views.load_view(identifier).metadata
        assert view == created.metadata
        assert created.metadata_location.startswith(f"{location}/elsewhere/")
        assert view.location == location
        assert view.properties == properties
        assert [v.version_id for v in view.versions] == [e.version_id for e in view.version_log]
        version = view.current_version
        assert (version.version_id, version.schema_id) == (1, 0)
        assert version.representations == (SPARK, TRINO)
        assert (version.default_catalog, version.default_namespace) == ("lake", ("db",))
        assert [version.sql(d) for d in ("SPARK", "trino", "hive")] == [SPARK.sql, TRINO.sql, None]
        assert view.schema.fields == SCHEMA.fields

    def test_a_replaced_view_has_another_version_and_schema(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        location = views.default_view_location(identifier)
        views.create_view(identifier, new_view(location, *definition_of(TRINO, SPARK)))
        first = views.load_view(identifier).metadata
        other = definition_of(TRINO, schema=OTHER_SCHEMA)
        with pytest.raises(InvalidRequestError):
            views.commit_view(identifier, (), other).result()
        assert views.load_view(identifier).metadata == first
        allowed = SetProperties({"replace.drop-dialect.allowed": "true"})
        views.commit_view(identifier, (), (allowed, *other)).result()
        second = views.load_view(identifier).metadata
        assert second.view_uuid == first.view_uuid
        assert [s.schema_id for s in second.schemas] == [0, 1]
        assert second.schema.fields == OTHER_SCHEMA.fields
        assert second.versions == (first.current_version, second.current_version)
        assert [e.version_id for e in second.version_log] == [1, 2]
        assert second.current_version.representations == (TRINO,)
        assert second.current_version.schema_id == 1

    def test_properties_and_the_location_change_without_a_new_version(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        first = views.create_view(identifier, first_view(views, identifier, "SELECT 1")).metadata
        moved = f"{first.location}_moved"
        updates: list[tuple[ViewUpdate, ...]] = [
            (SetProperties({"a": "1", "b": "2"}), RemoveProperties(("absent",))),
            (RemoveProperties(("b",)),),
            (SetLocation(moved),),
        ]
        for update in updates:
            views.commit_view(identifier, (), update).result()
        changed = views.load_view(identifier)
        assert changed.metadata.properties == {"owner": "me", "a": "1"}
        assert changed.metadata_location.startswith(f"{moved}/")
        assert changed.metadata == replace(
            first, location=moved, properties=changed.metadata.properties
        )

    def test_a_view_is_moved_by_its_replacement(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        created = create_or_replace_view(views, identifier, counting("1")).metadata
        moved = f"{created.location}_moved"
        definition = replace(counting("2"), location=moved, properties={"a": "1"})
        create_or_replace_view(views, identifier, definition)
        replaced = views.load_view(identifier).metadata
        assert replaced.location == moved
        assert replaced.properties["a"] == "1"
        assert [v.version_id for v in replaced.versions] == [1, 2]

    def test_two_queries_in_one_dialect_are_refused(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        twice = definition_of(SPARK, SqlRepresentation("SELECT 2", "Spark"))
        created = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
        with pytest.raises(InvalidRequestError):
            views.commit_view(identifier, (), twice).result()
        assert views.load_view(identifier) == created

    def test_changes_of_a_view_that_another_dropped_are_refused(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        created = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
        required = (AssertViewUUID(created.metadata.view_uuid),)
        views.drop_view(identifier)
        for updates in (
            (SetProperties({"a": "1"}),),
            (SetLocation(f"{created.metadata.location}_moved"),),
            definition("SELECT 2"),
        ):
            with pytest.raises(NoSuchViewError):
                views.commit_view(identifier, required, updates).result()
        with pytest.raises(NoSuchViewError):
            replace_view(views, identifier, counting("1"))
        assert not views.view_exists(identifier)

    def test_replacements_at_the_same_time_are_all_versions(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        # The first of them creates the view: the others come to its name at the same time.
        definitions = [counting(str(n)) for n in range(3)]
        together([partial(create_or_replace_view, views, identifier, d) for d in definitions])
        view = views.load_view(identifier).metadata
        assert [v.version_id for v in view.versions] == [1, 2, 3]
        assert [e.version_id for e in view.version_log] == [1, 2, 3]
        assert {v.sql("spark") for v in view.versions} == {d.query.sql for d in definitions}

    def test_of_creators_at_the_same_time_one_has_the_view(
        self, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        created = []

        def create_view(sql: str) -> None:
            try:
                created.append(
                    views.create_view(identifier, first_view(views, identifier, sql)).metadata
                )
            except ViewAlreadyExistsError:
                return

        together([partial(create_view, f"SELECT {n}") for n in range(3)])
        assert created == [views.load_view(identifier).metadata]

    def test_loading_a_view_as_a_table_or_the_reverse_is_refused(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        view = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
        table = beside(identifier)
        created = create(catalog, table)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(identifier)
        with pytest.raises(NoSuchTableError):
            set_property(catalog, identifier, "a", "1")
        for load in (views.load_view, views.drop_view):
            with pytest.raises(NoSuchViewError):
                load(table)
        with pytest.raises(NoSuchViewError):
            views.commit_view(table, (), definition("SELECT 2")).result()
        assert catalog.load_table(table) == created
        assert views.load_view(identifier) == view

    def test_no_table_takes_the_name_of_a_view(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        view = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
        table = beside(identifier)
        metadata = first_metadata(catalog.default_table_location(table))
        outcome = catalog.commit_table(identifier, (AssertCreate(),), new_table_updates(metadata))
        assert isinstance(outcome, Refused)
        assert isinstance(outcome.error, (TableAlreadyExistsError, CommitError))
        created = create(catalog, table)
        with pytest.raises(TableAlreadyExistsError):
            catalog.register_table(identifier, created.metadata_location)
        assert views.load_view(identifier) == view
        assert catalog.list_tables(identifier.namespace) == [table]

    def test_no_view_takes_the_name_of_a_table(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        table = create(catalog, identifier)
        with pytest.raises(NoSuchViewError):
            replace_view(views, identifier, counting("1"))
        with pytest.raises(ViewAlreadyExistsError):
            create_or_replace_view(views, identifier, counting("1"))
        assert catalog.load_table(identifier) == table
        assert views.list_views(identifier.namespace) == []

    def test_views_are_listed_in_their_own_namespace(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        second, table = beside(identifier), beside(identifier)
        elsewhere = TableIdentifier(namespace=(new_name("db"),), name=identifier.name)
        with pytest.raises(NoSuchNamespaceError):
            views.list_views(elsewhere.namespace)
        catalog.create_namespace(elsewhere.namespace)
        create(catalog, table)
        for each in (identifier, second, elsewhere):
            views.create_view(each, first_view(views, each, "SELECT 1"))
        assert set(views.list_views(identifier.namespace)) == {identifier, second}
        assert views.list_views(elsewhere.namespace) == [elsewhere]
        assert catalog.list_tables(identifier.namespace) == [table]
        views.drop_view(identifier)
        catalog.drop_table(table)
        assert views.list_views(identifier.namespace) == [second]
        assert catalog.list_tables(identifier.namespace) == []
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(identifier.namespace)
        views.drop_view(second)
        catalog.drop_namespace(identifier.namespace)
        assert views.list_views(elsewhere.namespace) == [elsewhere]

    def test_a_view_is_renamed_into_another_namespace(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        view = views.create_view(identifier, first_view(views, identifier, "SELECT 1"))
        taken = beside(identifier)
        views.create_view(taken, first_view(views, taken, "SELECT 2"))
        target = TableIdentifier(namespace=(new_name("db"),), name=identifier.name)
        with pytest.raises(NoSuchNamespaceError):
            views.rename_view(identifier, target)
        with pytest.raises(ViewAlreadyExistsError):
            views.rename_view(identifier, taken)
        assert views.load_view(identifier) == view
        catalog.create_namespace(target.namespace)
        views.rename_view(identifier, target)
        assert views.load_view(target).metadata == view.metadata
        assert not views.view_exists(identifier)

    def test_a_dropped_view_is_registered_under_its_name(
        self, catalog: Catalog, views: ViewCatalog, identifier: TableIdentifier
    ) -> None:
        # Java deletes the metadata file of a dropped view unless the property says so.
        properties = {"gc.enabled": "false"}
        location = views.default_view_location(identifier)
        view = views.create_view(
            identifier, new_view(location, *definition("SELECT 1"), properties=properties)
        )
        views.drop_view(identifier)
        create(catalog, identifier)
        with pytest.raises(ViewAlreadyExistsError):
            views.register_view(identifier, view.metadata_location)
        catalog.drop_table(identifier)
        assert views.register_view(identifier, view.metadata_location) == view
        assert views.load_view(identifier) == view
