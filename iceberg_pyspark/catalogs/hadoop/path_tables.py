"""Tables that are named by a path: the table's folder, or one metadata file.

A folder with versions (`versions.py`) can be read and written; the first write creates it. A folder
whose metadata belongs to another catalog (`00003-<uuid>.metadata.json`), one whose version hint
names a file (`<uuid>.metadata.json`, by DuckDB's COPY) and a single metadata file are read-only,
because the other catalog or engine would not see a commit made here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from iceberg_pyspark.catalogs.catalog import LoadedTable, Namespace, TableIdentifier
from iceberg_pyspark.catalogs.committing_catalog import CommittingCatalog, Swap
from iceberg_pyspark.catalogs.hadoop.folder_versions import (
    check_metadata,
    commit_next_version,
    create_first_version,
    drop_versions,
)
from iceberg_pyspark.catalogs.hadoop.versions import (
    TableVersion,
    load_version,
    named_metadata_file,
)
from iceberg_pyspark.catalogs.table_folders import absolute_location
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.errors import (
    InvalidRequestError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.folders import LocalFolders

_METADATA_FILE = re.compile(r"\.metadata\.json(\.gz)?$")
_METASTORE_FILE = re.compile(r"(\d{5,18})-[^/]+\.metadata\.json(?:\.gz)?")
_OWN_FOLDERS = {"metadata", "data"}


def path_identifier(path: str) -> TableIdentifier:
    """Return the identifier of the table at a path: no namespace, the absolute path as its name."""
    return TableIdentifier(namespace=(), name=absolute_location(path))


class PathCatalog(CommittingCatalog):
    """A catalog without namespaces, in which every path is the name of a table.

    If `io` is None, the location of each file decides which storage is used.
    """

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, io: FileIO | None = None
    ) -> None:
        super().__init__("path", properties or {}, io)

    def __repr__(self) -> str:
        return "PathCatalog()"

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Return an empty list: there are no namespaces."""
        return []

    def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> None:
        """Raise `UnsupportedFeatureError`: there are no namespaces."""
        raise _no_namespaces()

    def drop_namespace(self, namespace: Namespace) -> None:
        """Raise `UnsupportedFeatureError`: there are no namespaces."""
        raise _no_namespaces()

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Return whether the namespace is the empty one, the only namespace that exists."""
        return not namespace

    def load_namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return an empty mapping: there are no namespace properties."""
        return {}

    def update_namespace_properties(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raise `UnsupportedFeatureError`: there are no namespaces."""
        raise _no_namespaces()

    def list_tables(self, namespace: Namespace) -> list[TableIdentifier]:
        """Raise `UnsupportedFeatureError`: any folder may be a table."""
        raise UnsupportedFeatureError(
            "tables named by a path cannot be listed; use a catalog of type hadoop on their "
            "warehouse folder"
        )

    def table_exists(self, identifier: TableIdentifier) -> bool:
        """Return whether there is a table at the path."""
        try:
            self.load_table(identifier)
        except NoSuchTableError:
            return False
        return True

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table from its folder or metadata file; raise `NoSuchTableError`."""
        location = _location(identifier)
        io = self._storage(location)
        if _METADATA_FILE.search(location):
            if not io.exists(location):
                raise NoSuchTableError(f"there is no metadata file {location}")
            return self._loaded_table(identifier, location, read_table_metadata(io, location))
        version = load_version(io, location)
        if version is not None:
            return self._table_of_version(identifier, version)
        file = _metastore_file(io, location)
        if file is None:
            raise NoSuchTableError(
                f"folder {location} holds no Iceberg table (no metadata/v<N>.metadata.json in it)"
            )
        return self._loaded_table(identifier, file, read_table_metadata(io, file))

    def default_table_location(self, identifier: TableIdentifier) -> str:
        """Return the path itself; raise `InvalidRequestError` for a metadata file."""
        location = _location(identifier)
        if _METADATA_FILE.search(location):
            raise InvalidRequestError(
                f"{location} names a metadata file, and a new table needs a folder; give the "
                "folder's path"
            )
        return location

    def check_new_table(self, identifier: TableIdentifier, metadata: TableMetadata) -> None:
        """Raise an `IcebergError` for metadata that `create_table` would refuse."""
        check_metadata(metadata, self.default_table_location(identifier))

    def _prepare_create(self, identifier: TableIdentifier, metadata: TableMetadata) -> Swap:
        location = self.default_table_location(identifier)
        io, table = self._storage(location), partial(self._table_of_version, identifier)
        if is_local(location):
            _refuse_foreign_files(location)
        return lambda: create_first_version(io, location, metadata).map(table)

    def _prepare_commit(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: LoadedTable | None,
    ) -> Swap:
        location, version = _location(identifier), self._writable(identifier)
        io, table = self._storage(location), partial(self._table_of_version, identifier)
        return lambda: commit_next_version(io, location, version, requirements, updates).map(table)

    def drop_table(self, identifier: TableIdentifier) -> bool:
        """Delete the table's version files and keep all others; raise `NoSuchTableError`."""
        self._writable(identifier)
        drop_versions(self._storage(_location(identifier)), _location(identifier))
        return True

    def rename_table(self, source: TableIdentifier, target: TableIdentifier) -> None:
        """Raise `UnsupportedFeatureError`: a path cannot be renamed."""
        raise UnsupportedFeatureError(
            f"table {source} cannot be renamed, because its name is the path of its folder; create "
            "a table in another folder, and copy the rows"
        )

    def register_table(
        self, identifier: TableIdentifier, metadata_location: str, *, dry_run: bool = False
    ) -> LoadedTable:
        """Raise `UnsupportedFeatureError`: a path cannot refer to a file elsewhere."""
        raise UnsupportedFeatureError(
            f"{metadata_location} cannot be registered under a path; load that file itself, or "
            "use a catalog"
        )

    def _writable(self, identifier: TableIdentifier) -> TableVersion:
        location = _location(identifier)
        io = self._storage(location)
        version = None if _METADATA_FILE.search(location) else load_version(io, location)
        if version is None:
            table = self.load_table(identifier)
            raise UnsupportedFeatureError(
                f"table {location} is read-only by path: the catalog or engine that owns it keeps "
                f"the pointer to {table.metadata_location}; write through that catalog, or "
                "register this file in a catalog"
            )
        return version

    def _table_of_version(self, identifier: TableIdentifier, version: TableVersion) -> LoadedTable:
        return self._loaded_table(identifier, version.metadata_location, version.metadata)


def _location(identifier: TableIdentifier) -> str:
    if identifier.namespace:
        raise InvalidRequestError(f"{identifier} is not a path; load it from its catalog")
    return absolute_location(identifier.name)


def _no_namespaces() -> UnsupportedFeatureError:
    return UnsupportedFeatureError("tables named by their path have no namespaces; use a catalog")


def _metastore_file(io: FileIO, location: str) -> str | None:
    """Return the newest metadata file whose name follows a metastore catalog's pattern.

    Without one, it is the file that the version hint names.
    Raise `InvalidRequestError` if several files have the highest version number.
    """
    newest: list[str] = []
    highest = -1
    for info in io.list_files(f"{location}/metadata"):
        m = _METASTORE_FILE.fullmatch(info.location.rsplit("/", 1)[1])
        if m is None or int(m[1]) < highest:
            continue
        if int(m[1]) > highest:
            highest, newest = int(m[1]), []
        newest.append(info.location)
    if len(newest) > 1:
        raise InvalidRequestError(
            f"folder {location} holds a catalog's table, and only the catalog knows which "
            "metadata file is current: "
            f"{', '.join(sorted(newest))}; load the table through it, or one of these files by "
            "its path"
        )
    return newest[0] if newest else named_metadata_file(io, location)


def _refuse_foreign_files(location: str) -> None:
    folders, files = LocalFolders().list(location)
    foreign = [n for n in (*folders, *files) if n not in _OWN_FOLDERS]
    if foreign:
        raise InvalidRequestError(
            f"folder {location} has files that are not of an Iceberg table "
            f"({', '.join(foreign[:3])}); a new table needs an empty or new folder"
        )
