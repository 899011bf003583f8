"""Namespaces of a Hive catalog: the metastore's databases, which are not nested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import (
    Namespace,
    check_namespace,
    namespace_already_exists,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.hive.metastore_client import HiveAnswerError, HiveClient
from iceberg_pyspark.catalogs.hive.metastore_entries import (
    changed_database,
    check_name,
    is_database_name,
    namespace_properties,
)
from iceberg_pyspark.catalogs.hive.thrift import Struct
from iceberg_pyspark.catalogs.outcome_search import look_after_change
from iceberg_pyspark.catalogs.table_folders import LOCATION
from iceberg_pyspark.errors import (
    CommitStateUnknownError,
    NamespaceNotEmptyError,
    UnsupportedFeatureError,
)


class HiveNamespaces:
    """The databases of one metastore.

    A new database is located in `warehouse`, or where the metastore's configuration says.
    """

    def __init__(self, catalog: str, client: HiveClient, warehouse: str | None) -> None:
        self._catalog = catalog
        self._hive = client
        self._warehouse = warehouse

    def all(self) -> list[Namespace]:
        """Return all databases as namespaces, sorted."""
        return sorted((name,) for name in self._hive.call("get_all_databases"))

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a database; raise `NamespaceAlreadyExistsError` if the database exists.

        If the answer is lost, a database with these properties that was not there before is the
        created one.
        """
        check_namespace(namespace)
        if len(namespace) > 1:
            raise UnsupportedFeatureError(
                f"namespace {'.'.join(namespace)}: a Hive metastore has no nested namespaces"
            )
        check_name(namespace[0])
        all_properties = dict(properties)
        if self._warehouse:
            all_properties.setdefault(LOCATION, f"{self._warehouse}/{namespace[0]}.db")
        exists = namespace_already_exists(namespace, self._catalog)
        if self.database(namespace) is not None:
            raise exists
        try:
            self._hive.change(
                "create_database", database=changed_database({"name": namespace[0]}, all_properties)
            )
        except HiveAnswerError as e:
            if e.code != "AlreadyExistsException":
                raise
            raise exists from e
        except CommitStateUnknownError as e:
            # the metastore may spell the location in another way
            requested_properties = {k: v for k, v in properties.items() if k != LOCATION}
            look_after_change(
                f"creation of namespace {namespace[0]}",
                lambda: self._has(namespace, requested_properties),
                e,
            )

    def drop(self, namespace: Namespace) -> None:
        """Drop an empty database; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        self._load_database(namespace)
        full = NamespaceNotEmptyError(
            f"namespace {namespace[0]} still has tables, views or functions; drop all of them "
            "first, not only Iceberg's"
        )
        if self._hive.call("get_all_tables", db_name=namespace[0]):
            raise full
        try:
            self._hive.change("drop_database", name=namespace[0], deleteData=False, cascade=False)
        except HiveAnswerError as e:
            if e.code == "NoSuchObjectException":
                raise no_such_namespace(namespace, self._catalog) from e
            if e.code == "InvalidOperationException":
                raise full from e
            raise
        except CommitStateUnknownError as e:
            look_after_change(
                f"drop of namespace {namespace[0]}", lambda: self.database(namespace) is None, e
            )

    def update_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; raise `NoSuchNamespaceError`."""
        check_namespace(namespace)
        database = self._load_database(namespace)
        remaining_properties = {
            k: v for k, v in namespace_properties(database).items() if k not in removals
        }
        new_database = changed_database(database, {**remaining_properties, **updates})
        try:
            self._hive.change("alter_database", dbname=namespace[0], db=new_database)
        except CommitStateUnknownError as e:
            look_after_change(
                f"change of the properties of namespace {namespace[0]}",
                lambda: self._has(namespace, updates, without=removals),
                e,
            )

    def database(self, namespace: Namespace) -> Struct | None:
        """Return the metastore's entry of a database, or None if there is no such database."""
        if not is_database_name(namespace):
            return None
        try:
            database: Struct = self._hive.call("get_database", name=namespace[0])
        except HiveAnswerError as e:
            if e.code == "NoSuchObjectException":
                return None
            raise
        return database

    def _has(
        self, namespace: Namespace, properties: Mapping[str, str], without: Sequence[str] = ()
    ) -> bool:
        database = self.database(namespace)
        if database is None:
            return False
        current_properties = namespace_properties(database)
        return (
            properties.items() <= current_properties.items()
            and not current_properties.keys() & (set(without) - properties.keys())
        )

    def _load_database(self, namespace: Namespace) -> Struct:
        database = self.database(namespace)
        if database is None:
            raise no_such_namespace(namespace, self._catalog)
        return database
