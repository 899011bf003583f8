"""A catalog in a SQL database, in the tables of Java's JdbcCatalog and PyIceberg's SqlCatalog.

A commit is one UPDATE that asks for the old metadata location. A namespace is its levels joined by
dots; it exists by a marker row, or because something lies in it. The tables are `sql_schema.py`,
connections and transactions `sql_database.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.catalog import LoadedTable, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.identifiers import check_identifier, check_namespace
from iceberg_pyspark.catalogs.own_folders import own_folders
from iceberg_pyspark.catalogs.pointer_swap import (
    commit_by_swap,
    create_by_swap,
    created_from_updates,
)
from iceberg_pyspark.catalogs.properties import (
    CatalogProperties,
    required_property,
    storage_properties,
)
from iceberg_pyspark.catalogs.sql_database import Database
from iceberg_pyspark.catalogs.sql_schema import (
    ADD_TYPE_COLUMN,
    MAX_VALUE_LENGTH,
    NAMESPACE_PROPERTIES,
    TABLE_TYPE,
    TABLES,
    has_type_column,
    is_table_row,
    missing_tables,
)
from iceberg_pyspark.catalogs.warehouse import WAREHOUSE, absolute_location, default_location
from iceberg_pyspark.commits.outcomes import Done, Outcome, Refused, caused_by, unknown
from iceberg_pyspark.commits.requirements import AssertCreate, TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import (
    CatalogError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec.properties import bool_property
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.metadata_files import read_table_metadata
from iceberg_pyspark.storage.open_storage import open_storage

_log = logging.getLogger(__name__)
_EXISTS = "exists"
_SCHEMA_VERSION_KEYS = ("jdbc.schema-version", "schema_version", "schema-version")
_INIT_KEYS = ("jdbc.init-catalog-tables", "init_catalog_tables", "init-catalog-tables")


@dataclass(frozen=True, slots=True)
class _Row:
    """A table's row, as far as commits need it."""

    metadata_location: str | None


