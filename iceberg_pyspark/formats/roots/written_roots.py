"""Caches root manifests that this process has written, for its next commit.

Every commit writes a new root, so without the cache a process that commits often would read each
root that it has just written. Scans read the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap64

from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.puffin.deletion_vectors import decode_deletion_vector
from iceberg_pyspark.formats.roots.root_manifests import with_dead_positions
from iceberg_pyspark.spec.content_entries import (
    LIVE_STATUSES,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import (
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    with_counts,
)
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.files.file_io import FileIO

_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 2048
_METRIC_BYTES = 400


@dataclass(frozen=True, kw_only=True)
class WrittenRoot:
    """The entries of a root manifest, and its length in bytes."""

    entries: Sequence[RootEntry]
    length: int

    def files(self, content: ManifestContent, spec_id: int) -> list[ManifestEntry]:
        """Return the root's own file entries of one content and partition spec, in order."""
        return [
            e
            for e in self.entries
            if isinstance(e, ManifestEntry) and _kind(e) == (content, spec_id)
        ]

    def vectors(self) -> dict[str, tuple[ManifestVectorEntry, ...]]:
        """Return the live manifest deletion vectors, by the manifest's location."""
        vectors: dict[str, tuple[ManifestVectorEntry, ...]] = {}
        for e in self.entries:
            if isinstance(e, ManifestVectorEntry) and e.status in LIVE_STATUSES:
                vectors[e.leaf] = (*vectors.get(e.leaf, ()), e)
        return vectors

    def targets(self) -> dict[str, str]:
        """Return the data manifest of each delete manifest that belongs to one, by location."""
        return {
            e.manifest.manifest_path: e.referenced_file
            for e in self.entries
            if isinstance(e, LeafEntry)
            and e.status in LIVE_STATUSES
            and e.referenced_file is not None
        }

    def manifests(self, location: str, snapshot: Snapshot) -> list[ManifestFile] | None:
        """Return the result of `read_root_manifest`, or None if it needs a vector from a file."""
        vectors = self.vectors()
        if any(v.inline is None for of_leaf in vectors.values() for v in of_leaf):
            return None
        files: dict[tuple[ManifestContent, int], list[ManifestEntry]] = {}
        for e in self.entries:
            if isinstance(e, ManifestEntry):
                files.setdefault(_kind(e), []).append(e)
        own = [
            self._own_files(location, snapshot, content, spec_id, of_kind)
            for (content, spec_id), of_kind in sorted(files.items(), key=lambda item: item[0])
        ]
        leaves = [
            _with_vectors(e.manifest, vectors.get(e.manifest.manifest_path, ()))
            for e in self.entries
            if isinstance(e, LeafEntry) and e.status in LIVE_STATUSES
        ]
        return own + leaves

    def _own_files(
        self,
        location: str,
        snapshot: Snapshot,
        content: ManifestContent,
        spec_id: int,
        entries: Sequence[ManifestEntry],
    ) -> ManifestFile:
        files = dict.fromkeys(EntryStatus, 0)
        rows = dict.fromkeys(EntryStatus, 0)
        for e in entries:
            files[e.status] += 1
            rows[e.status] += e.data_file.record_count
        manifest = ManifestFile(
            manifest_path=location,
            manifest_length=self.length,
            partition_spec_id=spec_id,
            content=content,
            sequence_number=snapshot.sequence_number,
            added_snapshot_id=snapshot.snapshot_id,
            table_location=snapshot.table_location,
            is_root=True,
        )
        return with_counts(manifest, files, rows)


def remember_root(io: FileIO, location: str, root: WrittenRoot) -> None:
    """Cache the entries of a root that was written at a location, if they fit."""
    _WRITTEN_ROOTS.put(io, location, root)


def written_root(io: FileIO, location: str) -> WrittenRoot | None:
    """Return the root that this process wrote at a location, or None if it is not cached."""
    return _WRITTEN_ROOTS.get(io, location)


def _kind(e: ManifestEntry) -> tuple[ManifestContent, int]:
    is_data = e.data_file.content is FileContent.DATA
    return (ManifestContent.DATA if is_data else ManifestContent.DELETES), e.data_file.spec_id


def _with_vectors(leaf: ManifestFile, vectors: Sequence[ManifestVectorEntry]) -> ManifestFile:
    if len(vectors) > 1:
        return with_dead_positions(leaf, _union(vectors))
    for one in vectors:
        return replace(leaf, dead_positions=one.inline, dead_count=one.cardinality)
    if leaf.dead_positions is None:
        return leaf
    return replace(leaf, dead_positions=None, dead_count=0)


def _union(vectors: Sequence[ManifestVectorEntry]) -> BitMap64:
    first, *others = (decode_deletion_vector(v.inline or b"", v.leaf) for v in vectors)
    for other in others:
        first |= other
    return first


def _memory_of(root: WrittenRoot) -> int:
    """Return the approximate memory of a root in bytes."""
    size = 0
    for e in root.entries:
        size += _ENTRY_BYTES
        if isinstance(e, ManifestEntry):
            size += _METRIC_BYTES * len(e.data_file.value_counts or ())
        elif isinstance(e, ManifestVectorEntry):
            size += len(e.inline or b"")
    return size


_WRITTEN_ROOTS: DecodedCache[WrittenRoot] = DecodedCache(_CACHE_BYTES, _memory_of)
