"""A catalog in a SQL database, compatible with Java's JdbcCatalog and PyIceberg's SqlCatalog.

A commit is one UPDATE with the old metadata location in its condition. Tables and views share
`iceberg_tables` and its key, so a table and a view cannot have the same name. `catalog_tables.py`
defines the database tables; `namespaces.py` manages the rows of namespaces, `database.py`
connections and transactions. By default the database is an SQLite file in the warehouse folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.catalog import LoadedTable, LoadedView, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.catalog_properties import required_property
from iceberg_pyspark.catalogs.metastore_views import MetastoreViewCatalog
from iceberg_pyspark.catalogs.sql.catalog_tables import (
    TABLE_TYPE,
    TABLES,
    VIEW_TYPE,
    prepare_tables,
)
from iceberg_pyspark.catalogs.sql.database import Database, sqlite_uri
from iceberg_pyspark.catalogs.sql.namespaces import SqlNamespaces, can_exist, joined_levels
from iceberg_pyspark.catalogs.table_folders import WAREHOUSE, absolute_location
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, caused_by
from iceberg_pyspark.errors import (
    CatalogError,
    CommitStateUnknownError,
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local, local_path
from iceberg_pyspark.storage.files.places import spellings


class SqlPointers:
    """The rows of one catalog name and one type (table or view).

    In a database of schema V0, every row is a table. The methods that write raise the errors of
    `Database.write`.
    """

    def __init__(self, catalog: str, database: Database, row_type: str, *, is_v1: bool) -> None:
        self._catalog = catalog
        self._database = database
        self._type = row_type
        self._is_v1 = is_v1

    def identifiers(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the identifiers directly in a namespace, sorted by name."""
        text = joined_levels(namespace)
        query = sa.select(TABLES.c.table_name, TABLES.c.table_namespace).where(
            TABLES.c.catalog_name == self._catalog,
            TABLES.c.table_namespace == text,
            *self._only_type(),
        )
        rows = self._database.read(lambda c: c.execute(query).all())
        # some databases ignore case in comparisons
        names = sorted(row.table_name for row in rows if row.table_namespace == text)
        return [TableIdentifier(namespace=namespace, name=name) for name in names]

    def location(self, identifier: TableIdentifier) -> str | None:
        """Return the location of the metadata, or None if there is no row."""
        # Spark also asks for tables in `db.t`, which is the metadata table of a table.
        if not can_exist(identifier.namespace):
            return None
        query = sa.select(TABLES.c.metadata_location).where(*self._is_row_of(identifier))
        row = self._database.read(lambda c: c.execute(query).first())
        if row is not None and row.metadata_location is None:
            raise CatalogError(
                f"{self._type.lower()} {identifier} has no metadata location in catalog "
                f"'{self._catalog}'; its row is damaged"
            )
        return None if row is None else row.metadata_location

    def other_catalogs(self, identifier: TableIdentifier) -> list[str]:
        """Return the other catalog names of the database that have this name, sorted."""
        if not can_exist(identifier.namespace):
            return []
        column = TABLES.c.catalog_name
        query = sa.select(column).where(*self._has_name(identifier), column != self._catalog)
        return sorted(self._database.read(lambda c: c.execute(query).scalars().all()))

    def others_in(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the metadata locations in a folder of all other rows, whatever their type.

        The rows of other catalog names count too.
        """
        starts = spellings(f"{folder.rstrip('/')}/")
        column = TABLES.c.metadata_location
        query = sa.select(column).where(
            sa.or_(*(column.startswith(start, autoescape=True) for start in starts)),
            sa.not_(sa.and_(*self._is_row_of(identifier))),
        )
        locations = self._database.read(lambda c: c.execute(query).scalars().all())
        # some databases ignore case in comparisons
        return sorted(f for f in locations if f"{f.rpartition('/')[0]}/" in starts)

    def insert(self, identifier: TableIdentifier, location: str) -> None:
        """Insert a row."""
        row: dict[str, str | None] = {
            "catalog_name": self._catalog,
            "table_namespace": joined_levels(identifier.namespace),
            "table_name": identifier.name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        if self._is_v1:
            row["iceberg_type"] = self._type
        self._database.write(lambda c: c.execute(sa.insert(TABLES), row))

    def swap(self, identifier: TableIdentifier, base_location: str, new: str) -> bool:
        """Replace the metadata location if it is `base_location`; return whether it was."""
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(identifier), TABLES.c.metadata_location == base_location)
            .values(metadata_location=new, previous_metadata_location=base_location)
        )
        return self._changes_a_row(statement)

    def delete(self, identifier: TableIdentifier) -> bool:
        """Delete the row; return whether the row existed."""
        statement = sa.delete(TABLES).where(*self._is_row_of(identifier))
        return self._changes_a_row(statement)

    def rename(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Rename the row; return whether the row existed."""
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(source))
            .values(table_namespace=joined_levels(target.namespace), table_name=target.name)
        )
        return self._changes_a_row(statement)

    def _changes_a_row(self, statement: sa.Update | sa.Delete) -> bool:
        return self._database.write(lambda c: c.execute(statement).rowcount) > 0

    def _is_row_of(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (TABLES.c.catalog_name == self._catalog, *self._has_name(identifier))

    def _has_name(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            *self._database.equals(TABLES.c.table_namespace, joined_levels(identifier.namespace)),
            *self._database.equals(TABLES.c.table_name, identifier.name),
            *self._only_type(),
        )

    def _only_type(self) -> tuple[sa.ColumnElement[bool], ...]:
        column = TABLES.c.iceberg_type
        if not self._is_v1:
            return () if self._type == TABLE_TYPE else (sa.false(),)
        if self._type == TABLE_TYPE:
            return (sa.or_(column == TABLE_TYPE, column.is_(None)),)
        return (column == self._type,)


class SqlCatalog(MetastoreViewCatalog):
    """The tables and views of one catalog name in a database.

    If `io` is None, the location of each file decides which storage is used.
    """

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        uri = required_property(
            name, properties, "uri", "a database URL, as sqlite:///path/catalog.db"
        )
        warehouse = properties.get(WAREHOUSE)
        if warehouse:
            properties = {**properties, WAREHOUSE: absolute_location(warehouse)}
        super().__init__(name, properties, io)
        self._database = Database(uri, properties)
        self._is_v1 = prepare_tables(self._database, name, properties)
        self._namespaces = SqlNamespaces(name, self._database)
        self._tables = SqlPointers(name, self._database, TABLE_TYPE, is_v1=self._is_v1)
        self._views = SqlPointers(name, self._database, VIEW_TYPE, is_v1=self._is_v1)

    def __repr__(self) -> str:
        return f"SqlCatalog({self._name!r}, {self._database.redacted_url!r})"

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the direct children of a namespace."""
        self._require_namespace(parent)
        return self._namespaces.children(parent)

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace; raise `NamespaceAlreadyExistsError` if the namespace exists."""
        self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace has a row, or contains anything at any depth."""
        return self._namespaces.exists(namespace)

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self._namespaces.properties(namespace)

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; raise `NoSuchNamespaceError`."""
        self._namespaces.update_properties(namespace, removals=removals, updates=updates)

    # tables

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the tables directly in a namespace; raise `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        return self._tables.identifiers(namespace)

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists."""
        return self._tables.location(identifier) is not None

    def other_pointers(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the current metadata files in a folder of all tables and views but this one."""
        return self._tables.others_in(identifier, folder)

    def _pointer(self, identifier: TableIdentifier) -> str | None:
        return self._tables.location(identifier)

    def _publish_table(self, table: LoadedTable) -> Outcome[None]:
        identifier, location = table.identifier, table.metadata_location
        refusal = self._already_exists(identifier)
        look = partial(self._outcome_of, identifier, location, refusal=refusal)
        return _outcome(lambda: self._tables.insert(identifier, location), look, refusal)

    def _swap_table(self, base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        identifier, new = new_table.identifier, new_table.metadata_location
        base_location, conflict = base.metadata_location, self._conflict(identifier)
        look = partial(
            self._outcome_of, identifier, new, base_location=base_location, refusal=conflict
        )
        return _outcome(lambda: self._tables.swap(identifier, base_location, new), look, conflict)

    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        return self._tables.delete(identifier)

    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        try:
            return self._tables.rename(source, target)
        except IntegrityError as e:
            raise self._already_exists(target) from e.orig

    def _already_exists(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"table or view {identifier} is already in catalog '{self._name}'"
        )

    def _no_such_table(self, identifier: TableIdentifier) -> NoSuchTableError:
        """Return the error, which names other catalogs of the database with such a table.

        The rows of a database belong to catalog names, which is easy to overlook where the database
        is a file in the warehouse.
        """
        error = super()._no_such_table(identifier)
        try:
            others = self._tables.other_catalogs(identifier)
        except IcebergError:
            others = []
        if not others:
            return error
        names = ", ".join(f"'{name}'" for name in others)
        return NoSuchTableError(f"{error}; its database has the table in catalog {names}")

    # views

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the views directly in a namespace; raise `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        return self._views.identifiers(namespace)

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view; raise `ViewAlreadyExistsError`."""
        self._require_view_support(identifier)
        return super().create_view(identifier, metadata)

    def register_view(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file as a view; raise `ViewAlreadyExistsError`."""
        self._require_view_support(identifier)
        return super().register_view(identifier, metadata_location)

    def _require_view_support(self, identifier: TableIdentifier) -> None:
        if not self._is_v1:
            raise UnsupportedFeatureError(
                f"catalog '{self._name}' cannot hold view {identifier}: the tables of its database "
                f"{self._database.redacted_url} are of schema V0, which has no views; set "
                "jdbc.schema-version to V1 once all clients of the database support it"
            )

    def _view_pointer(self, identifier: TableIdentifier) -> str | None:
        return self._views.location(identifier)

    def _publish_view(self, view: LoadedView) -> Outcome[None]:
        identifier, location = view.identifier, view.metadata_location
        look = partial(self._view_outcome, identifier, location)
        refusal = self._view_already_exists(identifier)
        return _outcome(lambda: self._views.insert(identifier, location), look, refusal)

    def _swap_view(self, base: LoadedView, new_view: LoadedView) -> Outcome[None]:
        identifier, new = new_view.identifier, new_view.metadata_location
        base_location, conflict = base.metadata_location, self._view_conflict(identifier)
        look = partial(self._view_outcome, identifier, new)
        return _outcome(lambda: self._views.swap(identifier, base_location, new), look, conflict)

    def _delete_view_pointer(self, identifier: TableIdentifier) -> bool:
        return self._views.delete(identifier)

    def _rename_view_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        try:
            return self._views.rename(source, target)
        except IntegrityError as e:
            raise self._view_already_exists(target) from e.orig


def _outcome(
    write: Callable[[], bool | None],
    look: Callable[[BaseException], Outcome[None]],
    refusal: IcebergError,
) -> Outcome[None]:
    """Write a row and return the outcome, `refusal` if a key exists or `write` returns False.

    `look` finds out the outcome if the database gave no answer.
    """
    try:
        is_written = write()
    except IntegrityError as e:
        return Refused(caused_by(refusal, e.orig or e))
    except CommitStateUnknownError as e:
        return look(e)
    except CatalogError as e:
        # `Database.write` has rolled the transaction back
        return Refused(e)
    return Refused(refusal) if is_written is False else Done(None)


EMBEDDED_WAREHOUSE = "iceberg-warehouse"
EMBEDDED_DATABASE = "catalog.db"


def open_sql_catalog(name: str, properties: Mapping[str, str]) -> SqlCatalog:
    """Open the catalog; create an embedded database and its folder if necessary."""
    return SqlCatalog(
        name, properties if properties.get("uri") else _embedded_properties(name, properties)
    )


def _embedded_properties(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a catalog without a URI: an SQLite file in its warehouse folder."""
    warehouse = absolute_location(properties.get(WAREHOUSE) or EMBEDDED_WAREHOUSE)
    if not is_local(warehouse):
        raise InvalidRequestError(
            f"catalog '{name}' needs the property 'uri', a database URL: no database can lie in "
            f"{warehouse}"
        )
    folder = local_path(warehouse)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        raise StorageError(
            f"cannot make the folder {folder} of catalog '{name}': {e.strerror}; set 'warehouse' "
            "to another one"
        ) from e
    return {
        **properties,
        WAREHOUSE: warehouse,
        "uri": sqlite_uri(f"{folder}/{EMBEDDED_DATABASE}"),
    }