class SqlCatalog:
    """Tables of one catalog name in a database; `io` None: storage is chosen by location."""

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        uri = required_property(
            name, properties, "uri", "a database URL, as sqlite:///path/catalog.db"
        )
        self._name = name
        known = dict(properties)
        if known.get(WAREHOUSE):
            known[WAREHOUSE] = absolute_location(known[WAREHOUSE])
        self._properties = CatalogProperties(known)
        self._config = storage_properties(known)
        self._io = io
        self._database = Database(uri, properties)
        self._has_type = self._initialise()

    def __repr__(self) -> str:
        return f"SqlCatalog({self._name!r}, {self._database.shown_url!r})"

    @property
    def name(self) -> str:
        """The name the catalog was configured under."""
        return self._name

    @property
    def properties(self) -> CatalogProperties:
        """Its configuration, storage properties included."""
        return self._properties

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Direct children of a namespace."""
        self._require_namespace(parent)
        depth = len(parent)
        found = self._database.read(lambda c: self._namespaces(c, parent))
        return sorted({n[: depth + 1] for n in found if len(n) > depth})

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Raises `NamespaceAlreadyExistsError`."""
        check_namespace(namespace)
        text = _text(namespace)
        rows = _property_rows(self._name, text, properties or {})
        marker = _property_row(self._name, text, _EXISTS, "true")

        def create(connection: sa.Connection) -> bool:
            if self._exists(connection, namespace):
                return False
            connection.execute(sa.insert(NAMESPACE_PROPERTIES), [marker, *rows])
            return True

        try:
            created = self._database.write(create)
        except IntegrityError:
            created = False
        if not created:
            raise NamespaceAlreadyExistsError(
                f"namespace {text} is already in catalog '{self._name}'"
            )

    def drop_namespace(self, namespace: Namespace) -> None:
        """Raises `NoSuchNamespaceError`, `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        text = _text(namespace)
        columns = NAMESPACE_PROPERTIES.c

        def drop(connection: sa.Connection) -> None:
            if not self._exists(connection, namespace):
                raise self._no_such_namespace(namespace)
            held = sa.select(TABLES.c.table_name).where(
                TABLES.c.catalog_name == self._name, TABLES.c.table_namespace == text
            )
            has_children = any(
                len(n) > len(namespace) for n in self._namespaces(connection, namespace)
            )
            if has_children or connection.execute(held.limit(1)).first() is not None:
                raise NamespaceNotEmptyError(
                    f"namespace {text} still holds tables, views or namespaces; drop them first"
                )
            connection.execute(
                sa.delete(NAMESPACE_PROPERTIES).where(
                    columns.catalog_name == self._name, columns.namespace == text
                )
            )

        self._database.write(drop)

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it has a row of its own, or anything lies in it or below."""
        return self._database.read(lambda c: self._exists(c, namespace))

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Raises `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        return self._namespace_properties(namespace)

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties."""
        check_namespace(namespace)
        text = _text(namespace)
        rows = _property_rows(self._name, text, updates)
        gone = {*removals, *updates}
        if _EXISTS in gone:
            raise _reserved_property()
        columns = NAMESPACE_PROPERTIES.c

        def update(connection: sa.Connection) -> None:
            if not self._exists(connection, namespace):
                raise self._no_such_namespace(namespace)
            if gone:
                connection.execute(
                    sa.delete(NAMESPACE_PROPERTIES).where(
                        columns.catalog_name == self._name,
                        columns.namespace == text,
                        columns.property_key.in_(sorted(gone)),
                    )
                )
            if rows:
                connection.execute(sa.insert(NAMESPACE_PROPERTIES), rows)

        self._database.write(update)

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Tables directly in a namespace; raises `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        query = sa.select(TABLES.c.table_name).where(
            TABLES.c.catalog_name == self._name,
            TABLES.c.table_namespace == _text(namespace),
            *self._only_tables(),
        )
        names = self._database.read(lambda c: c.execute(query).scalars().all())
        return [TableIdentifier(namespace=namespace, name=name) for name in sorted(names)]

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the table is there."""
        return self._row(identifier) is not None

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Raises `NoSuchTableError`."""
        row = self._row(identifier)
        if row is None:
            raise self._no_such_table(identifier)
        if row.metadata_location is None:
            raise CatalogError(
                f"table {identifier} has no metadata location in catalog '{self._name}'; "
                "its row is damaged"
            )
        return self._loaded(identifier, row.metadata_location)

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Where a new table of that name goes when no location is given."""
        return default_location(
            self._name,
            self._properties,
            self._namespace_properties(identifier.namespace),
            identifier,
        )

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table; raises `TableAlreadyExistsError`."""
        return self._create(identifier, metadata).result()

    def _create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Outcome[LoadedTable]:
        try:
            self._require_free(identifier)
            io = self._storage(metadata.location)
        except IcebergError as e:
            return Refused(e)
        return create_by_swap(
            io,
            identifier,
            metadata,
            lambda location: self._publish(identifier, location),
            self._config,
        )

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome[LoadedTable]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer."""
        try:
            if AssertCreate() in requirements and not self.table_exists(identifier):
                return self._create(identifier, created_from_updates(requirements, updates))
            current = self.load_table(identifier)
            io = self._storage(current.metadata.location)
        except IcebergError as e:
            return Refused(e)
        return commit_by_swap(
            io,
            own_folders(self, current),
            current,
            requirements,
            updates,
            lambda expected, new: self._swap(identifier, expected, new),
        )

    def drop_table(self, identifier: TableIdentifier) -> None:
        """Forget the table; its files stay. Raises `NoSuchTableError`."""
        statement = sa.delete(TABLES).where(*self._is_row_of(identifier))
        if self._database.write(lambda c: c.execute(statement).rowcount) == 0:
            raise self._no_such_table(identifier)

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raises `NoSuchTableError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`."""
        check_identifier(target)
        if not self.table_exists(source):
            raise self._no_such_table(source)
        self._require_free(target)
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(source))
            .values(table_namespace=_text(target.namespace), table_name=target.name)
        )
        try:
            renamed = self._database.write(lambda c: c.execute(statement).rowcount)
        except IntegrityError as e:
            raise self._taken(target) from e.orig
        if renamed == 0:
            raise self._no_such_table(source)

    def register_table(self, identifier: TableIdentifier, metadata_location: str) -> LoadedTable:
        """Adopt an existing metadata file; raises `TableAlreadyExistsError`."""
        self._require_free(identifier)
        loaded = self._loaded(identifier, metadata_location)
        self._publish(identifier, metadata_location).result()
        return loaded

    def _initialise(self) -> bool:
        """Make sure the two tables are there; whether the database is V1."""
        if self._database.read(missing_tables):
            if not all(bool_property(self._properties, key, True) for key in _INIT_KEYS):
                raise CatalogError(
                    f"database {self._database.shown_url} has no catalog tables, and the "
                    "properties "
                    "forbid to create them"
                )
            self._create_tables()
        has_type = self._database.read(has_type_column)
        if not has_type and self._asks_for_v1():
            self._add_type_column()
            has_type = True
        return has_type

    def _create_tables(self) -> None:
        def create(connection: sa.Connection) -> None:
            for table in missing_tables(connection):
                table.create(connection)

        try:
            self._database.write(create)
        except (CatalogError, IntegrityError):
            # another client may have created them in the meantime
            if self._database.read(missing_tables):
                raise

    def _add_type_column(self) -> None:
        try:
            self._database.write(lambda c: c.execute(ADD_TYPE_COLUMN))
        except CatalogError:
            # "duplicate column": another client was first
            if not self._database.read(has_type_column):
                raise

    def _asks_for_v1(self) -> bool:
        given = (self._properties[k] for k in _SCHEMA_VERSION_KEYS if k in self._properties)
        asked = next(given, "V0")
        if asked.upper() not in ("V0", "V1"):
            raise InvalidRequestError(
                f"catalog '{self._name}': schema version '{asked}' is not known; it is V0 or V1"
            )
        return asked.upper() == "V1"

    def _namespaces(self, connection: sa.Connection, parent: Namespace) -> list[Namespace]:
        """Every namespace with a row of its own or of a table, `parent` and what lies below it."""
        prefix = _text(parent)
        found: set[str] = set()
        for name, catalog in (
            (TABLES.c.table_namespace, TABLES.c.catalog_name),
            (NAMESPACE_PROPERTIES.c.namespace, NAMESPACE_PROPERTIES.c.catalog_name),
        ):
            query = sa.select(name).distinct().where(catalog == self._name)
            if parent:
                below = name.startswith(f"{prefix}.", autoescape=True, escape="!")
                query = query.where(sa.or_(name == prefix, below))
            found.update(connection.execute(query).scalars())
        # LIKE ignores case in some databases, so the prefix is compared once more
        namespaces = (tuple(text.split(".")) for text in found if text)
        return [n for n in namespaces if n[: len(parent)] == parent]

    def _exists(self, connection: sa.Connection, namespace: Namespace) -> bool:
        return not namespace or bool(self._namespaces(connection, namespace))

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        columns = NAMESPACE_PROPERTIES.c
        query = sa.select(columns.property_key, columns.property_value).where(
            columns.catalog_name == self._name, columns.namespace == _text(namespace)
        )
        rows = self._database.read(lambda c: c.execute(query).all())
        return {
            key: value for key, value in rows if key not in (None, _EXISTS) and value is not None
        }

    def _row(self, identifier: TableIdentifier) -> _Row | None:
        query = sa.select(TABLES.c.metadata_location).where(*self._is_row_of(identifier))
        found = self._database.read(lambda c: c.execute(query).first())
        return None if found is None else _Row(found.metadata_location)

    def _is_row_of(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            TABLES.c.catalog_name == self._name,
            TABLES.c.table_namespace == _text(identifier.namespace),
            TABLES.c.table_name == identifier.name,
            *self._only_tables(),
        )

    def _only_tables(self) -> tuple[sa.ColumnElement[bool], ...]:
        return (is_table_row(),) if self._has_type else ()

    def _publish(self, identifier: TableIdentifier, location: str) -> Outcome[None]:
        row: dict[str, str | None] = {
            "catalog_name": self._name,
            "table_namespace": _text(identifier.namespace),
            "table_name": identifier.name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        if self._has_type:
            row["iceberg_type"] = TABLE_TYPE
        try:
            self._database.write(lambda c: c.execute(sa.insert(TABLES), row))
        except IntegrityError as e:
            return Refused(caused_by(self._taken(identifier), e.orig or e))
        except CommitStateUnknownError as e:
            return self._find_out(identifier, location, e, refusal=self._taken(identifier))
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
        conflict = CommitConflictError(
            f"table {identifier} was changed by another commit; refresh and retry"
        )
        try:
            swapped = self._database.write(lambda c: c.execute(statement).rowcount)
        except CommitStateUnknownError as e:
            return self._find_out(identifier, new, e, expected=expected, refusal=conflict)
        except CatalogError as e:
            return Refused(e)
        return Done(None) if swapped else Refused(conflict)

    def _find_out(
        self,
        identifier: TableIdentifier,
        new: str,
        cause: CommitStateUnknownError,
        *,
        expected: str | None = None,
        refusal: IcebergError,
    ) -> Outcome[None]:
        """What became of a COMMIT without an answer.

        Once the row has moved on from what the statement asked for, it can never be applied any
        more: that is `refusal`.
        """
        not_known = unknown(f"table {identifier}", cause)
        try:
            row = self._row(identifier)
            location = None if row is None else row.metadata_location
            if location == new:
                return Done(None)
            if location == expected or location is None:
                return not_known
            log = self._loaded(identifier, location).metadata.metadata_log
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

    def _loaded(self, identifier: TableIdentifier, location: str) -> LoadedTable:
        return LoadedTable(
            identifier=identifier,
            metadata=read_table_metadata(self._storage(location), location),
            metadata_location=location,
            config=self._config,
        )

    def _storage(self, location: str) -> FileIO:
        return self._io if self._io is not None else open_storage(location, self._config)

    def _require_namespace(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise self._no_such_namespace(namespace)

    def _require_free(self, identifier: TableIdentifier) -> None:
        check_identifier(identifier)
        self._require_namespace(identifier.namespace)
        if self.table_exists(identifier):
            raise self._taken(identifier)

    def _taken(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(
            f"table or view {identifier} is already in catalog '{self._name}'"
        )

    def _no_such_table(self, identifier: TableIdentifier) -> NoSuchTableError:
        return NoSuchTableError(f"table {identifier} is not in catalog '{self._name}'")

    def _no_such_namespace(self, namespace: Namespace) -> NoSuchNamespaceError:
        return NoSuchNamespaceError(
            f"namespace {'.'.join(namespace)} is not in catalog '{self._name}'; create it first"
        )


def _text(namespace: Namespace) -> str:
    for level in namespace:
        if not level or "." in level:
            raise InvalidRequestError(
                f"namespace level {level!r}: a SQL catalog joins levels by dots and cannot hold a "
                "dot in one"
            )
    return ".".join(namespace)


def _property_rows(
    catalog: str, namespace: str, properties: Mapping[str, str]
) -> list[dict[str, str]]:
    return [_property_row(catalog, namespace, k, v) for k, v in _checked(properties).items()]


def _property_row(catalog: str, namespace: str, key: str, value: str) -> dict[str, str]:
    return {
        "catalog_name": catalog,
        "namespace": namespace,
        "property_key": key,
        "property_value": value,
    }


def _checked(properties: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in properties.items():
        if key == _EXISTS:
            raise _reserved_property()
        # other clients of the table refuse null values
        if not isinstance(value, str):
            raise InvalidRequestError(f"namespace property '{key}' must be text")
        if not key or len(key) > 255 or len(value) > MAX_VALUE_LENGTH:
            raise InvalidRequestError(
                f"namespace property '{key[:40]}': a SQL catalog holds names of 1 to 255 "
                "characters and values of at "
                f"most {MAX_VALUE_LENGTH}"
            )
    return properties


def _reserved_property() -> InvalidRequestError:
    return InvalidRequestError(
        f"namespace property '{_EXISTS}' is the catalog's own marker; it cannot be set or removed"
    )
