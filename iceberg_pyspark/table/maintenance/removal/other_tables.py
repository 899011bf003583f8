"""The files that other tables and views need in the folders of a table.

Tables share a folder after a rename if the old name was given away again, as copies by
`register_table`, by an explicit location, or because two catalogs have one warehouse. Their
metadata files tell of them: those that are not in the table's own log, and those that the catalog
knows as the current metadata of another name. Whoever deletes files of the table asks here first,
and deletes nothing if the metadata of another table cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, LocatingCatalog
from iceberg_pyspark.catalogs.hadoop.versions import is_version_file
from iceberg_pyspark.catalogs.table_folders import WAREHOUSE, absolute_location, own_folders
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, StorageError
from iceberg_pyspark.formats.metadata_files import read_any_metadata
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import depth, is_below, path_in_store
from iceberg_pyspark.storage.own_folders import is_metadata_file
from iceberg_pyspark.table.maintenance.removal.orphan_files import (
    older_metadata_files,
    referenced_files,
)

_METADATA = "metadata"
_NUMBER = re.compile(r"\d+")
_MAX_ATTEMPTS = 5
_log = get_logger(__name__)


def files_of_others(
    catalog: Catalog,
    io: FileIO,
    table: LoadedTable,
    *,
    listed: Sequence[str] = (),
    with_tables_above: bool = False,
) -> Iterator[list[str]]:
    """Yield the files that other tables and views need, some at a time.

    `listed` are metadata files that the caller has found beside those in the metadata folders.
    `with_tables_above` also looks for tables whose folder contains this table's folder. Raises
    `InvalidRequestError`, which names the other metadata file, if its needs are not known.
    """
    others = _OtherTables(catalog, io, table, tuple(listed), with_tables_above)
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            yield from others.needed_files()
        except _Gone as e:
            # the other table was changed or dropped meanwhile
            if attempt == _MAX_ATTEMPTS:
                raise e.error from e
        else:
            return


class _Gone(Exception):  # noqa: N818 - no error, if it is gone for good
    """A metadata file is no longer there, or a file that it needs cannot be read any more."""

    def __init__(self, error: InvalidRequestError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass
class _OtherTables:
    catalog: Catalog
    io: FileIO
    table: LoadedTable
    listed: tuple[str, ...]
    with_tables_above: bool
    logged: set[str] = field(default_factory=set)

    def needed_files(self) -> Iterator[list[str]]:
        folders = self._metadata_folders()
        current = self._current_files(folders)
        files = {path_in_store(f): f for f in (*self.listed, *self._listed(folders))}
        if not self._is_version(self.table.metadata_location):
            current += _newest_versions(files.values())
        own = {path_in_store(f) for f in self._own_log()}
        if not files.keys() <= own:
            own |= {path_in_store(f) for f in older_metadata_files(self.io, self.table)}
        seen_files: set[str] = set()
        seen_manifests: set[Hashable] = set()
        others = [f for path, f in files.items() if path not in own]
        for file in dict.fromkeys((*current, *sorted(others, key=_number, reverse=True))):
            if path_in_store(file) not in seen_files:
                for needed in self._needs(file, file in current, own, seen_manifests):
                    seen_files.update(path_in_store(f) for f in needed if is_metadata_file(f))
                    yield needed

    def _own_log(self) -> list[str]:
        log = self.table.metadata.metadata_log
        return [self.table.metadata_location, *(e.metadata_file for e in log)]

    def _needs(
        self, file: str, is_current: bool, own: set[str], seen_manifests: set[Hashable]
    ) -> Iterator[list[str]]:
        table_uuid = None
        try:
            metadata = read_any_metadata(self.io, file)
            if isinstance(metadata, ViewMetadata):
                self._log_once(file, metadata.view_uuid)
                yield [file]
                return
            table_uuid = metadata.table_uuid
            if not is_current and self._is_of_this_table(file, metadata):
                log = [e.metadata_file for e in metadata.metadata_log]
                if not log or path_in_store(log[-1]) in own:
                    # An interrupted commit: nobody has built on it.
                    return
                if self._is_older(file, metadata):
                    yield [file, *log]
                    return
            self._log_once(file, table_uuid)
            other = replace(self.table, metadata=metadata, metadata_location=file)
            yield from referenced_files(self.io, other, seen_manifests, may_lack_snapshots=True)
        except IcebergError as e:
            error = InvalidRequestError(
                f"table {self.table.identifier}: {file}, which is in its folder, is the metadata "
                f"of another table or view (UUID {table_uuid or 'unknown'}), and it is not known "
                f"which files that one needs, so no file is deleted: {e}; make its files "
                "readable, or delete this metadata file if nobody uses it"
            )
            if isinstance(e, StorageError):
                raise _Gone(error) from e
            raise error from e

    def _is_of_this_table(self, file: str, metadata: TableMetadata) -> bool:
        table_uuid, pointer = self.table.metadata.table_uuid, self.table.metadata_location
        return (
            table_uuid is not None
            and (metadata.table_uuid or "").lower() == table_uuid.lower()
            and self._is_version(file) == self._is_version(pointer)
        )

    def _is_older(self, file: str, metadata: TableMetadata) -> bool:
        """Return whether this table was probably made from the file, which its log has lost."""
        snapshots = self.table.metadata.snapshot_by_id
        return _number(file) < _number(self.table.metadata_location) and all(
            s.snapshot_id in snapshots for s in metadata.snapshots
        )

    def _log_once(self, file: str, uuid: str | None) -> None:
        if file not in self.logged:
            self.logged.add(file)
            _log.warning(
                "table %s: %s, which is in its folder, is the metadata of another table or view "
                "(UUID %s), whose files are kept; if nobody uses it, delete this metadata file",
                self.table.identifier,
                file,
                uuid,
            )

    def _metadata_folders(self) -> list[str]:
        own = own_folders(self.catalog, self.table)
        folders = [f"{folder.rstrip('/')}/{_METADATA}" for folder in own.folders]
        if own.metadata_folder is not None:
            folders.append(own.metadata_folder)
        return folders

    def _current_files(self, folders: Sequence[str]) -> list[str]:
        """Return what the catalog knows as the current metadata of its other tables and views."""
        if not isinstance(self.catalog, LocatingCatalog):
            return []
        identifier = self.table.identifier
        return [f for folder in folders for f in self.catalog.other_pointers(identifier, folder)]

    def _listed(self, folders: Sequence[str]) -> Iterator[str]:
        for folder in folders:
            yield from _metadata_files(self.io, folder)
        for folder in self._folders_above() if self.with_tables_above else ():
            try:
                yield from _metadata_files(self.io, f"{folder}/{_METADATA}")
            except StorageError as e:
                # credentials may be for the table's own folder only
                _log.info("it is not known whether %s is the folder of a table: %s", folder, e)

    def _folders_above(self) -> Iterator[str]:
        """Yield the folders that contain the table's own, up to the warehouse."""
        warehouse = self.catalog.properties.get(WAREHOUSE)
        top = None if warehouse is None else absolute_location(warehouse)
        for folder in own_folders(self.catalog, self.table).folders:
            above = folder.rstrip("/").rpartition("/")[0]
            while above and not above.endswith(":/") and depth(above) > 0:
                if top is not None and is_below(top, above):
                    break
                yield above
                above = above.rpartition("/")[0]

    @staticmethod
    def _is_version(file: str) -> bool:
        return is_version_file(file.rpartition("/")[2])


def _metadata_files(io: FileIO, folder: str) -> list[str]:
    return [
        info.location
        for info in io.list_files(folder)
        if is_metadata_file(info.location) and info.location.rpartition("/")[0] == folder
    ]


def _newest_versions(files: Iterable[str]) -> list[str]:
    """Return the newest version in each folder: it is a table of a `hadoop` catalog, or by path."""
    newest: dict[str, str] = {}
    for file in sorted(files, key=_number):
        folder, _, name = file.rpartition("/")
        if is_version_file(name):
            newest[folder] = file
    return list(newest.values())


def _number(file: str) -> int:
    number = _NUMBER.search(file.rpartition("/")[2])
    return int(number.group()) if number else -1
