"""Writes the metadata of a table with other paths, for a copy, and a list of files to copy.

The table does not change, and nothing is copied here: new files are written to a staging folder,
and a list says where each file belongs. A copy with the same paths below another prefix is then a
table that a catalog can register. Specification, "Table Metadata", "Manifests", "Position Delete
Files".

A later copy may build on an earlier copy, which already has the files that snapshots of the start
version added. The sizes and metrics of their rewritten forms are needed, so these files are
rewritten again, but not kept.
"""

from __future__ import annotations

import csv
import io as text_io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from iceberg_pyspark.arrow.write.position_delete_files import copy_position_deletes
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError, StorageError, UnsupportedFeatureError
from iceberg_pyspark.maintenance.copy_list import CopyList
from iceberg_pyspark.maintenance.moved_manifests import (
    LiveFile,
    MovedDeletes,
    live_files,
    moved_manifest,
    moved_manifest_list,
)
from iceberg_pyspark.maintenance.moved_paths import MovedPaths, move_metadata
from iceberg_pyspark.planning.threaded_map import threaded_map
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.locations import location_provider
from iceberg_pyspark.storage.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.storage.memory import MemoryFileIO
from iceberg_pyspark.storage.metadata_files import (
    metadata_json_bytes,
    read_metadata_json,
    read_table_metadata,
)
from iceberg_pyspark.storage.puffin import with_other_blob_properties
from iceberg_pyspark.storage.restricted import unrestricted

FILE_LIST = "file-list"
_REFERENCED = "referenced-data-file"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenTablePath:
    """The file name of the version to register, and the location of the list of copies.

    `file_list_location` is None if no list was requested. Deletion vectors are counted one by one.
    """

    latest_version: str
    file_list_location: str | None
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int


