"""Names of tables and namespaces, and checks of names.

The catalog of a store checks the additional restrictions of that store (`check_folder_name` for
catalogs that use folders).
"""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
)
from iceberg_pyspark.sql_text.names import MAX_LEVEL_LENGTH, check_level


def split_catalog(
    levels: tuple[str, ...], catalogs: tuple[str, ...]
) -> tuple[str | None, Namespace]:
    """Split a name into the known catalog that it starts with, or None, and the other levels.

    A name of one level never starts with a catalog, because the level must name a table.

    >>> split_catalog(("lake", "db", "events"), ("lake",))
    ('lake', ('db', 'events'))
    """
    if len(levels) > 1 and levels[0] in catalogs:
        return levels[0], levels[1:]
    return None, levels


def check_folder_name(level: str) -> None:
    """Raise `InvalidRequestError` if a level cannot be the name of a folder."""
    check_level(level)
    if "/" in level or "\\" in level:
        raise InvalidRequestError(f"name {level!r}: slashes are not allowed in names of folders")
    if level.startswith("."):
        raise InvalidRequestError(
            f"name {level!r}: a leading dot is not allowed where levels are folders; it hides them"
        )
    if len(level.encode("utf-8")) > MAX_LEVEL_LENGTH:
        raise InvalidRequestError(
            f"name {level[:40]!r}...: it needs more than {MAX_LEVEL_LENGTH} bytes as a folder"
        )


def check_namespace(namespace: Namespace) -> None:
    """Raise `InvalidRequestError` for an empty namespace or an invalid level."""
    if not namespace:
        raise InvalidRequestError("a namespace needs at least one level")
    for level in namespace:
        check_level(level)


def check_identifier(identifier: TableIdentifier) -> None:
    """Raise `InvalidRequestError` if a level of a table's identifier is invalid."""
    for level in identifier.levels:
        check_level(level)


def namespace_already_exists(namespace: Namespace, catalog: str) -> NamespaceAlreadyExistsError:
    """Return the error for a new namespace that the catalog has already."""
    return NamespaceAlreadyExistsError(
        f"namespace {'.'.join(namespace)} is already in catalog '{catalog}'"
    )


def no_such_namespace(namespace: Namespace, catalog: str) -> NoSuchNamespaceError:
    """Return the error for a namespace that the catalog does not have."""
    return NoSuchNamespaceError(
        f"namespace {'.'.join(namespace)} is not in catalog '{catalog}'; create it first"
    )
