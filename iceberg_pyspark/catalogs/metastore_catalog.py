"""The common part of the catalogs that store a pointer to each table's metadata file.

Specification, "Metastore Tables". A subclass stores pointers and namespaces, and swaps a pointer.

A cache of the table metadata that this process already holds, by metadata location.

Metadata files never change (specification, "Overview"), so a file need not be read again while some
table holds its metadata. This applies only to file names with a UUID, which are unique: a
`v1.metadata.json` may later belong to another table. The references are weak: an entry ends with
the last table that holds the metadata.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    Namespace,
    TableIdentifier,
    check_identifier,
    no_such_namespace,
)
from iceberg_pyspark.catalogs.committing_catalog import (
    CommittingCatalog,
    Swap,
    commit_by_swap,
    create_by_swap,
)
from iceberg_pyspark.catalogs.outcome_search import Pointers
from iceberg_pyspark.catalogs.table_folders import default_location, own_folders
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, caused_by, unknown
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO

_UNIQUE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[^/]*$")


class KnownMetadata:
    """The known metadata of one catalog's tables; shared by threads, and empty after pickling."""

    def __init__(self) -> None:
        self._by_location: WeakValueDictionary[str, TableMetadata] = WeakValueDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return KnownMetadata, ()

    def get_or_read(self, location: str, read: Callable[[], TableMetadata]) -> TableMetadata:
        """Return the metadata of a file, by calling `read` if the metadata is not known."""
        metadata = self._by_location.get(location)
        if metadata is None:
            metadata = read()
            self.add(location, metadata)
        return metadata

    def add(self, location: str, metadata: TableMetadata) -> None:
        """Remember the metadata of a table's file, if the file name is unique."""
        if _UNIQUE.search(location):
            self._by_location[location] = metadata


_log = get_logger(__name__)


