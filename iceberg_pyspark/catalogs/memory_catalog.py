"""A catalog in the memory of this process, for tests and for tables of one session.

The pointers are in a dict that a lock protects; metadata and data are files in the warehouse, which
may be `memory://<name>`: then they are in the memory of this process too.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    LoadedView,
    Namespace,
    TableIdentifier,
    check_namespace,
    namespace_already_exists,
)
from iceberg_pyspark.catalogs.metastore_views import MetastoreViewCatalog
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NamespaceNotEmptyError,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.memory_files import is_memory, open_process_memory
from iceberg_pyspark.storage.files.places import is_directly_in


class MemoryCatalog(MetastoreViewCatalog):
    """The tables and views of this process, by name.

    If `io` is None, the location of each file decides which storage is used.
    """

    def __init__(
        self, name: str, properties: Mapping[str, str] | None = None, *, io: FileIO | None = None
    ) -> None:
        super().__init__(name, properties or {}, io)
        warehouse = self._properties.get("warehouse", "")
        if io is None and is_memory(warehouse):
            open_process_memory(warehouse)
        self._lock = threading.RLock()
        self._namespaces: dict[Namespace, dict[str, str]] = {}
        self._locations: dict[TableIdentifier, str] = {}
        self._view_locations: dict[TableIdentifier, str] = {}

    def __repr__(self) -> str:
        return f"MemoryCatalog({self._name!r}, {self._properties!r})"

    def __reduce__(self) -> str:
        raise InvalidRequestError(
            f"catalog '{self._name}' lives in the memory of one process and cannot be sent to "
            "another; "
            "use a catalog of type sql or hadoop"
        )

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the direct children of a namespace."""
        with self._lock:
            self._require_namespace(parent)
            depth = len(parent)
            children = {n[: depth + 1] for n in self._namespaces if n[:depth] == parent}
            return sorted(n for n in children if len(n) > depth)

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a namespace; raise `NamespaceAlreadyExistsError` if the namespace exists."""
        check_namespace(namespace)
        with self._lock:
            if namespace in self._namespaces:
                raise namespace_already_exists(namespace, self._name)
            self._namespaces[namespace] = dict(properties or {})

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace; raise `NoSuchNamespaceError` or `NamespaceNotEmptyError`."""
        check_namespace(namespace)
        with self._lock:
            self._require_namespace(namespace)
            views = self.list_views(namespace)
            if views or self.list_tables(namespace) or self.list_namespaces(namespace):
                raise NamespaceNotEmptyError(
                    f"namespace {'.'.join(namespace)} still has tables, views or namespaces; drop "
                    "them first"
                )
            del self._namespaces[namespace]

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace exists; all parents of a namespace exist too."""
        with self._lock:
            return not namespace or any(n[: len(namespace)] == namespace for n in self._namespaces)

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set namespace properties; raise `NoSuchNamespaceError`."""
        check_namespace(namespace)
        with self._lock:
            self._require_namespace(namespace)
            properties = self._namespaces.setdefault(namespace, {})
            for key in removals:
                properties.pop(key, None)
            properties.update(updates)

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the tables directly in a namespace; raise `NoSuchNamespaceError`."""
        with self._lock:
            self._require_namespace(namespace)
            tables = (i for i in self._locations if i.namespace == namespace)
            return sorted(tables, key=lambda i: i.name)

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table exists."""
        return identifier in self._locations

    def _namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        with self._lock:
            return dict(self._namespaces.get(namespace, {}))

    def other_pointers(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the current metadata files in a folder of all tables and views but this one."""
        with self._lock:
            tables = [f for i, f in self._locations.items() if i != identifier]
            all_files = [*tables, *self._view_locations.values()]
        return [f for f in all_files if is_directly_in(f, folder)]

    def _pointer(self, identifier: TableIdentifier) -> str | None:
        return self._locations.get(identifier)

    def _publish_table(self, table: LoadedTable) -> Outcome[None]:
        return self._publish(table.identifier, table.metadata_location)

    def _publish(self, identifier: TableIdentifier, location: str) -> Outcome[None]:
        with self._lock:
            if identifier in self._locations or identifier in self._view_locations:
                return Refused(self._already_exists(identifier))
            self._locations[identifier] = location
            return Done(None)

    def _swap_table(self, base: LoadedTable, new_table: LoadedTable) -> Outcome[None]:
        base_location, new = base.metadata_location, new_table.metadata_location
        return self._swap(new_table.identifier, base_location, new)

    def _swap(self, identifier: TableIdentifier, base_location: str, new: str) -> Outcome[None]:
        with self._lock:
            if self._locations.get(identifier) != base_location:
                return Refused(self._conflict(identifier))
            self._locations[identifier] = new
            return Done(None)

    def _delete_pointer(self, identifier: TableIdentifier) -> bool:
        with self._lock:
            return self._locations.pop(identifier, None) is not None

    def _rename_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        with self._lock:
            if target in self._locations or target in self._view_locations:
                raise self._already_exists(target)
            if source not in self._locations:
                return False
            self._locations[target] = self._locations.pop(source)
            return True

    def list_views(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the views directly in a namespace; raise `NoSuchNamespaceError`."""
        with self._lock:
            self._require_namespace(namespace)
            views = (i for i in self._view_locations if i.namespace == namespace)
            return sorted(views, key=lambda i: i.name)

    def _view_pointer(self, identifier: TableIdentifier) -> str | None:
        return self._view_locations.get(identifier)

    def _publish_view(self, view: LoadedView) -> Outcome[None]:
        identifier = view.identifier
        with self._lock:
            if identifier in self._locations or identifier in self._view_locations:
                return Refused(self._view_already_exists(identifier))
            self._view_locations[identifier] = view.metadata_location
            return Done(None)

    def _swap_view(self, base: LoadedView, new_view: LoadedView) -> Outcome[None]:
        identifier = new_view.identifier
        with self._lock:
            if self._view_locations.get(identifier) != base.metadata_location:
                return Refused(self._view_conflict(identifier))
            self._view_locations[identifier] = new_view.metadata_location
            return Done(None)

    def _delete_view_pointer(self, identifier: TableIdentifier) -> bool:
        with self._lock:
            return self._view_locations.pop(identifier, None) is not None

    def _rename_view_pointer(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        with self._lock:
            if target in self._locations or target in self._view_locations:
                raise self._view_already_exists(target)
            if source not in self._view_locations:
                return False
            self._view_locations[target] = self._view_locations.pop(source)
            return True
