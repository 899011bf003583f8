"""The interface of catalogs: names, metadata, and one atomic commit.

A catalog returns values, never a `Table`. Commits are those of the REST catalog, requirements and
updates, so all catalogs have the same interface.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from iceberg_pyspark.commits.outcomes import Outcome
from iceberg_pyspark.commits.requirements import TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import TableRecreatedError
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata

if TYPE_CHECKING:
    # whoever only loads tables needs nothing of how scans are planned
    from iceberg_pyspark.planning.scan_plan import PlannedFiles

Namespace: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIdentifier:
    """A table's namespace levels and name."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


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

    `predicate` is bound to `schema`, the one that the scan resolves names in; `metrics` are the ids
    of columns whose metrics the files are to have, where the server gives them. `take_credentials`
    is told the storage property with the credentials for them, if there are any, before the first.
    """

    metadata: TableMetadata
    snapshot_id: int
    schema: Schema
    projection: Schema
    predicate: Predicate
    metrics: frozenset[int]
    take_credentials: Callable[[str], None] = field(repr=False)


ScanPlanner: TypeAlias = "Callable[[ScanToPlan], Generator[PlannedFiles, None, None]]"
"""Gives the files of a scan as they come; closing the iterator says that no more are wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """A table as the catalog knows it at one moment.

    `config` holds storage properties for it and where it may read: from the user and the catalog's
    configuration, and nothing of it from the table. `report_scan`, of a catalog that wants reports,
    returns at once and raises nothing. `plan_scan` plans the scans of a table that only its server
    may plan; of other tables it is None. `store_location` is where the
    files are of a catalog whose metadata is no file of their store, but an address of its server.
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
    """Where a table goes that is not created yet, and the storage properties to write there."""

    location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class PlacingCatalog(Protocol):
    """A catalog whose server says where a new table goes, and may vend credentials for it."""

    def place_table(self, identifier: TableIdentifier, location: str | None) -> NewTablePlace:
        """The place of a new table, `location` where one is asked for."""
        ...


@runtime_checkable
class CheckingCatalog(Protocol):
    """A catalog that cannot have every table: it is asked before files are written for one."""

    def check_new_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> None:
        """Raise the `IcebergError` that `create_table` would raise for this metadata alone."""
        ...


def check_same_table(loaded: LoadedTable, current: LoadedTable) -> LoadedTable:
    """The table that has the name of a loaded one now; raises `TableRecreatedError`: another one.

    A table of version 1 may have had no UUID yet, and is taken for the same.
    """
    before, now = loaded.metadata.table_uuid, current.metadata.table_uuid
    if before is not None and before.lower() != (now or "").lower():
        raise TableRecreatedError(
            f"table {loaded.identifier} was dropped or renamed, and another table has its name "
            f"since: its UUID is {now}, that of the table loaded before {before}; load the table "
            "again by its name to work with the new one"
        )
    return current


class Catalog(Protocol):
    """The operations every catalog answers; errors are those of `errors.py`."""

    @property
    def name(self) -> str:
        """The name the catalog was configured under."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Its configuration, storage properties included."""
        ...

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Direct children of a namespace."""
        ...

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Raises `NamespaceAlreadyExistsError`."""
        ...

    def drop_namespace(self, namespace: Namespace) -> None:
        """Raises `NoSuchNamespaceError`, `NamespaceNotEmptyError`."""
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether the namespace is there."""
        ...

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Raises `NoSuchNamespaceError`."""
        ...

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Tables directly in a namespace; raises `NoSuchNamespaceError`."""
        ...

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the table is there."""
        ...

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Raises `NoSuchTableError`."""
        ...

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Where a new table of that name goes when no location is given."""
        ...

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table.

        Raises `TableAlreadyExistsError`, or `CommitStateUnknownError` where the table may be there.
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

        `base` is the table as the caller has loaded it last. A catalog whose swap compares with it
        need not load the table again: where the table has moved on since, that is a conflict.

        `Refused` says that the table is and will be as it was; with a `CommitConflictError` in it
        the same commit may be tried again on newer metadata. An exception says nothing about the
        table, and the caller treats it as `Unknown`.
        """
        ...

    def drop_table(self, identifier: TableIdentifier) -> None:
        """Forget the table; its files stay. Raises `NoSuchTableError`."""
        ...

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raises `NoSuchTableError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`."""
        ...

    def register_table(self, identifier: TableIdentifier, metadata_location: str) -> LoadedTable:
        """Adopt an existing metadata file; raises `TableAlreadyExistsError`."""
        ...


@runtime_checkable
class PurgingCatalog(Protocol):
    """A catalog whose server may delete a dropped table's files itself."""

    @property
    def purges_tables(self) -> bool:
        """Whether the server is to do so for this catalog."""
        ...

    def purge_table(self, identifier: TableIdentifier) -> None:
        """Forget the table and have the server delete its files; raises `NoSuchTableError`."""
        ...
