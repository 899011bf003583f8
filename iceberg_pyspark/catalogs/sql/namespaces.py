"""The namespaces of a SQL catalog: rows of properties.

The name of a namespace in the database is its levels joined by dots. A namespace exists if it has a
marker row, or contains a table or view.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from iceberg_pyspark.catalogs.catalog import (
    Namespace,
    check_namespace,
    namespace_already_exists,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.outcome_search import look_after_change
from iceberg_pyspark.catalogs.sql.catalog_tables import (
    MAX_VALUE_LENGTH,
    NAMESPACE_PROPERTIES,
    TABLES,
)
from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.errors import (
    CatalogUnavailableError,
    CommitStateUnknownError,
    InvalidRequestError,
    NamespaceNotEmptyError,
)

_EXISTS = "exists"
_ATTEMPTS = 10


class SqlNamespaces:
    """The namespaces of one catalog name in a database."""

    def __init__(self, catalog: str, database: Database) -> None:
        self._catalog = catalog
        self._database = database

    def children(self, parent: Namespace) -> list[Namespace]:
        """Return the direct children of a namespace, sorted."""
        depth = len(parent)
        namespaces = self._database.read(lambda c: self._at_or_below(c, parent))
        return sorted({n[: depth + 1] for n in namespaces if len(n) > depth})

    def exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace has a row, or contains anything at any depth."""
        return can_exist(namespace) and self._database.read(lambda c: self._exists(c, namespace))

    def create(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; raise `NamespaceAlreadyExistsError` if the namespace exists."""
        check_namespace(namespace)
        text = joined_levels(namespace)
        rows = _property_rows(self._catalog, text, properties or {})
        marker = _property_row(self._catalog, text, _EXISTS, "true")

        def insert(connection: sa.Connection) -> bool:
            if self._exists(connection, namespace):
                return False
            connection.execute(sa.insert(NAMESPACE_PROPERTIES), [marker, *rows])
            return True

        try:
            inserted = self._database.write(insert)
        except IntegrityError:
            inserted = False
        except CommitStateUnknownError as e:
            requested_properties = dict(properties or {})
            look_after_change(
                f"creation of namespace {text}",
                lambda: (
                    self.exists(namespace) and self.properties(namespace) == requested_properties
                ),
                e,
            )
            return
        if not inserted:
            raise namespace_already_exists(namespace, self._catalog)

    def drop(self, namespace: Namespace) -> None:
        """Drop an empty namespace; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        text = joined_levels(namespace)
        columns = NAMESPACE_PROPERTIES.c

        def delete(connection: sa.Connection) -> None:
            if not self._exists(connection, namespace):
                raise no_such_namespace(namespace, self._catalog)
            tables = sa.select(TABLES.c.table_name).where(
                TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == text
            )
            has_children = any(
                len(n) > len(namespace) for n in self._at_or_below(connection, namespace)
            )
            if has_children or connection.execute(tables.limit(1)).first() is not None:
                raise NamespaceNotEmptyError(
                    f"namespace {text} still has tables, views or namespaces; drop them first"
                )
            connection.execute(
                sa.delete(NAMESPACE_PROPERTIES).where(
                    columns.catalog_name == self._catalog, columns.namespace == text
                )
            )

        try:
            self._database.write(delete)
        except CommitStateUnknownError as e:
            look_after_change(f"drop of namespace {text}", lambda: not self.exists(namespace), e)

    def properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties; empty if there is no such namespace."""
        columns = NAMESPACE_PROPERTIES.c
        query = sa.select(columns.property_key, columns.property_value).where(
            columns.catalog_name == self._catalog, columns.namespace == joined_levels(namespace)
        )
        rows = self._database.read(lambda c: c.execute(query).all())
        return {
            key: value for key, value in rows if key not in (None, _EXISTS) and value is not None
        }

    def update_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; raise `NoSuchNamespaceError`."""
        check_namespace(namespace)
        text = joined_levels(namespace)
        rows = {r["property_key"]: r for r in _property_rows(self._catalog, text, updates)}
        keys = {*removals, *updates}
        if _EXISTS in keys:
            raise _reserved_property()

        def update(connection: sa.Connection) -> None:
            if not self._exists(connection, namespace):
                raise no_such_namespace(namespace, self._catalog)
            # all clients use the same order, so that no two clients wait for each other
            for key in sorted(keys):
                self._set_property(connection, text, key, rows.get(key))

        for _ in range(_ATTEMPTS):
            try:
                self._database.write(update)
                return
            except IntegrityError:
                # another client has inserted the property first, so now it can be updated
                continue
            except CommitStateUnknownError as e:
                change = f"change of the properties of namespace {text}"
                look_after_change(change, lambda: self._has(namespace, keys, updates), e)
                return
        raise CatalogUnavailableError(
            f"the properties of namespace {text} kept changing; nothing was done, try again"
        )

    def _has(
        self, namespace: Namespace, keys: Collection[str], properties: Mapping[str, str]
    ) -> bool:
        """Return whether the namespace has, of these keys, exactly these properties."""
        current_properties = self.properties(namespace)
        return {k: v for k, v in current_properties.items() if k in keys} == dict(properties)

    def _set_property(
        self, connection: sa.Connection, text: str, key: str, row: Mapping[str, str] | None
    ) -> None:
        """Update, insert or delete the row of a property.

        Other clients wait for the lock of the row. They find an updated row again, but would find
        no row if it were deleted and inserted again.
        """
        columns = NAMESPACE_PROPERTIES.c
        is_it = (
            columns.catalog_name == self._catalog,
            columns.namespace == text,
            columns.property_key == key,
        )
        if row is None:
            connection.execute(sa.delete(NAMESPACE_PROPERTIES).where(*is_it))
            return
        change = sa.update(NAMESPACE_PROPERTIES).where(*is_it)
        if not connection.execute(change.values(property_value=row["property_value"])).rowcount:
            connection.execute(sa.insert(NAMESPACE_PROPERTIES), row)

    def _at_or_below(self, connection: sa.Connection, parent: Namespace) -> list[Namespace]:
        """Return the namespaces with a row or a table: `parent` itself, and all below `parent`."""
        prefix = joined_levels(parent)
        names: set[str] = set()
        for column, catalog in (
            (TABLES.c.table_namespace, TABLES.c.catalog_name),
            (NAMESPACE_PROPERTIES.c.namespace, NAMESPACE_PROPERTIES.c.catalog_name),
        ):
            query = sa.select(column).distinct().where(catalog == self._catalog)
            if parent:
                below = column.startswith(f"{prefix}.", autoescape=True, escape="!")
                query = query.where(sa.or_(column == prefix, below))
            names.update(connection.execute(query).scalars())
        # LIKE ignores case in some databases, so compare the prefix again
        namespaces = (tuple(text.split(".")) for text in names if text)
        return [n for n in namespaces if n[: len(parent)] == parent]

    def _exists(self, connection: sa.Connection, namespace: Namespace) -> bool:
        return not namespace or bool(self._at_or_below(connection, namespace))


def joined_levels(namespace: Namespace) -> str:
    """Return the database name of a namespace.

    Raise `InvalidRequestError` for an empty level or a level with a dot.
    """
    for level in namespace:
        if not _is_possible(level):
            raise InvalidRequestError(
                f"namespace level {level!r}: a SQL catalog joins levels by dots and cannot hold a "
                "dot in one"
            )
    return ".".join(namespace)


def can_exist(namespace: Namespace) -> bool:
    """Return whether a SQL catalog can have a namespace, which `joined_levels` then accepts."""
    return all(map(_is_possible, namespace))


def _is_possible(level: str) -> bool:
    return bool(level) and "." not in level


def _property_rows(
    catalog: str, namespace: str, properties: Mapping[str, str]
) -> list[dict[str, str]]:
    _check_properties(properties)
    return [_property_row(catalog, namespace, k, v) for k, v in properties.items()]


def _property_row(catalog: str, namespace: str, key: str, value: str) -> dict[str, str]:
    return {
        "catalog_name": catalog,
        "namespace": namespace,
        "property_key": key,
        "property_value": value,
    }


def _check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if key == _EXISTS:
            raise _reserved_property()
        # other clients of the database refuse null values
        if not isinstance(value, str):
            raise InvalidRequestError(f"namespace property '{key}' must be text")
        if not key or len(key) > 255 or len(value) > MAX_VALUE_LENGTH:
            raise InvalidRequestError(
                f"namespace property '{key[:40]}': a SQL catalog holds names of 1 to 255 "
                f"characters and values of at most {MAX_VALUE_LENGTH}"
            )


def _reserved_property() -> InvalidRequestError:
    return InvalidRequestError(
        f"namespace property '{_EXISTS}' is the catalog's own marker; it cannot be set or removed"
    )
