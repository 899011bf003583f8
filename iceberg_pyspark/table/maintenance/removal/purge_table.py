"""Drops a table together with its files.

As in Java, the table is dropped first and its files are deleted afterwards, so that nobody can read
a table with missing files. The files are determined before the drop: all files that the metadata
references in any snapshot, and the metadata files of the log. Only files in the folders that belong
to the table according to its catalog are deleted, whatever its metadata says: a file elsewhere came
from another table (`add_files`, a snapshot of a table), which may still need it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from iceberg_pyspark.catalogs.catalog import (
    Catalog,
    LoadedTable,
    PurgingCatalog,
    TableIdentifier,
    ViewCatalog,
)
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.catalogs.table_folders import own_folders, unique_folder
from iceberg_pyspark.changes.compatibility import check_may_change
from iceberg_pyspark.errors import (
    CommitStateUnknownError,
    IcebergError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    StorageError,
)
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.table_properties import GC_ENABLED
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import path_in_store
from iceberg_pyspark.storage.own_folders import OwnFolders, is_metadata_file
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO, check_read
from iceberg_pyspark.table.maintenance.removal.deleted_files import (
    DEFAULT_THREADS,
    DeletedFile,
    FileDeletion,
)
from iceberg_pyspark.table.maintenance.removal.orphan_files import older_metadata_files
from iceberg_pyspark.table.maintenance.removal.other_tables import files_of_others
from iceberg_pyspark.table.table_storage import table_io

_log = get_logger(__name__)
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedFiles:
    """The numbers of deleted files, of kept files, and of failures.

    Files are kept outside the table's own folders, and where another table or view needs them.
    """

    deleted: int
    outside: int
    failed: int
    shared: int = 0


def drop_with_files(catalog: Catalog, identifier: TableIdentifier) -> None:
    """Drop a table and delete its files; a purging catalog lets its server delete them.

    Raises what `purge_table` raises.
    """
    if isinstance(catalog, PurgingCatalog) and catalog.purges_tables:
        _check_files_are_its_own(catalog.load_table(identifier))
        catalog.purge_table(identifier)
    else:
        purge_table(catalog, identifier)


def purge_table(
    catalog: Catalog, identifier: TableIdentifier, *, io: FileIO | None = None
) -> PurgedFiles:
    """Drop a table and delete its files.

    Raises `NoSuchTableError`, or `CommitStateUnknownError` if the answer to the drop was lost: then
    no file is deleted.

    If the files cannot be determined, an error is raised before anything is dropped. A file that
    cannot be deleted is logged, and the table is dropped all the same. `io` None: the storage is
    chosen by location.
    """
    loaded_table = catalog.load_table(identifier)
    _check_files_are_its_own(loaded_table)
    try:
        io = io or table_io(loaded_table, catalog)
        own = _own_folders(catalog, loaded_table, io)
        if isinstance(io, RestrictedFileIO):
            io = replace(io, own=own)
        stages = _reachable_files(io, own, loaded_table)
        shared = {
            path
            for files in files_of_others(catalog, io, loaded_table)
            for path in _paths_of(files)
        }
    except IcebergError as e:
        raise type(e)(
            f"table {identifier} cannot be purged and was not dropped, because it is not known "
            f"which files it has: {e}; drop it without purging"
        ) from e
    if not catalog.drop_table(identifier):
        raise CommitStateUnknownError(
            f"table {identifier} is no longer in catalog '{catalog.name}', but the answer to its "
            "drop was lost: another client may have renamed it, so its files were kept; if no "
            f"table uses them, delete the folder {loaded_table.metadata.location}"
        )
    stages.append(_metadata_of_dropped_table(io, loaded_table))
    kept = [[f for f in files if shared.isdisjoint(_paths_of([f]))] for files in stages]
    shared_count = sum(map(len, stages)) - sum(map(len, kept))
    return _delete_files(io, own, kept, identifier, shared_count)


def _check_files_are_its_own(loaded_table: LoadedTable) -> None:
    check_may_change(loaded_table.metadata)
    if not GC_ENABLED.of(loaded_table.metadata.properties):
        raise InvalidRequestError(
            f"table {loaded_table.identifier} cannot be purged, because its property "
            f"{GC_ENABLED.name} is false: its files may belong to other tables; drop it without "
            "purging"
        )


def _own_folders(catalog: Catalog, loaded_table: LoadedTable, io: FileIO) -> OwnFolders:
    """Return the table's own folders, and the one that its catalog has made for it with a UUID.

    The catalog does not know which UUID that was. A folder in which another table has its metadata
    belongs to that table, which may have been renamed.
    """
    own = own_folders(catalog, loaded_table)
    folder = unique_folder(catalog, loaded_table)
    if folder is None or own.owns(f"{folder}/x") or _has_other_metadata(io, folder, loaded_table):
        return own
    return replace(own, folders=(*own.folders, folder))


def _has_other_metadata(io: FileIO, folder: str, loaded_table: LoadedTable) -> bool:
    """Return whether a folder has metadata files of another table, or that is not known."""
    table_uuid = loaded_table.metadata.table_uuid
    try:
        return any(
            table_uuid is None or read_table_metadata(io, info.location).table_uuid != table_uuid
            for info in io.list_files(folder)
            if is_metadata_file(info.location)
        )
    except IcebergError as e:
        _log.info("it is not known whether another table has files in %s: %s", folder, e)
        return True


def _delete_files(
    io: FileIO,
    own: OwnFolders,
    stages: list[list[str]],
    identifier: TableIdentifier,
    shared_count: int,
) -> PurgedFiles:
    counts: Counter[DeletedFile] = Counter()
    with FileDeletion(io, own, DEFAULT_THREADS, "a file of a dropped table") as deletion:
        for files in stages:
            # all files of a stage are deleted before the first file of the next stage
            counts = sum(deletion.delete(files), counts)
    purged_files = PurgedFiles(
        deleted=counts["deleted"],
        outside=counts["outside"],
        shared=shared_count,
        failed=counts["failed"],
    )
    if purged_files.outside or purged_files.shared or purged_files.failed:
        _log.warning(
            "table %s was dropped and %d of its files deleted; %d outside its own folders (%s) "
            "stay, %d that other tables need stay, %d could not be deleted",
            identifier,
            purged_files.deleted,
            purged_files.outside,
            ", ".join(own.folders) or "none that its catalog knows",
            purged_files.shared,
            purged_files.failed,
        )
    return purged_files


def _reachable_files(io: FileIO, own: OwnFolders, loaded_table: LoadedTable) -> list[list[str]]:
    """Return the files in groups, in deletion order: a file before the files that refer to it."""
    metadata = loaded_table.metadata
    lists: dict[str, None] = {}
    manifests: dict[tuple[Hashable, ...], ManifestFile] = {}
    for snapshot in metadata.snapshots:
        own_list = snapshot.root_manifest or snapshot.manifest_list
        if own_list is None or _may_read(io, own_list):
            for manifest in read_snapshot_manifests(io, snapshot):
                manifests.setdefault((manifest.part, manifest.dead_positions), manifest)
            lists |= dict.fromkeys(snapshot_files(io, snapshot))
        else:
            lists[own_list] = None
    with ThreadPoolExecutor(_THREADS) as pool:
        readable = [m for m in manifests.values() if _may_read(io, m.manifest_path)]
        content = {path for paths in pool.map(partial(_files_of, io), readable) for path in paths}
    statistics = [s.statistics_path for s in metadata.statistics]
    statistics += [s.statistics_path for s in metadata.partition_statistics]
    log = list(older_metadata_files(io, loaded_table, own.owns))
    return [
        sorted(content),
        list({m.manifest_path: None for m in manifests.values() if not m.is_root}),
        [*lists, *statistics],
        log,
        [loaded_table.metadata_location],
    ]


def _paths_of(files: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the files in their store; a text that is not a location is left out."""
    for file in files:
        with contextlib.suppress(StorageError):
            yield path_in_store(file)


