"""A catalog in a SQL database, in the tables of Java's JdbcCatalog and PyIceberg's SqlCatalog.

A commit is one UPDATE that asks for the old metadata location. The tables are `sql_schema.py`, the
rows of namespaces `sql_namespaces.py`, connections and transactions `sql_database.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.catalogs.metastore_catalog import MetastoreCatalog
from iceberg_pyspark.catalogs.properties import required_property
from iceberg_pyspark.catalogs.sql_database import Database
from iceberg_pyspark.catalogs.sql_namespaces import SqlNamespaces, joined_levels
from iceberg_pyspark.catalogs.sql_schema import TABLE_TYPE, TABLES, is_table_row, prepare_tables
from iceberg_pyspark.catalogs.warehouse import WAREHOUSE, absolute_location
from iceberg_pyspark.commits.outcomes import Done, Outcome, Refused, caused_by, unknown
from iceberg_pyspark.errors import (
    CatalogError,
    CommitStateUnknownError,
    IcebergError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.storage.file_io import FileIO

_log = logging.getLogger(__name__)


class SqlCatalog(MetastoreCatalog):
    """Tables of one catalog name in a database; `io` None: storage is chosen by location."""

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

    def __repr__(self) -> str:
        return f"SqlCatalog({self._name!r}, {self._database.redacted_url!r})"

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Direct children of a namespace."""
        self._require_namespace(parent)
        return self._namespaces.children(parent)

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Raises `NamespaceAlreadyExistsError`."""
        self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Raises `NoSuchNamespaceError`, `NamespaceNotEmptyError`."""
        self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it has a row of its own, or anything lies in it or below."""
        return self._namespaces.exists(namespace)

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self._namespaces.properties(namespace)

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties."""
        self._namespaces.update_properties(namespace, removals=removals, updates=updates)

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Tables directly in a namespace; raises `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        query = sa.select(TABLES.c.table_name).where(
            TABLES.c.catalog_name == self._name,
            TABLES.c.table_namespace == joined_levels(namespace),
            *self._only_tables(),
        )
        names = self._database.read(lambda c: c.execute(query).scalars().all())
        return [TableIdentifier(namespace=namespace, name=name) for name in sorted(names)]

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the table is there."""
        return self._row(identifier) is not None

    def _row(self, identifier: TableIdentifier) -> sa.Row[tuple[str | None]] | None:
        query = sa.select(TABLES.c.metadata_location).where(*self._is_row_of(identifier))
        return self._database.read(lambda c: c.execute(query).first())

    def _pointer(self, identifier: TableIdentifier) -> str | None:
        row = self._row(identifier)
        if row is not None and row.metadata_location is None:
            raise CatalogError(
                f"table {identifier} has no metadata location in catalog '{self._name}'; "
                "its row is damaged"
            )
        return None if row is None else row.metadata_location

    def _is_row_of(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            TABLES.c.catalog_name == self._name,
            TABLES.c.table_namespace == joined_levels(identifier.namespace),
            TABLES.c.table_name == identifier.name,
            *self._only_tables(),
        )

    def _only_tables(self) -> tuple[sa.ColumnElement[bool], ...]:
        return (is_table_row(),) if self._is_v1 else ()

    def _publish(self, identifier: TableIdentifier, location: str) -> Outcome[None]:
        row: dict[str, str | None] = {
            "catalog_name": self._name,
            "table_namespace": joined_levels(identifier.namespace),
            "table_name": identifier.name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        if self._is_v1:
            row["iceberg_type"] = TABLE_TYPE
        try:
            self._database.write(lambda c: c.execute(sa.insert(TABLES), row))
        except IntegrityError as e:
            return Refused(caused_by(self._already_exists(identifier), e.orig or e))
        except CommitStateUnknownError as e:
            return self._outcome_of(
                identifier, location, e, refusal=self._already_exists(identifier)
            )
        except CatalogError as e:
            # rolled back, as `Database.write` says
            return Refused(e)
        return Done(None)

    def _swap(self, identifier: TableIdentifier, expected: str, new: str) -> Outcome[None]:
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(identifier), TABLES.c.metadata_location == expected)
            .values(metadata_location=new, previous_metadata_location=expected)
        )
        conflict = self._conflict(identifier)
        try:
            swapped = self._database.write(lambda c: c.execute(statement).rowcount)
        except CommitStateUnknownError as e:
            return self._outcome_of(identifier, new, e, expected=expected, refusal=conflict)
        except CatalogError as e:
            return Refused(e)
        return Done(None) if swapped else Refused(conflict)

    def _outcome_of(
        self,
        identifier: TableIdentifier,
        new: str,
        cause: CommitStateUnknownError,
        *,
        expected: str | None = None,
        refusal: IcebergError,
    ) -> Outcome[None]:
        """The outcome of a COMMIT that the database has not answered.

        `refusal` is the error where the row has moved on from what the statement asked for, so
        that the statement can never be applied any more.
        """
        not_known = unknown(f"table {identifier}", cause)
        try:
            row = self._row(identifier)
            location = None if row is None else row.metadata_location
            if location == new:
                return Done(None)
            if location == expected or location is None:
                return not_known
            log = self._load(identifier, location).metadata.metadata_log
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            _log.info("could not look at table %s: %s", identifier, e)
            return not_known
        logged = {entry.metadata_file for entry in log}
        if new in logged:
            return Done(None)
        # without the old location in it, the log may have been cut after our commit
        if expected in logged or (expected is None and not logged):
            return Refused(caused_by(refusal, cause))
        return not_known

    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        statement = sa.delete(TABLES).where(*self._is_row_of(identifier))
        return self._database.write(lambda c: c.execute(statement).rowcount) > 0

    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(source))
            .values(table_namespace=joined_levels(target.namespace), table_name=target.name)
        )
        try:
            return self._database.write(lambda c: c.execute(statement).rowcount) > 0
        except IntegrityError as e:
            raise self._already_exists(target) from e.orig

    def _already_exists(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"table or view {identifier} is already in catalog '{self._name}'"
        )
