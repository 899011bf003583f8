"""Finds the files in a folder that may be orphans, and the files that a table needs.

A file without references may belong to a writer that is about to commit, so only old files are
candidates, and references are read after the listing. Hidden files and folders, whose names begin
with `_` or `.`, belong to other programs, except the remains of a killed write of this package.
Links are not followed, and the files behind them are not candidates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.files.file_io import FileIO, without_temporary
from iceberg_pyspark.storage.files.local import is_local, local_path
from iceberg_pyspark.storage.files.places import is_below, store_of
from iceberg_pyspark.storage.own_folders import is_metadata_file
from iceberg_pyspark.table.maintenance.removal.expired_files import (
    files_of_snapshots,
    live_paths,
    manifests_of,
    statistics_paths,
)

Inventory: TypeAlias = Callable[[], Iterable[tuple[str, int | None]]]
"""A function that yields locations and modification times (ms since 1970; None if unknown)."""

_log = get_logger(__name__)

_HIDDEN_PREFIXES = ("_", ".")
STAGING_FOLDER = "copy-table-staging-"
"""The start of the names of folders in which `rewrite_table_path` writes."""
_METADATA = "metadata"
_HINT = "version-hint.text"


@dataclass
class FolderListing:
    """The files below a folder that are older than a time (ms since 1970) and not hidden.

    The store lists the files, unless an `inventory` has them: locations, and each file's
    modification time, None if unknown.

    A subfolder may belong to another table: it has metadata files in `metadata`, or anywhere but in
    this table's own metadata folders. When all files were iterated, `foreign_folders` has these
    folders, whose files do not belong to this table, `metadata_files` the metadata files in this
    table's own metadata folders, and `link_targets` the files behind links: the table may need a
    file by the name of a link to it.
    """

    io: FileIO
    folder: str
    older_than_ms: int
    table: LoadedTable
    inventory: Inventory | None = None
    foreign_folders: set[str] = field(default_factory=set)
    link_targets: set[str] = field(default_factory=set)
    metadata_files: list[str] = field(default_factory=list)

    def files(self) -> Iterator[str]:
        """Yield the locations of the files, spelled like the folder."""
        folder = self.folder.rstrip("/")
        examples = tuple(
            f"{f.name}="
            for spec in self.table.metadata.partition_specs
            for f in spec.fields
            if f.name.startswith(_HIDDEN_PREFIXES)
        )
        own = {_parent(self.table.metadata_location), f"{folder}/{_METADATA}", folder}
        own |= {_parent(e.metadata_file) for e in self.table.metadata.metadata_log}
        for location, modified_ms, is_link in self._listed_files(f"{folder}/"):
            if _is_link(location) if is_link is None else is_link:
                self.link_targets.add(os.path.realpath(local_path(location)))
                continue
            below = location[len(folder) + 1 :]
            if any(
                name.startswith(_HIDDEN_PREFIXES) and not (examples and name.startswith(examples))
                for name in without_temporary(below.split("/"))
            ):
                continue
            parent = _parent(location)
            if is_metadata_file(location):
                if any(_same(parent, o) for o in own):
                    # a staging folder has copies of this table's own metadata
                    if not folder.rpartition("/")[2].startswith(STAGING_FOLDER):
                        self.metadata_files.append(location)
                else:
                    above, _, name = parent.rpartition("/")
                    self.foreign_folders.add(above if name == _METADATA else parent)
            # if a store does not tell a file's age, the file may be new
            if modified_ms is not None and modified_ms < self.older_than_ms:
                yield location

    def _listed_files(self, prefix: str) -> Iterator[tuple[str, int | None, bool | None]]:
        """Yield the location, the time of the last change, and whether it is a link, if known."""
        if self.inventory is None:
            for file in self.io.list_files(prefix[:-1]):
                yield file.location, file.modified_ms, file.is_link
            return
        for location, modified_ms in self.inventory():
            # a store never lists a location with `..`
            if location.startswith(prefix) and ".." not in location.split("/"):
                yield location, modified_ms, None


def referenced_files(
    io: FileIO,
    table: LoadedTable,
    seen_manifests: set[Hashable],
    *,
    may_lack_snapshots: bool = False,
) -> Iterator[list[str]]:
    """Yield all files that a table needs, some at a time: metadata, its log and all snapshots.

    Manifests in `seen_manifests` are not opened; opened manifests are added to it. Raises an
    `IcebergError` if a file of the table cannot be read. With `may_lack_snapshots`, snapshots whose
    list of manifests does not exist are left out: nobody can read them.
    """
    metadata = table.metadata
    files = [table.metadata_location, *older_metadata_files(io, table)]
    yield files
    yield [f"{folder}/{_HINT}" for folder in {_parent(file) for file in files}]
    yield list(statistics_paths(metadata))
    snapshots = metadata.snapshots
    if may_lack_snapshots:
        snapshots = tuple(s for s in snapshots if _has_manifests(io, s))
    yield from map(list, files_of_snapshots(io, snapshots))
    manifests = {(part, m.dead_positions): m for part, m in manifests_of(io, snapshots).items()}
    yield [m.manifest_path for m in manifests.values()]
    yield from live_paths(io, [m for key, m in manifests.items() if key not in seen_manifests])
    seen_manifests.update(manifests)


def _has_manifests(io: FileIO, snapshot: Snapshot) -> bool:
    location = snapshot.root_manifest or snapshot.manifest_list
    return location is None or io.exists(location)


def older_metadata_files(
    io: FileIO, table: LoadedTable, may_read: Callable[[str], bool] = lambda _: True
) -> Iterator[str]:
    """Yield the files of the metadata log, also those that only older metadata files name."""
    metadata = table.metadata
    paths = {table.metadata_location}
    while True:
        older = [e.metadata_file for e in metadata.metadata_log if e.metadata_file not in paths]
        yield from older
        paths.update(older)
        if not older or not may_read(older[0]):
            return
        try:
            metadata = read_table_metadata(io, older[0])
        except IcebergError as e:
            # the file was removed long ago, and the files that it named are unknown
            _log.info("an older metadata file cannot be read: %s", e)
            return


@dataclass(frozen=True, slots=True)
class StoreNames:
    """The schemes and authorities that are other names for one store.

    A key may have several names, separated by commas, as in Java; an empty authority equals any.

    >>> names = StoreNames({"s3a,s3n": "s3"}, {"b1,b2": "b"})
    >>> names.is_same("s3n://b2/x", "s3://b/wh"), names.is_same("s3://c/x", "s3://b/wh")
    (True, False)
    """

    equal_schemes: Mapping[str, str] = field(default_factory=dict)
    equal_authorities: Mapping[str, str] = field(default_factory=dict)

    def is_same(self, location: str, folder: str) -> bool:
        """Return whether a location is in the same store as a folder."""
        scheme, authority = self._names(location)
        folder_scheme, folder_authority = self._names(folder)
        return scheme == folder_scheme and authority in ("", folder_authority)

    def _names(self, location: str) -> tuple[str, str]:
        scheme, _, authority = store_of(location).partition("://")
        return _equal(scheme, self.equal_schemes), _equal(authority, self.equal_authorities)


def _equal(name: str, equal: Mapping[str, str]) -> str:
    for names, one in equal.items():
        if name in (n.strip() for n in names.split(",")):
            return one.strip()
    return name


def _parent(location: str) -> str:
    return location.rpartition("/")[0]


def _same(a: str, b: str) -> bool:
    try:
        return is_below(a, b) and is_below(b, a)
    except IcebergError:
        return False


def _is_link(location: str) -> bool:
    return is_local(location) and os.path.islink(local_path(location))