class TablePathRewrite:
    """One rewrite of the paths of one table, as it was loaded."""

    def __init__(
        self,
        table: LoadedTable,
        io: FileIO,
        paths: MovedPaths,
        *,
        start_version: str | None,
        end_version: str | None,
        staging_location: str | None,
        staging_id: str,
        dry_run: bool = False,
    ) -> None:
        """Find the versions; with `dry_run`, `run` writes nothing.

        Raises `InvalidRequestError` for a version that is not in the table's history.
        """
        if table.metadata.format_version >= RELATIVE_PATHS_VERSION:
            raise UnsupportedFeatureError(
                f"table {table.identifier}: paths of format version "
                f"{table.metadata.format_version} cannot be rewritten; create a table at the "
                "target, and copy the rows"
            )
        self._io = io
        self._dry_run = dry_run
        self._paths = paths
        self._name = table.identifier
        self._end, self._start, self._versions = self._history(table, start_version, end_version)
        # before any file is staged
        for path in (self._end.location, self._versions[0]):
            paths.moved(path)
        self._known_ids = frozenset(
            () if self._start is None else (s.snapshot_id for s in self._start.snapshots)
        )
        if staging_location is None:
            folder = location_provider(
                table.metadata.location, table.metadata.properties
            ).new_metadata_location(f"copy-table-staging-{staging_id}")
            self._staging_io = io
        else:
            # a location that the caller chooses may be anywhere
            folder = staging_location.rstrip("/")
            self._staging_io = unrestricted(io)
        self._staging = folder + "/"

    def run(self, *, create_file_list: bool) -> RewrittenTablePath:
        """Write the files; raises `InvalidRequestError` for a path outside the source prefix."""
        snapshots = [s for s in self._end.snapshots if s.snapshot_id not in self._known_ids]
        manifests = {
            m.manifest_path: m
            for snapshot_manifests in threaded_map(
                partial(read_snapshot_manifests, self._io), snapshots
            )
            for m in snapshot_manifests
        }
        new = [m for m in manifests.values() if m.added_snapshot_id not in self._known_ids]
        with CopyList() as copies:
            deletes, delete_count = self._write_deletes(list(manifests.values()), new, copies)
            lengths = self._write_manifests(list(manifests.values()), deletes, copies)
            self._write_lists(snapshots, lengths, copies)
            self._write_metadata(copies)
            file_list = None
            if create_file_list and not self._dry_run:
                file_list = self._write_file_list(copies)
        return RewrittenTablePath(
            latest_version=_file_name(self._versions[0]),
            file_list_location=file_list,
            rewritten_manifest_file_paths_count=len(new),
            rewritten_delete_file_paths_count=delete_count,
        )

    def _history(
        self, table: LoadedTable, start_version: str | None, end_version: str | None
    ) -> tuple[TableMetadata, TableMetadata | None, list[str]]:
        """Return the end's and start's metadata, and the files after the start, newest first."""
        location, metadata = table.metadata_location, table.metadata
        if end_version is not None and end_version != _file_name(location):
            location = self._version(end_version, "end_version", location, metadata)
            metadata = read_table_metadata(self._io, location)
        logged = [e.metadata_file for e in reversed(metadata.metadata_log)]
        if start_version is None:
            return metadata, None, [location, *logged]
        if start_version == _file_name(location):
            raise InvalidRequestError(
                f"table {self._name}: {start_version} is the start and the end version, so there "
                "is nothing to copy"
            )
        first = self._version(start_version, "start_version", location, metadata)
        return (
            metadata,
            read_table_metadata(self._io, first),
            [location, *logged[: logged.index(first)]],
        )

    def _version(self, name: str, argument: str, location: str, metadata: TableMetadata) -> str:
        logged = [e.metadata_file for e in metadata.metadata_log]
        matches = [file for file in logged if _file_name(file) == name]
        if not matches:
            names = ", ".join(map(_file_name, [*logged, location]))
            raise InvalidRequestError(
                f"table {self._name}: {argument} {name} is not among the metadata files up to "
                f"{_file_name(location)}; name one of {names}"
            )
        return matches[-1]

    def _staged(self, path: str) -> str:
        return self._staging + self._paths.below(path)

    def _write(self, path: str, data: bytes) -> tuple[str, str]:
        staged = self._staged(path)
        target = self._paths.moved(path)
        if not self._dry_run:
            with self._staging_io.open_output(staged) as stream:
                stream.write(data)
        return staged, target

    def _write_deletes(
        self, manifests: list[ManifestFile], new: list[ManifestFile], copies: CopyList
    ) -> tuple[Mapping[str, MovedDeletes], int]:
        """Return the rewritten form of each file with paths in it, and the count of new deletes."""
        with_paths: dict[str, LiveFile] = {}
        rewritten_paths: set[tuple[str, int | None]] = set()
        new_paths = {m.manifest_path for m in new}

        def files_of(manifest: ManifestFile) -> tuple[bool, list[LiveFile]]:
            files = list(live_files(self._io, manifest, self._known_ids))
            return manifest.manifest_path in new_paths, files

        for is_new_manifest, files in threaded_map(files_of, manifests):
            for file in files:
                if file.kind != "as it is":
                    earlier = with_paths.get(file.path)
                    if earlier is None or (file.is_new and not earlier.is_new):
                        with_paths[file.path] = file
                    if file.is_new:
                        rewritten_paths.add((file.path, file.content_offset))
            if is_new_manifest:
                copies.add(
                    (file.path, self._paths.moved(file.path))
                    for file in files
                    if file.is_new and file.kind == "as it is"
                )
        deletes = {}
        for file, moved in threaded_map(self._moved_deletes, list(with_paths.values())):
            deletes[file.path] = moved
            if file.is_new:
                copies.add([(self._staged(file.path), self._paths.moved(file.path))])
        return deletes, len(rewritten_paths)

    def _moved_deletes(self, file: LiveFile) -> tuple[LiveFile, MovedDeletes]:
        """Write a delete file with other paths; a file that is not new is only measured."""
        target_io, target = self._staging_io, self._staged(file.path)
        if self._dry_run or not file.is_new:
            target_io, target = MemoryFileIO(), "mem://measured"
        if file.kind == "vectors":
            data = with_other_blob_properties(self._io, file.path, self._moved_properties)
            with target_io.open_output(target) as stream:
                stream.write(data)
            return file, MovedDeletes(file_size_in_bytes=len(data), metrics={})
        # The table's settings may change, and a repeated rewrite must give the same file.
        closed = copy_position_deletes(
            self._io, file.path, target_io, target, file.file_format, self._paths.moved, {}
        )
        m = closed.metrics
        return file, MovedDeletes(
            file_size_in_bytes=closed.file_size_in_bytes,
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
        if _REFERENCED not in properties:
            return properties
        return {**properties, _REFERENCED: self._paths.moved(properties[_REFERENCED])}

    def _write_manifests(
        self,
        manifests: list[ManifestFile],
        deletes: Mapping[str, MovedDeletes],
        copies: CopyList,
    ) -> Mapping[str, int]:
        """Write the new manifests; return the new lengths of all manifests by their old paths."""

        def write(manifest: ManifestFile) -> tuple[str, int, tuple[str, str] | None]:
            path = manifest.manifest_path
            data = moved_manifest(self._io, path, self._paths, deletes)
            is_new = manifest.added_snapshot_id not in self._known_ids
            return path, len(data), self._write(path, data) if is_new else None

        lengths = {}
        for path, length, copy in threaded_map(write, manifests):
            lengths[path] = length
            if copy is not None:
                copies.add([copy])
        return lengths

    def _write_lists(
        self, snapshots: list[Snapshot], lengths: Mapping[str, int], copies: CopyList
    ) -> None:
        def write(location: str) -> tuple[str, str]:
            data = moved_manifest_list(self._io, location, self._paths, lengths.__getitem__)
            return self._write(location, data)

        lists = dict.fromkeys(s.manifest_list for s in snapshots if s.manifest_list is not None)
        copies.add(threaded_map(write, list(lists)))

    def _write_metadata(self, copies: CopyList) -> None:
        copied_statistics = set() if self._start is None else _statistics(self._start)
        copies.add(
            (path, self._paths.moved(path)) for path in _statistics(self._end) - copied_statistics
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

        copies.add(threaded_map(write, self._versions))

    def _write_file_list(self, copies: CopyList) -> str:
        location = self._staging + FILE_LIST
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
