"""The interface of catalogs: names, metadata, and one atomic commit.

A catalog returns values, never a `Table`. A commit consists of requirements and updates, as in the
REST catalog specification, so all catalogs have the same interface. Views, which some catalogs
have, share the namespaces of tables: a view and a table cannot have the same name.

Names are checked here; the catalog of a store checks the additional restrictions of that store
(`check_folder_name` for catalogs that use folders).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from iceberg_pyspark.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    TableRecreatedError,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.sql_text.names import MAX_LEVEL_LENGTH, check_level

if TYPE_CHECKING:
    from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
    from iceberg_pyspark.changes.outcomes import Outcome
    from iceberg_pyspark.changes.view_changes import AssertViewUUID, ViewUpdate
    from iceberg_pyspark.expressions.predicates import Predicate
    from iceberg_pyspark.planning.scan_plan import PlannedFiles
    from iceberg_pyspark.spec.views import ViewMetadata

Namespace: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIdentifier:
    """The namespace levels and the name of a table."""

    namespace: Namespace
    name: str

    @property
    def levels(self) -> tuple[str, ...]:
        """The namespace levels, and the name after them."""
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        return ".".join(self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """The metrics of one planned scan, for a report to the catalog."""

    snapshot_id: int | None
    predicate: Predicate
    projection: Schema
    data_files: int
    data_files_kept: int
    delete_files: int
    bytes_kept: int
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanToPlan:
    """A scan of one snapshot that a catalog's server plans.

    `predicate` is bound to `schema`, the schema that resolves the column names of the scan.
    `metrics` holds the ids of the columns whose metrics the files should have, if the server
    returns metrics. `take_credentials` is called before the first file with the storage property
    that holds the credentials for the files, if the server sends credentials.
    """

    metadata: TableMetadata
    snapshot_id: int
    schema: Schema
    projection: Schema
    predicate: Predicate
    metrics: frozenset[int]
    take_credentials: Callable[[str], None] = field(repr=False)


ScanPlanner: TypeAlias = "Callable[[ScanToPlan], Generator[PlannedFiles, None, None]]"
"""A function that yields the files of a scan; closing the generator ends the planning early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """A table as the catalog knows it at one moment.

    `config` holds the table's storage properties and the locations that the table may read. They
    come from the user and the catalog's configuration, never from the table's metadata.
    `report_scan` is set if the catalog wants scan reports; it returns at once and raises nothing.
    `plan_scan` is set if only the catalog's server may plan scans of this table. `store_location`
    is the location of the table's files if `metadata_location` is an address of the catalog's
    server instead of a file in the store.
    """

    identifier: TableIdentifier
    metadata: TableMetadata
    metadata_location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    store_location: str | None = None
    report_scan: Callable[[ScanReport], None] | None = field(
        default=None, repr=False, compare=False
    )
    plan_scan: ScanPlanner | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTablePlace:
    """The location of a table that is not created yet, and its storage properties."""

    location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class PlacingCatalog(Protocol):
    """A catalog whose server places new tables and may vend credentials for them."""

    def place_table(self, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
        """Return the place of a new table; `location` is the requested location, or None."""
        ...


@runtime_checkable
class LocatingCatalog(Protocol):
    """A catalog that knows which of its tables and views have their metadata in a folder."""

    def other_pointers(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the current metadata files in a folder of the other tables and views.

        Where it would take many requests, only those of the same namespace are looked at.
        """
        ...


@runtime_checkable
class CheckingCatalog(Protocol):
    """A catalog that refuses some tables, and can be asked before files are written."""

    def check_new_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> None:
        """Raise the `IcebergError` that `create_table` would raise because of this metadata."""
        ...


def check_same_table(loaded_table: LoadedTable, current: LoadedTable) -> LoadedTable:
    """Return `current` if it is the same table as `loaded_table`; else raise `TableRecreatedError`.

    A table of format version 1 may have been loaded without a UUID and is taken to be the same
    table.
    """
    before, now = loaded_table.metadata.table_uuid, current.metadata.table_uuid
    if before is not None and before.lower() != (now or "").lower():
        raise TableRecreatedError(
            f"table {loaded_table.identifier} was dropped or renamed, and another table has its "
            f"name now: the UUID is {now}, and was {before} when the table was loaded; load the "
            "table again by its name to work with the new one"
        )
    return current


def newest_version(catalog: Catalog, loaded_table: LoadedTable) -> LoadedTable:
    """Load the table again; raise `TableRecreatedError` if another table has its name now."""
    return check_same_table(loaded_table, catalog.load_table(loaded_table.identifier))


class Catalog(Protocol):
    """The operations that every catalog supports; they raise the errors of `errors.py`."""

    @property
    def name(self) -> str:
        """The name the catalog was configured under."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """The catalog's configuration, storage properties included."""
        ...

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the direct children of a namespace."""
        ...

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace; raise `NamespaceAlreadyExistsError` if the namespace exists."""
        ...

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop a namespace; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace exists."""
        ...

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace; raise `NoSuchNamespaceError` if there is none."""
        ...

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the tables directly in a namespace; raise `NoSuchNamespaceError`."""
        ...

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists."""
        ...

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table's current metadata; raise `NoSuchTableError` if there is no such table."""
        ...

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new table of this name if the user specifies no location."""
        ...

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table.

        Raise `TableAlreadyExistsError`, or `CommitStateUnknownError` if the table may exist now.
        """
        ...

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer.

        `base` is the table as the caller last loaded it. A catalog whose swap compares the pointer
        with `base` need not load the table again: if the table has changed since, the commit is a
        conflict.

        `Refused` means that this commit has not changed the table and never will; if its error is a
        `CommitConflictError`, the same commit may be retried on newer metadata. An exception says
        nothing about the table, and the caller treats the exception as `Unknown`.
        """
        ...

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Remove the table from the catalog and keep its files.

        Raise `NoSuchTableError`, or `CommitStateUnknownError` if the table may have been dropped or
        may still be dropped. Return False if the answer was lost and the table no longer has the
        name: another client may have renamed the table meanwhile, so its files must be kept.
        """
        ...

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a table.

        Raise `NoSuchTableError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`, or
        `CommitStateUnknownError` if the table may have been renamed or may still be renamed.
        """
        ...

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file as a table; raise `TableAlreadyExistsError`.

        `dry_run` only reads the file and checks the name; the returned table is in no catalog.
        """
        ...


@runtime_checkable
class ReportingCatalog(Protocol):
    """A catalog whose server may want reports of scans."""

    def report_scan(self, identifier: TableIdentifier, scan: ScanReport) -> None:
        """Send a report, if the server wants reports; raise an `IcebergError` if that fails."""
        ...


@runtime_checkable
class PurgingCatalog(Protocol):
    """A catalog whose server may delete the files of a dropped table."""

    @property
    def purges_tables(self) -> bool:
        """Whether the server of this catalog deletes the files of dropped tables."""
        ...

    def purge_table(self, identifier: TableIdentifier) -> None:
        """Drop the table and let the server delete its files; raise `NoSuchTableError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedView:
    """A view as the catalog knows it at one moment; `config` as in `LoadedTable`."""

    identifier: TableIdentifier
    metadata: ViewMetadata
    metadata_location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class ViewCatalog(Protocol):
    """The operations of a catalog that has views."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the catalog, as `Catalog.properties`."""
        ...

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the views directly in a namespace; raise `NoSuchNamespaceError`."""
        ...

    def view_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the view exists."""
        ...

    def load_view(self, identifier: TableIdentifier) -> LoadedView:
        """Load the view's current metadata; raise `NoSuchViewError` if there is no such view."""
        ...

    def default_view_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new view of this name if the user specifies no location.

        A catalog that asks a server raises `ViewAlreadyExistsError` if a view or table has the
        name.
        """
        ...

    def create_view(self, identifier: TableIdentifier, metadata: ViewMetadata) -> LoadedView:
        """Publish the first metadata of a new view.

        Raise `ViewAlreadyExistsError` if a view or table has the name, or `CommitStateUnknownError`
        if the view may exist now.
        """
        ...

    def register_view(self, identifier: TableIdentifier, metadata_location: str) -> LoadedView:
        """Register an existing metadata file as a view; errors as for `create_view`."""
        ...

    def commit_view(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[AssertViewUUID],
        updates: Sequence[ViewUpdate],
    ) -> Outcome[LoadedView]:
        """Check the requirements on the current metadata, apply the updates, swap the pointer."""
        ...

    def drop_view(self, identifier: TableIdentifier) -> None:
        """Remove the view from the catalog and keep its files; raise `NoSuchViewError`."""
        ...

    def rename_view(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a view.

        Raise `NoSuchViewError`, `ViewAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        ...


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
