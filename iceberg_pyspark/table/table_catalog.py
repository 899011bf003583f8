"""A catalog for Python users: names and schemas as text, tables as `Table`.

`catalogs/` does the work; this module parses names, schemas and partitioning
(`sql_text/schema_text.py`, `sql_text/ddl.py`), and applies the catalog's `table-default.*` and
`table-override.*` properties to new tables.

The name of a table leads to its catalog. A name with a `/` is a path. Otherwise the catalog is, in
this order: the catalog that the caller names, the configured catalog whose name the table name
starts with, the default catalog.

Methods import what they call: most programs call few of them.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import from_arrow_schema
from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedView,
    Namespace,
    TableIdentifier,
    ViewCatalog,
)
from iceberg_pyspark.catalogs.catalog_properties import configured_names, shown_properties
from iceberg_pyspark.catalogs.hadoop.path_tables import PathCatalog, path_identifier
from iceberg_pyspark.catalogs.registry import load_catalog as load_plain_catalog
from iceberg_pyspark.catalogs.registry import resolve_table
from iceberg_pyspark.display import html_table, printable
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec.argument_types import checked, checked_methods
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from iceberg_pyspark.sql_text.names import is_path, parse_levels, readable_name
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table import load_table as load_table_of


@checked_methods
@dataclass(frozen=True, slots=True)
class View:
    """A view as it was when it was loaded; its query is run by an engine such as Spark."""

    loaded: LoadedView
    """The view as the catalog returned it."""

    def __repr__(self) -> str:
        return "\n".join([printable(f"View {self.name}"), repr(self.schema)])

    @property
    def name(self) -> str:
        """The name as `load_view` of the view's catalog takes it."""
        return readable_name(self.loaded.identifier.levels)

    @property
    def metadata(self) -> ViewMetadata:
        """All versions of the view."""
        return self.loaded.metadata

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.metadata.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The view properties."""
        return self.metadata.properties

    def sql(self, dialect: str = "spark") -> str:
        """Return the query in a dialect; raise `InvalidRequestError` if the view has none."""
        version = self.metadata.current_version
        text = version.sql(dialect)
        if text is None:
            queries = [r for r in version.representations if isinstance(r, SqlRepresentation)]
            dialects = ", ".join(q.dialect for q in queries) or "none"
            raise InvalidRequestError(
                f"view {self.name} has no query in dialect '{dialect}'; it has: {dialects}"
            )
        return text


GivenSchema: TypeAlias = Annotated[
    str | Schema | pa.Schema, "text such as 'id BIGINT', an Iceberg schema or an Arrow schema"
]


@checked
def load_table(name: str, *, catalog: str | None = None, **properties: str) -> Table:
    """Load the table at a path, or with a name in a catalog, without Spark.

    A name with a `/` is the path of a table's folder or of one of its metadata files. Any other
    name is looked up in `catalog`, or else in the configured catalog that the name starts with, or
    else in the default catalog. `properties` are those of the catalog or, for a path, of the store
    (`**{"s3.region": "..."}`). Raises `NoSuchTableError`.
    """
    if is_path(name):
        reference = resolve_table(name, catalog=catalog, storage_properties=properties)
    else:
        reference = resolve_table(name, catalog=catalog, catalog_properties=properties)
    try:
        return load_table_of(*reference)
    except NoSuchTableError as e:
        if is_path(name) or catalog is not None or properties:
            raise
        names = ", ".join(configured_names(os.environ)) or "none"
        raise type(e)(
            f"{e}; check the name, begin it with a configured catalog (configured are: {names}), "
            "or give `catalog` and the catalog's properties"
        ) from None


@checked
def load_catalog(name: str | None = None, **properties: str) -> TableCatalog:
    """Load a catalog by name, as `registry.load_catalog` does, for use with text names.

    Property names with dots and dashes are given as `**{"s3.region": "eu-west-1"}`.
    """
    return TableCatalog(load_plain_catalog(name, **properties))


@checked_methods
class TableCatalog:
    """Tables and namespaces by dotted name, with or without the catalog's name in front.

    A name with a slash is a path, which needs no catalog.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._paths = PathCatalog(catalog.properties)

    def __repr__(self) -> str:
        properties = shown_properties(self.properties)
        facts = [
            f"{key} {properties[key]}" for key in ("type", "uri", "warehouse") if key in properties
        ]
        return printable(": ".join([f"TableCatalog {self.name}", ", ".join(facts)]).rstrip(": "))

    def _repr_html_(self) -> str:
        return html_table(
            f"TableCatalog {self.name}", (), shown_properties(self.properties).items()
        )

    @property
    def name(self) -> str:
        """The name under which the catalog is configured."""
        return self._catalog.name

    @property
    def properties(self) -> Mapping[str, str]:
        """The catalog's configuration."""
        return self._catalog.properties

    @property
    def catalog(self) -> Catalog:
        """The wrapped catalog, which takes identifiers in place of text names."""
        return self._catalog

    def create_table(
        self,
        name: str,
        schema: GivenSchema,
        *,
        partitioned_by: Sequence[str] = (),
        sorted_by: Sequence[str] = (),
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table.

        `schema` is text in the form of Spark SQL columns, or an Iceberg or Arrow schema;
        `partitioned_by` is like `["days(ts)", "bucket(16, id)"]`, `sorted_by` like `["ts DESC"]`.
        Raises `NoSuchNamespaceError`, except in a catalog of type `hadoop`, whose namespaces are
        folders, and `TableAlreadyExistsError`; with `if_not_exists`, the existing table is returned
        as it is, whatever its schema.
        """
        from iceberg_pyspark.changes.new_table import NewTable
        from iceberg_pyspark.sql_text.ddl import parse_partitioning, parse_sort_order
        from iceberg_pyspark.table.commits.create_table import create_table, new_table_properties

        catalog, identifier = self._resolve(name)
        columns = _schema(schema)
        if if_not_exists and catalog.table_exists(identifier):
            return load_table_of(catalog, identifier)
        new = NewTable(
            schema=columns,
            spec=parse_partitioning(partitioned_by, columns),
            sort_order=parse_sort_order(sorted_by, columns),
            location=location,
            properties=new_table_properties(self.properties, properties or {}),
        )
        try:
            return Table(catalog, create_table(catalog, identifier, new))
        except TableAlreadyExistsError:
            if not if_not_exists:
                raise
            return load_table_of(catalog, identifier)

    def load_table(self, name: str) -> Table:
        """Load the table with this name; raises `NoSuchTableError`."""
        return load_table_of(*self._resolve(name))

    def table_exists(self, name: str) -> bool:
        """Return whether the table exists."""
        catalog, identifier = self._resolve(name)
        return catalog.table_exists(identifier)

    def list_tables(self, namespace: str = "") -> list[str]:
        """Return the names of the tables directly in a namespace; raises `NoSuchNamespaceError`."""
        return [_text(i) for i in self._catalog.list_tables(self._namespace(namespace))]

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Drop the table; its files stay, except with `purge`. Raises `NoSuchTableError`."""
        catalog, identifier = self._resolve(name)
        if purge:
            # most processes drop no table
            from iceberg_pyspark.table.maintenance.removal.purge_table import (
                drop_with_files,
            )

            drop_with_files(catalog, identifier)
        else:
            catalog.drop_table(identifier)

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table within the catalog.

        Raises `NoSuchTableError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`.
        """
        if is_path(name) or is_path(new_name):
            raise InvalidRequestError(f"'{name}' to '{new_name}': a path cannot be renamed")
        self._catalog.rename_table(self._identifier(name), self._identifier(new_name))

    def register_table(self, name: str, metadata_location: str, *, dry_run: bool = False) -> Table:
        """Register an existing metadata file as a table.

        Raises `NoSuchNamespaceError`, `TableAlreadyExistsError`.

        `dry_run` reads the file, checks that the name is free, and registers nothing: the returned
        table is in no catalog.
        """
        catalog, identifier = self._resolve(name)
        table = catalog.register_table(identifier, metadata_location, dry_run=dry_run)
        return Table(catalog, table)

    def list_views(self, namespace: str = "") -> list[str]:
        """Return the names of the views directly in a namespace; raises `NoSuchNamespaceError`.

        All methods for views raise `UnsupportedFeatureError` if the catalog has no views.
        """
        views = _with_views(self._catalog)
        return [_text(i) for i in views.list_views(self._namespace(namespace))]

    def view_exists(self, name: str) -> bool:
        """Return whether the view exists."""
        views, identifier = self._view(name)
        return views.view_exists(identifier)

    def load_view(self, name: str) -> View:
        """Load the view with this name; raises `NoSuchViewError`."""
        views, identifier = self._view(name)
        return View(views.load_view(identifier))

    def create_view(
        self,
        name: str,
        schema: GivenSchema,
        sql: str,
        *,
        dialect: str = "spark",
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> View:
        """Create a view of a query.

        `schema` has the columns of the query `sql`, which is not run or checked. Names in the query
        without a namespace are in the view's own. With `replace`, an existing view gets the query
        as a new version. Raises `NoSuchNamespaceError`, and `ViewAlreadyExistsError` if a view or
        table has the name.
        """
        from iceberg_pyspark.table.commits.define_view import (
            NewDefinition,
            create_or_replace_view,
            create_view,
        )

        views, identifier = self._view(name)
        definition = NewDefinition(
            schema=_schema(schema),
            query=SqlRepresentation(sql, dialect),
            default_namespace=identifier.namespace,
            properties=properties or {},
            location=location,
        )
        create = create_or_replace_view if replace else create_view
        return View(create(views, identifier, definition))

    def drop_view(self, name: str) -> None:
        """Drop the view; its metadata files stay. Raises `NoSuchViewError`."""
        views, identifier = self._view(name)
        views.drop_view(identifier)

    def rename_view(self, name: str, new_name: str) -> None:
        """Rename a view within the catalog.

        Raises `NoSuchViewError`, `ViewAlreadyExistsError`, `NoSuchNamespaceError`.
        """
        (views, identifier), (_, new_identifier) = self._view(name), self._view(new_name)
        views.rename_view(identifier, new_identifier)

    def register_view(self, name: str, metadata_location: str) -> View:
        """Register an existing metadata file as a view.

        Raises `NoSuchNamespaceError`, `ViewAlreadyExistsError`.
        """
        views, identifier = self._view(name)
        return View(views.register_view(identifier, metadata_location))

    def create_namespace(
        self,
        name: str,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        """Create a namespace.

        Raises `NamespaceAlreadyExistsError`; with `if_not_exists`, an existing namespace stays as
        it is.
        """
        try:
            self._catalog.create_namespace(self._namespace(name), properties)
        except NamespaceAlreadyExistsError:
            if not if_not_exists:
                raise

    def drop_namespace(self, name: str) -> None:
        """Drop an empty namespace; raises `NoSuchNamespaceError`, `NamespaceNotEmptyError`."""
        self._catalog.drop_namespace(self._namespace(name))

    def namespace_exists(self, name: str) -> bool:
        """Return whether the namespace exists."""
        return self._catalog.namespace_exists(self._namespace(name))

    def list_namespaces(self, parent: str = "") -> list[str]:
        """Return the full names of the direct children of a namespace."""
        return [readable_name(n) for n in self._catalog.list_namespaces(self._namespace(parent))]

    def load_namespace_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a namespace; raises `NoSuchNamespaceError`."""
        return self._catalog.load_namespace_properties(self._namespace(name))

    def update_namespace_properties(
        self,
        name: str,
        *,
        removals: Sequence[str] = (),
        updates: Mapping[str, str] | None = None,
    ) -> None:
        """Remove and set namespace properties; raises `NoSuchNamespaceError`."""
        if both := set(removals).intersection(updates or {}):
            raise InvalidRequestError(
                f"removals and updates both name {', '.join(sorted(both))}; keep one"
            )
        self._catalog.update_namespace_properties(
            self._namespace(name), removals=removals, updates=updates or {}
        )

    def _view(self, name: str) -> tuple[ViewCatalog, TableIdentifier]:
        catalog, identifier = self._resolve(name)
        return _with_views(catalog), identifier

    def _resolve(self, name: str) -> tuple[Catalog, TableIdentifier]:
        if is_path(name):
            return self._paths, path_identifier(name)
        return self._catalog, self._identifier(name)

    def _identifier(self, name: str) -> TableIdentifier:
        levels = parse_levels(name)
        # A name of two levels is a namespace and a table, even if the namespace has the catalog's
        # name.
        if len(levels) > 2 and levels[0] == self._catalog.name:
            levels = levels[1:]
        return TableIdentifier(namespace=levels[:-1], name=levels[-1])

    def _namespace(self, name: str) -> Namespace:
        return parse_levels(name) if name else ()


def _with_views(catalog: Catalog) -> ViewCatalog:
    from iceberg_pyspark.table.commits.define_view import with_views

    return with_views(catalog)


def _schema(schema: GivenSchema) -> Schema:
    if isinstance(schema, str):
        # with the parser of SQL, which most programs do not need
        from iceberg_pyspark.sql_text.schema_text import parse_schema

        return parse_schema(schema)
    return schema if isinstance(schema, Schema) else from_arrow_schema(schema)


def _text(identifier: TableIdentifier) -> str:
    return readable_name(identifier.levels)
