"""Writes the metadata of a table with other paths, for a copy, and a list of files to copy.

The table does not change, and nothing is copied here: new files are written to a staging folder,
and a list says where each file belongs. A copy with the same paths below another prefix is then a
table that a catalog can register. Specification, "Table Metadata", "Manifests", "Position Delete
Files"; for root manifests the proposal "Single-file commits".

A later copy may build on an earlier copy, which already has the files that snapshots of the start
version added. The sizes and metrics of their rewritten forms are needed, so these files are
rewritten again, but not kept.
"""

from __future__ import annotations

import csv
import io as text_io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from iceberg_pyspark.arrow.write.position_delete_writer import copy_position_deletes
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.formats.locations import location_provider
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.metadata_files import (
    metadata_json_bytes,
    read_metadata_json,
    read_table_metadata,
)
from iceberg_pyspark.formats.puffin.puffin import with_other_blob_properties
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files, with_common_dead_positions
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile, ManifestPart
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, scheme_of
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.encryption.encrypted_io import encryption_of
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.restricted_io import store_behind
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.copy.manifest_copy import (
    LiveFile,
    MovedDeletes,
    live_files,
    moved_manifest,
    moved_manifest_list,
    moved_root,
    vector_file,
)
from iceberg_pyspark.table.maintenance.copy.path_mapping import MovedPaths, move_metadata
from iceberg_pyspark.table.maintenance.removal.candidate_files import CopyList
from iceberg_pyspark.table.maintenance.removal.orphan_files import STAGING_FOLDER
from iceberg_pyspark.table.progress import with_progress

FILE_LIST = "file-list"
_REFERENCED_DATA_FILE = "referenced-data-file"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenTablePath:
    """The file name of the version to register, and the location of the list of copies.

    `file_list_location` is None if no list was requested. Deletion vectors are counted one by one,
    manifests only if their bytes change: those whose paths are all relative do not. Manifest lists,
    root manifests and deletion vectors of manifests are not counted.
    """

    latest_version: str
    file_list_location: str | None
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int