class MetastoreCatalog(CommittingCatalog):
    """A catalog that stores the location of each table's current metadata file."""

    _namespace_suffix: ClassVar[str] = ""
    """The end of the names of namespaces' folders."""

    def __init__(self, name: str, properties: Mapping[str, str], io: FileIO | None) -> None:
        super().__init__(name, properties, io)
        self._known_metadata = KnownMetadata()

    @abstractmethod
    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace exists."""

    @abstractmethod
    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return a namespace's properties; empty if there is no such namespace."""

    @abstractmethod
    def _pointer(self, identifier: TableIdentifier) -> str | None:
        """Return the location of a table's metadata file, or None if there is no such table."""

    @abstractmethod
    def _publish_table(self, table: LoadedTable) -> Outcome[None]:
        """Store a table's first pointer; `Refused` if the table already has a pointer."""

    @abstractmethod
    def _swap_table(self, base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        """Replace a pointer; `Refused` with `self._conflict` if the pointer is not `base`'s."""

    @abstractmethod
    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        """Delete a pointer; return whether the pointer existed.

        Raise `CatalogUnavailableError` if nothing happened, and `CommitStateUnknownError` if the
        answer was lost; the caller then looks at the pointer.
        """

    @abstractmethod
    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Rename a pointer; return whether the pointer existed.

        Raise `self._already_exists` if the target has a pointer, and the errors of
        `_delete_pointer`.
        """

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace; raise `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        return self._namespace_properties(namespace)

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table's current metadata; raise `NoSuchTableError` if there is no such table."""
        location = self._pointer(identifier)
        if location is None:
            raise self._no_such_table(identifier)
        metadata = self._known_metadata.get_or_read(location, lambda: self._read(location))
        return self._loaded_table(identifier, location, metadata)

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Return the location of a new table of this name if the user specifies no location."""
        return default_location(
            self._name,
            self._properties,
            self._namespace_properties(identifier.namespace),
            identifier,
            namespace_suffix=self._namespace_suffix,
        )

    def _prepare_create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Swap:
        self._require_free(identifier)
        io = self._storage(metadata.location)
        return lambda: self._knowing(
            create_by_swap(io, identifier, metadata, self._publish_table, self._config)
        )

    def _prepare_commit(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: LoadedTable | None,
    ) -> Swap:
        # the swap refuses a pointer that differs from the location of `base`
        current = self.load_table(identifier) if base is None else base
        io = self._storage(current.metadata.location)
        own = own_folders(self, current)
        return lambda: self._knowing(
            commit_by_swap(io, own, current, requirements, updates, self._swap_table)
        )

    def _knowing(self, outcome: Outcome[LoadedTable]) -> Outcome[LoadedTable]:
        if isinstance(outcome, Done):
            self._known_metadata.add(outcome.value.metadata_location, outcome.value.metadata)
        return outcome

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Remove the table from the catalog and keep its files; raise `NoSuchTableError`.

        Return False if the answer was lost, and the table no longer has the name.
        """
        location = self._table_pointers.before_change(identifier)
        if location is None:
            raise self._no_such_table(identifier)
        existed = self._table_pointers.drop(identifier, location, self._delete_pointer)
        if existed is False:
            raise self._no_such_table(identifier)
        return existed is not None

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Rename a table.

        Raise `NoSuchTableError`, `TableAlreadyExistsError` or `NoSuchNamespaceError`.
        """
        check_identifier(target)
        location = self._table_pointers.before_change(source)
        if location is None:
            raise self._no_such_table(source)
        self._require_free(target)
        if not self._table_pointers.rename(source, target, location, self._rename_pointer):
            raise self._no_such_table(source)

    @property
    def _table_pointers(self) -> Pointers:
        return Pointers("table", self._pointer, lambda location: self._read(location).table_uuid)

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Register an existing metadata file as a table; raise `TableAlreadyExistsError`."""
        self._require_free(identifier)
        metadata = self._read(metadata_location)
        table = self._loaded_table(identifier, metadata_location, metadata)
        if not dry_run:
            self._publish_table(table).result()
        return table

    def _outcome_of(
        self,
        identifier: TableIdentifier,
        new: str,
        cause: BaseException,
        *,
        base_location: str | None = None,
        refusal: IcebergError,
    ) -> Outcome[None]:
        """Find out the outcome of a swap that was sent but not answered.

        `refusal` is the error for a pointer that another commit has moved from `base_location`, so
        that the swap can no longer be applied.
        """
        unknown_outcome = unknown(f"table {identifier}", cause)
        try:
            location = self._pointer(identifier)
            if location == new:
                return Done(None)
            if location == base_location or location is None:
                return unknown_outcome
            log = self._read(location).metadata_log
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            _log.info("could not look at table %s: %s", identifier, e)
            return unknown_outcome
        logged_files = {entry.metadata_file for entry in log}
        if new in logged_files:
            return Done(None)
        # if the log lacks the old location, entries may have been removed after our commit
        if base_location in logged_files or (base_location is None and not logged_files):
            return Refused(caused_by(refusal, cause))
        return unknown_outcome

    def _read(self, location: str) -> TableMetadata:
        return read_table_metadata(self._storage(location), location)

    def _require_namespace(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise no_such_namespace(namespace, self._name)

    def _require_free(self, identifier: TableIdentifier) -> None:
        check_identifier(identifier)
        self._require_namespace(identifier.namespace)
        if self.table_exists(identifier):
            raise self._already_exists(identifier)

    def _already_exists(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(f"table {identifier} is already in catalog '{self._name}'")

    def _conflict(self, identifier: TableIdentifier) -> CommitConflictError:
        return CommitConflictError(
            f"table {identifier} was changed by another commit; refresh and retry"
        )

    def _not_iceberg(self, identifier: TableIdentifier) -> NoSuchTableError:
        return NoSuchTableError(
            f"{identifier} is in catalog '{self._name}' but is not an Iceberg table"
        )

    def _no_such_table(self, identifier: TableIdentifier) -> NoSuchTableError:
        return NoSuchTableError(f"table {identifier} is not in catalog '{self._name}'")
