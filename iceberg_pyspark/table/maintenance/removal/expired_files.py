"""Finds the files that only expired snapshots reference.

A file is expired if an expired snapshot reaches it and no remaining snapshot does. Manifests are
compared first: a manifest that a remaining snapshot also lists need not be opened. Data and delete
files of the other manifests are candidates; candidates that are live in a remaining manifest are
then removed. A deleted entry needs no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_other_manifests
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files, with_common_dead_positions
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile, ManifestPart
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.maintenance.removal.candidate_files import CandidateFiles
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress

_log = get_logger(__name__)


class FileKind(IntEnum):
    """The kind of an expired file, in the order of deletion: referenced files come first."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    MANIFEST = 3
    MANIFEST_LIST = 4
    STATISTICS = 5


_CONTENT = (FileKind.DATA, FileKind.POSITION_DELETES, FileKind.EQUALITY_DELETES)
"""The kinds of files in manifests, indexed by the specification's content number."""


def add_expired_files(
    candidates: CandidateFiles,
    io: FileIO,
    before: TableMetadata,
    after: TableMetadata,
    progress: Progress = no_progress,
) -> None:
    """Add the files that snapshots of `before` need and no snapshot of `after` needs.

    Raises an `IcebergError` if the needs of remaining snapshots cannot be read. Files that only an
    unreadable file of an expired snapshot references are left for the removal of orphan files.
    """
    expired_snapshots = [s for s in before.snapshots if s.snapshot_id not in after.snapshot_by_id]
    if expired_snapshots:
        manifests = _manifests_of(io, expired_snapshots, strict=False)
        # manifests are kept without partition summaries: a list may have as many manifests as files
        staying = _manifests_of(io, list(after.snapshots), strict=True)
        expired_manifests = [m for part, m in manifests.items() if not _stays(m, staying.get(part))]
        for content, paths in _content_of(io, expired_manifests, progress):
            candidates.add(paths, _CONTENT[content])
        kinds = candidates.counts()
        contents = set()
        if kinds[FileKind.DATA]:
            contents.add(ManifestContent.DATA)
        if kinds[FileKind.POSITION_DELETES] or kinds[FileKind.EQUALITY_DELETES]:
            contents.add(ManifestContent.DELETES)
        for files in threaded_map(
            partial(_read_files, io, False), expired_snapshots, lambda s: s.list_location
        ):
            candidates.add(files, FileKind.MANIFEST_LIST)
        candidates.add((m.manifest_path for m in expired_manifests), FileKind.MANIFEST)
        candidates.need(m.manifest_path for m in staying.values())
        for files in threaded_map(
            partial(_read_files, io, True), list(after.snapshots), lambda s: s.list_location
        ):
            candidates.need(files)
        shared_manifests = [m for m in staying.values() if m.content in contents]
        live = live_paths(io, shared_manifests)
        for paths in with_progress(progress, "manifests that stay", live, len(shared_manifests)):
            candidates.need(paths)
    candidates.add(statistics_paths(before), FileKind.STATISTICS)
    candidates.need(statistics_paths(after))


def statistics_paths(metadata: TableMetadata) -> Iterator[str]:
    """Yield the locations of the statistics files, of tables and of partitions."""
    yield from (s.statistics_path for s in metadata.statistics)
    yield from (s.statistics_path for s in metadata.partition_statistics)


def live_paths(io: FileIO, manifests: Sequence[ManifestFile]) -> Iterator[list[str]]:
    """Yield the live files of the manifests, one manifest at a time."""
    for entries in threaded_map(partial(_live_entries, io), manifests, lambda m: m.manifest_path):
        yield entries["file_path"].to_pylist()


def files_of_snapshots(io: FileIO, snapshots: Sequence[Snapshot]) -> Iterator[frozenset[str]]:
    """Yield the manifest list, or the root manifest with its files, of one snapshot at a time."""
    yield from threaded_map(partial(_read_files, io, True), snapshots, lambda s: s.list_location)


def manifests_of(io: FileIO, snapshots: Iterable[Snapshot]) -> dict[ManifestPart, ManifestFile]:
    """Return the manifests of snapshots by identity, without the summaries of their partitions.

    A manifest of several snapshots has the entries that are in any of them.
    """
    return _manifests_of(io, list(snapshots), strict=True)


def _manifests_of(
    io: FileIO, snapshots: Sequence[Snapshot], *, strict: bool
) -> dict[ManifestPart, ManifestFile]:
    manifest_by_part: dict[ManifestPart, ManifestFile] = {}
    # the threads read this dict while it grows
    for manifests in threaded_map(
        partial(_read_list, io, strict, manifest_by_part), snapshots, lambda s: s.list_location
    ):
        for manifest in manifests:
            other = manifest_by_part.get(manifest.part)
            if other is None:
                manifest_by_part[manifest.part] = replace(manifest, partitions=None)
            elif other.dead_positions is not None:
                manifest_by_part[manifest.part] = with_common_dead_positions(other, manifest)
    return manifest_by_part


def _stays(expired_manifest: ManifestFile, staying: ManifestFile | None) -> bool:
    """Return whether all entries that an expired snapshot has of a manifest remain."""
    return staying is not None and staying.dead_positions in (None, expired_manifest.dead_positions)


def _read_files(io: FileIO, strict: bool, snapshot: Snapshot) -> frozenset[str]:
    try:
        return snapshot_files(io, snapshot)
    except IcebergError:
        if strict:
            raise
        # the list is missing or damaged, and a warning is logged where its manifests are read
        manifest_locations = (snapshot.root_manifest, snapshot.manifest_list)
        return frozenset(n for n in manifest_locations if n is not None)


def _read_list(
    io: FileIO,
    strict: bool,
    known_manifests: Mapping[ManifestPart, ManifestFile],
    snapshot: Snapshot,
) -> list[ManifestFile]:
    try:
        return read_other_manifests(io, snapshot, known_manifests)
    except IcebergError as e:
        if strict:
            raise
        _log.warning(
            "the files that only snapshot %d needs are unknown: %s", snapshot.snapshot_id, e
        )
        return []


def _content_of(
    io: FileIO, manifests: Sequence[ManifestFile], progress: Progress
) -> Iterator[tuple[int, list[str]]]:
    read = threaded_map(
        partial(_live_entries_if_readable, io), manifests, lambda m: m.manifest_path
    )
    for entries in with_progress(progress, "manifests that expire", read, len(manifests)):
        if entries is None:
            continue
        for content in pc.unique(entries["content"]).to_pylist():
            rows = entries.filter(pc.equal(entries["content"], content))
            yield content, rows["file_path"].to_pylist()


def _live_entries_if_readable(io: FileIO, manifest: ManifestFile) -> pa.Table | None:
    try:
        return _live_entries(io, manifest)
    except IcebergError as e:
        _log.warning(
            "the files that only manifest %s lists are unknown: %s", manifest.manifest_path, e
        )
        return None


def _live_entries(io: FileIO, manifest: ManifestFile) -> pa.Table:
    entries = read_entries(io, manifest, StructType(()))
    return entries.select(["content", "file_path"])