def _files_of(io: FileIO, manifest: ManifestFile) -> list[str]:
    paths: list[str] = read_entries(io, manifest, StructType(()))["file_path"].to_pylist()
    return paths


def _metadata_of_dropped_table(io: FileIO, loaded_table: LoadedTable) -> list[str]:
    """Return the metadata files that a file system catalog keeps of a table it has just dropped."""
    if loaded_table.store_location is not None:
        return []
    folder = loaded_table.metadata_location.rpartition("/")[0]
    end = f"-{loaded_table.metadata.table_uuid}.metadata.json"
    try:
        locations = [info.location for info in io.list_files(folder)]
    except StorageError as e:
        _log.info("the metadata folder cannot be listed: %s", e)
        return []
    return [f for f in locations if f.startswith(f"{folder}/dropped-v") and f.endswith(end)]


def _may_read(io: FileIO, location: str) -> bool:
    try:
        check_read(io, location)
    except StorageError:
        return False
    return True


def drop_all_in(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    """Drop the tables, views and namespaces in a namespace, and delete no file.

    Raises `NamespaceNotEmptyError` if that would leave files of tables in the namespace's folder.
    """
    _check_drop_leaves_no_files(catalog, namespace)
    _drop_each_in(catalog, namespace)


def _check_drop_leaves_no_files(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    """Raise `NamespaceNotEmptyError` if dropping all tables would leave files in the folder."""
    if not isinstance(catalog, FilesystemCatalog):
        return
    if tables := _tables_below(catalog, namespace):
        raise NamespaceNotEmptyError(
            f"namespace {'.'.join(namespace)} was not dropped, and neither was anything in it: in "
            "catalog "
            f"'{catalog.name}' of type hadoop the files of a dropped table stay in the folder of "
            f"its namespace; first DROP TABLE ... PURGE: {', '.join(map(str, tables))}"
        )


def _tables_below(catalog: Catalog, namespace: tuple[str, ...]) -> list[TableIdentifier]:
    tables = catalog.list_tables(namespace)
    for child in catalog.list_namespaces(namespace):
        tables += _tables_below(catalog, child)
    return tables


def _drop_each_in(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    for identifier in catalog.list_tables(namespace):
        catalog.drop_table(identifier)
    if isinstance(catalog, ViewCatalog):
        for identifier in catalog.list_views(namespace):
            catalog.drop_view(identifier)
    for child in catalog.list_namespaces(namespace):
        _drop_each_in(catalog, child)
        catalog.drop_namespace(child)
