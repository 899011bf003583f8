"""A catalog in the memory of this process, for tests and for tables of one session.

The pointers are a dict behind a lock; metadata and data are files of the warehouse, as everywhere.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import LoadedTable, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.identifiers import check_identifier, check_namespace
from iceberg_pyspark.catalogs.own_folders import own_folders
from iceberg_pyspark.catalogs.pointer_swap import (
    commit_by_swap,
    create_by_swap,
    created_from_updates,
)
from iceberg_pyspark.catalogs.properties import CatalogProperties, storage_properties
from iceberg_pyspark.catalogs.warehouse import default_location
from iceberg_pyspark.commits.outcomes import Done, Outcome, Refused
from iceberg_pyspark.commits.requirements import AssertCreate, TableRequirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.metadata_files import read_table_metadata
from iceberg_pyspark.storage.open_storage import open_storage


class MemoryCatalog:
    """Tables by name in this process; `io` None: storage is chosen by location."""

    def __init__(
        self, name: str, properties: Mapping[str, str] | None = None, *, io: FileIO | None = None
    ) -> None:
        self._name = name
        self._properties = CatalogProperties(properties or {})
        self._config = storage_properties(self._properties)
        self._io = io
        self._lock = threading.RLock()
        self._namespaces: dict[Namespace, dict[str, str]] = {}
        self._locations: dict[TableIdentifier, str] = {}

    def __repr__(self) -> str:
        return f"MemoryCatalog({self._name!r}, {self._properties!r})"

    def __reduce__(self) -> str:
        raise InvalidRequestError(
            f"catalog '{self._name}' lives in the memory of one process and cannot be sent to "
            "another; "
            "use a catalog of type sql or hadoop"
        )

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
        with self._lock:
            self._require_namespace(parent)
            depth = len(parent)
            children = {n[: depth + 1] for n in self._namespaces if n[:depth] == parent}
            return sorted(n for n in children if len(n) > depth)

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Raises `NamespaceAlreadyExistsError`."""
        check_namespace(namespace)
        with self._lock:
            if namespace in self._namespaces:
                raise NamespaceAlreadyExistsError(
                    f"namespace {'.'.join(namespace)} is already in catalog '{self._name}'"
                )
            self._namespaces[namespace] = dict(properties or {})

    def drop_namespace(self, namespace: Namespace) -> None:
        """Raises `NoSuchNamespaceError`, `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        with self._lock:
            self._require_namespace(namespace)
            if self.list_tables(namespace) or self.list_namespaces(namespace):
                raise NamespaceNotEmptyError(
                    f"namespace {'.'.join(namespace)} still holds tables or namespaces; drop them "
                    "first"
                )
            del self._namespaces[namespace]

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether the namespace is there; so is every parent of one that is."""
        with self._lock:
            return not namespace or any(n[: len(namespace)] == namespace for n in self._namespaces)

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Raises `NoSuchNamespaceError`."""
        with self._lock:
            self._require_namespace(namespace)
            return dict(self._namespaces.get(namespace, {}))

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties."""
        check_namespace(namespace)
        with self._lock:
            self._require_namespace(namespace)
            properties = self._namespaces.setdefault(namespace, {})
            for key in removals:
                properties.pop(key, None)
            properties.update(updates)

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Tables directly in a namespace; raises `NoSuchNamespaceError`."""
        with self._lock:
            self._require_namespace(namespace)
            found = (i for i in self._locations if i.namespace == namespace)
            return sorted(found, key=lambda i: i.name)

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Whether the table is there."""
        return identifier in self._locations

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Raises `NoSuchTableError`."""
        location = self._locations.get(identifier)
        if location is None:
            raise NoSuchTableError(f"table {identifier} is not in catalog '{self._name}'")
        return self._loaded(identifier, location)

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Where a new table of that name goes when no location is given."""
        namespace_properties = self._namespaces.get(identifier.namespace, {})
        return default_location(self._name, self._properties, namespace_properties, identifier)

    def create_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> LoadedTable:
        """Publish the first metadata of a new table; raises `TableAlreadyExistsError`."""
        return self._create(identifier, metadata).result()

    def _create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Outcome[LoadedTable]:
        try:
            check_identifier(identifier)
            with self._lock:
                self._require_namespace(identifier.namespace)
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
        with self._lock:
            if self._locations.pop(identifier, None) is None:
                raise NoSuchTableError(f"table {identifier} is not in catalog '{self._name}'")

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raises `NoSuchTableError`, `TableAlreadyExistsError`, `NoSuchNamespaceError`."""
        check_identifier(target)
        with self._lock:
            self._require_namespace(target.namespace)
            if source not in self._locations:
                raise NoSuchTableError(f"table {source} is not in catalog '{self._name}'")
            self._require_free(target)
            self._locations[target] = self._locations.pop(source)

    def register_table(self, identifier: TableIdentifier, metadata_location: str) -> LoadedTable:
        """Adopt an existing metadata file; raises `TableAlreadyExistsError`."""
        check_identifier(identifier)
        with self._lock:
            self._require_namespace(identifier.namespace)
            loaded = self._loaded(identifier, metadata_location)
            self._publish(identifier, metadata_location).result()
        return loaded

    def _publish(self, identifier: TableIdentifier, location: str) -> Outcome[None]:
        with self._lock:
            if identifier in self._locations:
                return Refused(self._taken(identifier))
            self._locations[identifier] = location
            return Done(None)

    def _swap(self, identifier: TableIdentifier, expected: str, new: str) -> Outcome[None]:
        with self._lock:
            if self._locations.get(identifier) != expected:
                return Refused(
                    CommitConflictError(
                        f"table {identifier} was changed by another commit; refresh and retry"
                    )
                )
            self._locations[identifier] = new
            return Done(None)

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
            raise NoSuchNamespaceError(
                f"namespace {'.'.join(namespace)} is not in catalog '{self._name}'; create it first"
            )

    def _require_free(self, identifier: TableIdentifier) -> None:
        if identifier in self._locations:
            raise self._taken(identifier)

    def _taken(self, identifier: TableIdentifier) -> TableAlreadyExistsError:
        return TableAlreadyExistsError(f"table {identifier} is already in catalog '{self._name}'")