class TablePathRewrite:
    """One rewrite of the paths of the newest version of one table."""

    def __init__(
        self,
        table: MaintainedTable,
        paths: MovedPaths,
        *,
        start_version: str | None,
        end_version: str | None,
        staging_location: str | None,
        staging_id: str,
        dry_run: bool,
    ) -> None:
        """Find the versions; with `dry_run`, `run` writes nothing.

        Raises `InvalidRequestError` for a version that is not in the table's history.
        """
        newest = table.newest()
        self._io, self._name, self._progress = table.io, table.name, table.progress
        self._dry_run = dry_run
        if encryption_of(table.io) is not None:
            raise UnsupportedFeatureError(
                f"table {table.name}: the paths of an encrypted table cannot be rewritten, because "
                "its manifests would be copied unencrypted; copy the rows into another table"
            )
        self._end, self._start, self._versions = self._history(newest, start_version, end_version)
        self._paths = paths = self._paths_of_version(paths)
        # before any file is staged
        for path in (self._end.location, self._versions[0]):
            paths.move(path)
        self._known_ids = frozenset(
            () if self._start is None else (s.snapshot_id for s in self._start.snapshots)
        )
        if staging_location is None:
            folder = location_provider(
                newest.metadata.location, newest.metadata.properties
            ).new_metadata_location(f"{STAGING_FOLDER}{staging_id}")
            self._staging_io = table.io
        else:
            # a location that the caller chooses may be anywhere
            folder = staging_location.rstrip("/")
            self._staging_io = store_behind(table.io)
        self._staging = folder + "/"
        self._may_have_files = staging_location is not None

    def _paths_of_version(self, paths: MovedPaths) -> MovedPaths:
        if self._end.format_version < RELATIVE_PATHS_VERSION:
            return paths
        start = self._start
        if (
            start is not None
            and start.format_version < RELATIVE_PATHS_VERSION
            and scheme_of(start.location)
            and not scheme_of(paths.target_prefix)
        ):
            raise InvalidRequestError(
                f"table {self._name}: target_prefix {paths.target_prefix} has no scheme, which "
                "paths of version 4 need, so the files that the target already has cannot be used "
                "again; leave start_version out, or copy to a target with a scheme"
            )
        return paths.of_location(self._end.location)

    def run(self, *, create_file_list: bool) -> RewrittenTablePath:
        """Write the files; raises `InvalidRequestError` for a path outside the source prefix."""
        try:
            return self._run(create_file_list=create_file_list)
        except FileAlreadyExistsError as e:
            # A killed run leaves its files, and half a file looks like a whole one in some stores.
            raise FileAlreadyExistsError(
                f"table {self._name}: {e}; the staging location {self._staging} has files of an "
                "earlier run: delete them, or give another staging_location"
            ) from e

    def _run(self, *, create_file_list: bool) -> RewrittenTablePath:
        snapshots = [s for s in self._end.snapshots if s.snapshot_id not in self._known_ids]
        manifests = self._manifests(snapshots)
        leaves = list({m.manifest_path: m for m in manifests if not m.is_root}.values())
        with CopyList() as copies:
            deletes, delete_count = self._write_deletes(manifests, snapshots, copies)
            lengths, manifest_count = self._write_manifests(leaves, deletes, copies)
            sizes = {path: moved.file_size_in_bytes for path, moved in deletes.items()}
            self._write_lists(snapshots, {**sizes, **lengths}, copies)
            self._write_metadata(copies)
            file_list = None
            if create_file_list and not self._dry_run:
                file_list = self._write_file_list(copies)
        return RewrittenTablePath(
            latest_version=_file_name(self._versions[0]),
            file_list_location=file_list,
            rewritten_manifest_file_paths_count=manifest_count,
            rewritten_delete_file_paths_count=delete_count,
        )

    def _manifests(self, snapshots: list[Snapshot]) -> list[ManifestFile]:
        """Return the manifests of the snapshots, each once with all entries that any of them has.

        A file that is removed by the deletion vector of its manifest may be needed by an earlier
        snapshot; if all these snapshots have expired, the file may be gone.
        """
        manifests: dict[ManifestPart, ManifestFile] = {}
        for of_snapshot in threaded_map(
            partial(read_snapshot_manifests, self._io), snapshots, lambda s: s.list_location
        ):
            for m in of_snapshot:
                earlier = manifests.get(m.part, m)
                manifests[m.part] = with_common_dead_positions(m, earlier)
        return list(manifests.values())

    def _is_new(self, manifest: ManifestFile) -> bool:
        return manifest.added_snapshot_id not in self._known_ids

    def _history(
        self, table: LoadedTable, start_version: str | None, end_version: str | None
    ) -> tuple[TableMetadata, TableMetadata | None, list[str]]:
        """Return the end's and start's metadata, and the files after the start, newest first."""
        location, metadata = table.metadata_location, table.metadata
        if end_version is not None and end_version != _file_name(location):
            location = self._version(end_version, "end_version", location, metadata)
            metadata = read_table_metadata(self._io, location)
        logged_files = [e.metadata_file for e in reversed(metadata.metadata_log)]
        if start_version is None:
            return metadata, None, [location, *logged_files]
        if start_version == _file_name(location):
            raise InvalidRequestError(
                f"table {self._name}: {start_version} is the start and the end version, so there "
                "is nothing to copy"
            )
        first = self._version(start_version, "start_version", location, metadata)
        return (
            metadata,
            read_table_metadata(self._io, first),
            [location, *logged_files[: logged_files.index(first)]],
        )

    def _version(self, name: str, argument: str, location: str, metadata: TableMetadata) -> str:
        logged_files = [e.metadata_file for e in metadata.metadata_log]
        matches = [file for file in logged_files if _file_name(file) == name]
        if not matches:
            names = ", ".join(map(_file_name, [*logged_files, location]))
            raise InvalidRequestError(
                f"table {self._name}: {argument} {name} is not among the metadata files up to "
                f"{_file_name(location)}; name one of {names}"
            )
        return matches[-1]

    def _staging_path(self, path: str) -> str:
        return self._staging + self._paths.below(path)

    def _write(self, path: str, data: bytes) -> tuple[str, str]:
        staging_path = self._staging_path(path)
        target = self._paths.move(path)
        if not self._dry_run:
            self._check_is_new(staging_path)
            with self._staging_io.open_output(staging_path) as stream:
                stream.write(data)
        return staging_path, target

    def _check_is_new(self, staging_path: str) -> None:
        """Raise `FileAlreadyExistsError` for a file of an earlier run: names have the UUIDs of the
        table's files, and an object store would replace a file with such a name.
        """
        if self._may_have_files and self._staging_io.exists(staging_path):
            raise FileAlreadyExistsError(f"cannot create {staging_path}: it exists already")

    def _write_deletes(
        self, manifests: list[ManifestFile], snapshots: list[Snapshot], copies: CopyList
    ) -> tuple[Mapping[str, MovedDeletes], int]:
        """Return the rewritten form of each file with paths in it, and the count of new deletes."""
        with_paths: dict[str, LiveFile] = {}
        rewritten_paths: set[tuple[str, int | None]] = set()

        def files_of(manifest: ManifestFile) -> tuple[ManifestFile, list[LiveFile]]:
            return manifest, list(live_files(self._io, manifest, self._known_ids))

        read = threaded_map(files_of, manifests, lambda m: m.manifest_path)
        for manifest, files in with_progress(
            self._progress, "manifests read", read, len(manifests)
        ):
            for file in files:
                if file.kind != "as it is":
                    earlier = with_paths.get(file.path)
                    if earlier is None or (file.is_new and not earlier.is_new):
                        with_paths[file.path] = file
                    if file.is_new:
                        rewritten_paths.add((file.path, file.content_offset))
            if self._is_new(manifest):
                copies.add(
                    (file.path, self._paths.move(file.path))
                    for file in files
                    if file.is_new and file.kind == "as it is"
                )
        for file in (*self._manifest_vectors(snapshots), *self._removed_deletes(manifests)):
            with_paths.setdefault(file.path, file)
        deletes = {}
        results = threaded_map(self._moved_deletes, list(with_paths.values()), lambda f: f.path)
        for file, moved_deletes in with_progress(
            self._progress, "delete files written", results, len(with_paths)
        ):
            deletes[file.path] = moved_deletes
            if file.is_new:
                copies.add([(self._staging_path(file.path), self._paths.move(file.path))])
        return deletes, len(rewritten_paths)

    def _manifest_vectors(self, snapshots: list[Snapshot]) -> Iterator[LiveFile]:
        """Yield the Puffin files with deletion vectors of manifests."""
        known_snapshots = [s for s in self._end.snapshots if s.snapshot_id in self._known_ids]
        known_files = frozenset[str]().union(*(self._vector_files(s) for s in known_snapshots))
        for path in frozenset[str]().union(*(self._vector_files(s) for s in snapshots)):
            yield vector_file(path, is_new=path not in known_files)

    def _vector_files(self, snapshot: Snapshot) -> frozenset[str]:
        if snapshot.root_manifest is None:
            return frozenset()
        return snapshot_files(self._io, snapshot) - {snapshot.root_manifest}

    def _removed_deletes(self, manifests: list[ManifestFile]) -> Iterator[LiveFile]:
        """Yield the delete files that deletion vectors of manifests remove from all snapshots.

        The size of such a file is in its manifest, so the size decides the length of the manifest.
        Another copy must not be affected by an expiry of snapshots, which may remove the file.
        """
        for m in manifests:
            if m.content is ManifestContent.DATA or m.dead_positions is None:
                continue
            all_entries = replace(m, dead_positions=None, dead_count=0)
            for file in live_files(self._io, all_entries, self._known_ids):
                if file.kind == "as it is":
                    continue
                if self._io.exists(file.path):
                    yield replace(file, is_new=False)
                elif not self._is_new(m):
                    raise InvalidRequestError(
                        f"table {self._name}: {file.path}, a removed file of {m.manifest_path}, is "
                        "gone, so the length of that manifest at the target is unknown; leave "
                        "start_version out"
                    )

    def _moved_deletes(self, file: LiveFile) -> tuple[LiveFile, MovedDeletes]:
        """Write a delete file with other paths; a file that is not new is only measured."""
        target_io, target = self._staging_io, self._staging_path(file.path)
        if self._dry_run or not file.is_new:
            target_io, target = MemoryFileIO(), "mem://measured"
        else:
            self._check_is_new(target)
        if file.kind == "vectors":
            data = with_other_blob_properties(self._io, file.path, self._moved_properties)
            with target_io.open_output(target) as stream:
                stream.write(data)
            return file, MovedDeletes(file_size_in_bytes=len(data), metrics={})
        # The table's settings may change, and a repeated rewrite must give the same file.
        delete_file = copy_position_deletes(
            self._io, file.path, target_io, target, file.file_format, self._paths.move, {}
        )
        m = delete_file.metrics
        return file, MovedDeletes(
            file_size_in_bytes=delete_file.file_size_in_bytes,
            metrics={
                "_108": [{"_117": k, "_118": v} for k, v in m["column_sizes"].items()],
                "_109": [{"_119": k, "_120": v} for k, v in m["value_counts"].items()],
                "_110": [{"_121": k, "_122": v} for k, v in m["null_value_counts"].items()],
                "_137": [{"_138": k, "_139": v} for k, v in m["nan_value_counts"].items()],
                "_125": [{"_126": k, "_127": v} for k, v in m["lower_bounds"].items()],
                "_128": [{"_129": k, "_130": v} for k, v in m["upper_bounds"].items()],
                "_132": list(m["split_offsets"]),
            },
        )

    def _moved_properties(self, properties: dict[str, str]) -> dict[str, str]:
        path = properties.get(_REFERENCED_DATA_FILE)
        if path is None:
            return properties
        if self._paths.table_location is not None and not scheme_of(path) and path[:1] != "/":
            # relative; before version 4, paths without a scheme begin with a slash
            return properties
        return {**properties, _REFERENCED_DATA_FILE: self._paths.move(path)}

    def _write_manifests(
        self,
        manifests: list[ManifestFile],
        deletes: Mapping[str, MovedDeletes],
        copies: CopyList,
    ) -> tuple[Mapping[str, int], int]:
        """Write the new manifests.

        Returns the new lengths of all manifests by their old paths, and how many new manifests have
        other bytes than the old ones.
        """

        def write(manifest: ManifestFile) -> tuple[str, int, tuple[str, str] | None, bool]:
            path = manifest.manifest_path
            data = moved_manifest(self._io, path, self._paths, deletes)
            length = self._io.size(path) if data is None else len(data)
            is_new = self._is_new(manifest)
            copy = self._copy(path, data) if is_new else None
            return path, length, copy, is_new and data is not None

        lengths = {}
        count = 0
        results = threaded_map(write, manifests, lambda m: m.manifest_path)
        for path, length, copy, is_rewritten in with_progress(
            self._progress, "manifests written", results, len(manifests)
        ):
            lengths[path] = length
            count += is_rewritten
            if copy is not None:
                copies.add([copy])
        return lengths, count

    def _copy(self, path: str, data: bytes | None) -> tuple[str, str]:
        """Write a file with other paths; the file without data is copied as it is."""
        return (path, self._paths.move(path)) if data is None else self._write(path, data)

    def _write_lists(
        self, snapshots: list[Snapshot], sizes: Mapping[str, int], copies: CopyList
    ) -> None:
        def write(location: str) -> tuple[str, str]:
            data = moved_manifest_list(self._io, location, self._paths, sizes)
            return self._write(location, data)

        def write_root(location: str) -> tuple[str, str]:
            return self._copy(location, moved_root(self._io, location, self._paths, sizes))

        lists = dict.fromkeys(s.manifest_list for s in snapshots if s.manifest_list is not None)
        roots = dict.fromkeys(s.root_manifest for s in snapshots if s.root_manifest is not None)
        copies.add(threaded_map(write, list(lists), str))
        copies.add(threaded_map(write_root, list(roots), str))

    def _write_metadata(self, copies: CopyList) -> None:
        copied_statistics = set() if self._start is None else _statistics(self._start)
        copies.add(
            (path, self._paths.move(path)) for path in _statistics(self._end) - copied_statistics
        )

        def write(location: str) -> tuple[str, str]:
            try:
                content = read_metadata_json(self._io, location)
            except StorageError as e:
                raise InvalidRequestError(
                    f"table {self._name}: its metadata log names {location}, which cannot be read "
                    f"({e}); give a later start_version that has already been copied"
                ) from e
            move_metadata(content, self._paths, location)
            return self._write(location, metadata_json_bytes(content, location))

        results = threaded_map(write, self._versions, str)
        total = len(self._versions)
        copies.add(with_progress(self._progress, "metadata files written", results, total))

    def _write_file_list(self, copies: CopyList) -> str:
        location = self._staging + FILE_LIST
        self._check_is_new(location)
        with (
            self._staging_io.open_output(location) as stream,
            text_io.TextIOWrapper(stream, encoding="utf-8", newline="") as text,
        ):
            csv.writer(text, lineterminator="\n").writerows(copies)
        return location


def _statistics(metadata: TableMetadata) -> set[str]:
    tables = (file.statistics_path for file in metadata.statistics)
    return {*tables, *(file.statistics_path for file in metadata.partition_statistics)}


def _file_name(location: str) -> str:
    return location.rpartition("/")[2]
