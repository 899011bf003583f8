"""A catalog that is a folder tree: Java HadoopCatalog's `<warehouse>/<namespace>/<table>`.

It works on local file systems, HDFS, and object stores that can create a file exclusively.
`folder_versions.py` reads and commits tables. A folder is a table if its `metadata` folder contains
a version file. A `metadata` folder with only other files remains from a dropped table or an
interrupted create. Every other folder is a namespace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial

from iceberg_pyspark.catalogs.catalog import (
    LoadedTable,
    Namespace,
    TableIdentifier,
    check_folder_name,
    check_namespace,
    namespace_already_exists,
)
from iceberg_pyspark.catalogs.catalog_properties import required_property
from iceberg_pyspark.catalogs.committing_catalog import CommittingCatalog, Swap
from iceberg_pyspark.catalogs.hadoop.folder_versions import (
    check_metadata,
    commit_next_version,
    create_first_version,
    drop_versions,
)
from iceberg_pyspark.catalogs.hadoop.versions import TableVersion, is_version_file, load_version
from iceberg_pyspark.catalogs.table_folders import LOCATION, WAREHOUSE, absolute_location
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import redact_text
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.folders import (
    Folders,
    HdfsFolders,
    LocalFolders,
    ObjectFolders,
)
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO, is_hdfs
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.objects.object_stores import is_object

_DATA = "data"
_METADATA = "metadata"


class FilesystemCatalog(CommittingCatalog):
    """The tables in the folders of a warehouse.

    If `io` is None, the location of each file decides which storage is used.
    """

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        warehouse = required_property(name, properties, WAREHOUSE, "the folder of its tables")
        self._warehouse = absolute_location(warehouse)
        if not any(is_one(self._warehouse) for is_one in (is_local, is_object, is_hdfs)):
            raise UnsupportedFeatureError(
                f"catalog '{name}' of type hadoop works in local folders, object stores and HDFS, "
                f"not on {self._warehouse}, where no name can be taken exclusively; use a catalog "
                "of type sql with this warehouse"
            )
        super().__init__(name, {**properties, WAREHOUSE: self._warehouse}, io)
        self._folders = _folders_of(self._warehouse, self._config)

    def __repr__(self) -> str:
        return f"FilesystemCatalog({self._name!r}, {redact_text(self._warehouse)!r})"

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return the direct children of a namespace."""
        self._require_namespace(parent)
        folder = self._folder(parent)
        return [
            (*parent, name)
            for name in self._visible_folders(folder)
            if not self._is_used(f"{folder}/{name}")
        ]

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create the folder of a namespace and of its parents.

        Raise `NamespaceAlreadyExistsError` if the folder exists. Namespace properties cannot be
        stored and are refused.
        """
        check_namespace(namespace)
        if properties:
            raise self._no_properties()
        for depth in range(1, len(namespace)):
            self._refuse_table_folder(namespace[:depth])
        for depth in range(1, len(namespace)):
            with contextlib.suppress(FileAlreadyExistsError):
                self._folders.create(self._folder(namespace[:depth]))
        try:
            self._folders.create(self._folder(namespace))
        except FileAlreadyExistsError as e:
            self._refuse_table_folder(namespace)
            raise namespace_already_exists(namespace, self._name) from e

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop a namespace.

        Raise `NoSuchNamespaceError`, or `NamespaceNotEmptyError` if the folder contains any file.
        """
        check_namespace(namespace)
        self._require_namespace(namespace)
        folder = self._folder(namespace)
        for name in self._visible_folders(folder):
            # a purged table leaves its folders behind, without files
            if {_DATA, _METADATA} & {*self._folders.list(f"{folder}/{name}")[0]}:
                self._folders.remove_empty_below(f"{folder}/{name}")
        if not self._folders.remove_empty(folder):
            raise NamespaceNotEmptyError(
                f"namespace {'.'.join(namespace)} still holds tables, namespaces or files of "
                "dropped tables "
                f"in {self._folder(namespace)}"
            )

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the folder exists and is not the folder of a table."""
        if not namespace:
            return True
        folder = self._folder(namespace)
        return self._folders.exists(folder) and not self._is_used(folder)

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the namespace's folder as `location`; raise `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        return {LOCATION: self._folder(namespace)}

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raise `UnsupportedFeatureError`: a folder cannot store properties."""
        self._require_namespace(namespace)
        raise self._no_properties()

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the tables directly in a namespace; raise `NoSuchNamespaceError`."""
        self._require_namespace(namespace)
        folder = self._folder(namespace)
        return [
            TableIdentifier(namespace=namespace, name=name)
            for name in self._visible_folders(folder)
            if self._is_table(f"{folder}/{name}")
        ]

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether the table's folder contains a version."""
        return self._is_table(self.default_table_location(identifier))

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the current version; raise `NoSuchTableError` if there is none."""
        return self._table(identifier, self._current(identifier))

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Return the only location that a table of this name can have."""
        return self._folder(identifier.levels)

    def check_new_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> None:
        """Raise an `IcebergError` for metadata that `create_table` would refuse."""
        check_metadata(metadata, self.default_table_location(identifier))

    def _prepare_create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Swap:
        folder = self.default_table_location(identifier)
        if not self.namespace_exists(identifier.namespace):
            # as in Java; another writer may be faster
            with contextlib.suppress(NamespaceAlreadyExistsError):
                self.create_namespace(identifier.namespace)
            self._require_namespace(identifier.namespace)
        if self._folders.exists(folder) and not self._is_used(folder) and not self._is_free(folder):
            raise TableAlreadyExistsError(
                f"{identifier} is already a namespace of catalog '{self._name}'"
            )
        io, table = self._storage(self._warehouse), partial(self._table, identifier)
        return lambda: create_first_version(io, folder, metadata).map(table)

    def _prepare_commit(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: LoadedTable | None,
    ) -> Swap:
        folder, version = self.default_table_location(identifier), self._current(identifier)
        io, table = self._storage(self._warehouse), partial(self._table, identifier)
        return lambda: commit_next_version(io, folder, version, requirements, updates).map(table)

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Delete the table's version files and keep all others; raise `NoSuchTableError`."""
        io, folder = self._storage(self._warehouse), self.default_table_location(identifier)
        if not drop_versions(io, folder):
            raise self._no_such_table(identifier)
        return True

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raise `UnsupportedFeatureError`: metadata contains absolute locations in the folder."""
        raise UnsupportedFeatureError(
            f"catalog '{self._name}' of type hadoop cannot rename table {source}, because its name "
            "is the path of its folder; create a table with the other name, and copy the rows"
        )

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Raise `UnsupportedFeatureError`: a table's folder determines its name."""
        raise UnsupportedFeatureError(
            f"catalog '{self._name}' of type hadoop cannot register {metadata_location}: its "
            "tables are the "
            "folders of its warehouse; load the file by its path, or use a catalog of type sql"
        )

    def _current(self, identifier: TableIdentifier) -> TableVersion:
        io, folder = self._storage(self._warehouse), self.default_table_location(identifier)
        version = load_version(io, folder)
        if version is None:
            raise self._no_such_table(identifier)
        return version

    def _table(self, identifier: TableIdentifier, version: TableVersion) -> LoadedTable:
        return self._loaded_table(identifier, version.metadata_location, version.metadata)

    def _folder(self, levels: Sequence[str]) -> str:
        for level in levels:
            check_folder_name(level)
        return "/".join((self._warehouse, *levels))

    def _require_namespace(self, namespace: Namespace) -> None:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(
                f"namespace {'.'.join(namespace)} is not in catalog '{self._name}' "
                f"(no folder {self._folder(namespace)}); create it first"
            )

    def _refuse_table_folder(self, namespace: Namespace) -> None:
        folder = self._folder(namespace)
        if self._is_used(folder):
            raise NamespaceAlreadyExistsError(
                f"{'.'.join(namespace)} cannot be a namespace of catalog '{self._name}': folder "
                f"{folder} holds a "
                "table, or what is left of one"
            )

    def _no_such_table(self, identifier: TableIdentifier) -> NoSuchTableError:
        return NoSuchTableError(
            f"table {identifier} is not in catalog '{self._name}' "
            f"(no version in {self.default_table_location(identifier)}/metadata)"
        )

    def _no_properties(self) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"catalog '{self._name}' of type hadoop keeps no namespace properties: its namespaces "
            "are folders"
        )

    def _visible_folders(self, folder: str) -> list[str]:
        return [name for name in self._folders.list(folder)[0] if not name.startswith(".")]

    def _is_table(self, folder: str) -> bool:
        return any(map(is_version_file, self._folders.list(f"{folder}/{_METADATA}")[1]))

    def _is_used(self, folder: str) -> bool:
        """Return whether a folder belongs to a table, or contains the rest of a dropped table."""
        return bool(self._folders.list(f"{folder}/{_METADATA}")[1])

    def _is_free(self, folder: str) -> bool:
        """Return whether a table may be created in a folder: only a table has ever used the folder.

        Such a folder is empty; or contains the first data files of the table, because a job that
        creates its table writes the files first; or contains the empty folders of a purged table. A
        namespace may contain a table or a namespace named `data` or `metadata`, but no data files
        in it.
        """
        folders, files = self._folders.list(folder)
        metadata = self._folders.list(f"{folder}/{_METADATA}")
        if files or not {*folders} <= {_DATA, _METADATA} or any(metadata):
            return False
        data = f"{folder}/{_DATA}"
        below = [f"{data}/{name}" for name in self._folders.list(data)[0]]
        return not any(map(self._is_used, (data, *below)))


def _folders_of(warehouse: str, properties: Mapping[str, str]) -> Folders:
    if is_local(warehouse):
        return LocalFolders()
    if is_hdfs(warehouse):
        return HdfsFolders(HdfsFileIO(dict(properties)))
    return ObjectFolders(ObjectStoreFileIO(dict(properties)))
