"""A catalog in a SQL database, compatible with Java's JdbcCatalog and PyIceberg's SqlCatalog.

A commit is one UPDATE with the old metadata location in its condition. `schema.py` defines the
database tables; `pointers.py` manages the rows of tables and views, `namespaces.py` the rows of
namespaces, `database.py` connections and transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.catalog import LoadedTable, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.metastore_views import MetastoreViewCatalog
from iceberg_pyspark.catalogs.properties import required_property
from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.catalogs.sql.namespaces import SqlNamespaces
from iceberg_pyspark.catalogs.sql.pointers import SqlPointers
from iceberg_pyspark.catalogs.sql.schema import TABLE_TYPE, VIEW_TYPE, prepare_tables
from iceberg_pyspark.catalogs.view_catalog import LoadedView
from iceberg_pyspark.catalogs.warehouse import WAREHOUSE, absolute_location
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, caused_by
from iceberg_pyspark.errors import (
    CatalogError,
    CommitStateUnknownError,
    IcebergError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.storage.files.file_io import FileIO


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
