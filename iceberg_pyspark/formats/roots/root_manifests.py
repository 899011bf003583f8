"""Root manifests, which replace a manifest list: files and manifests of a snapshot in one file.

Proposal "Single-file commits". The files that a root lists directly are returned as manifests, one
for each partition spec and content, so that code that reads manifests also reads these files. A
leaf is returned with the positions of the entries that manifest deletion vectors delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest, open_manifest
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    encode_deletion_vector,
    read_deletion_vector,
)
from iceberg_pyspark.formats.roots.content_entry_reader import ContentEntries, Mask, profile_of
from iceberg_pyspark.spec.content_entries import (
    LIVE_STATUSES,
    MANIFEST_COUNTS,
    MANIFEST_TYPES,
    SINGLE_FILE_COMMITS,
    ContentStatus,
    ContentType,
    ManifestVectorEntry,
    Role,
)
from iceberg_pyspark.spec.manifests import (
    ColumnSummary,
    EntryStatus,
    ManifestContent,
    ManifestFile,
    with_counts,
)
from iceberg_pyspark.spec.relative_paths import may_hold_relative_paths, resolved_path
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.storage.files.file_io import FileIO

_BEFORE_VERSION_4 = 0
"""The `format_version` of a leaf whose entries have the form from before version 4."""

_LEAF: tuple[Role, ...] = (
    *("content_type", "location", "file_size_in_bytes", "sequence_number", "min_sequence_number"),
    *("snapshot_id", "key_metadata", "first_row_id", "manifest_vector"),
    *("format_version", "referenced_file"),
    *MANIFEST_COUNTS,
)
_VERSION: tuple[Role, ...] = ("status", "snapshot_id", "sequence_number")
_VECTOR: tuple[Role, ...] = (
    *("referenced_file", "location", "vector_offset", "vector_size_in_bytes"),
    *("inline_vector", "record_count"),
)


def read_root_manifest(io: FileIO, location: str, snapshot: Snapshot) -> list[ManifestFile]:
    """Return the manifests of a root manifest: first its own files, then its leaves.

    Raises `InvalidMetadataError` for a file that is not a root manifest or breaks the rules of
    entries.
    """
    manifest_file = open_manifest(io, location)
    raw = manifest_file.raw_entries()
    profile = profile_of(raw)
    if profile is None:
        raise manifest_file.damage_error(
            "it is referenced as a root manifest, but has other columns"
        )
    entries = ContentEntries(raw, profile, location, manifest_file.damage_error)
    return list(_Root(io, manifest_file, entries, snapshot).manifests())


def read_base_root(io: FileIO, snapshot: Snapshot) -> RootVectors:
    """Return what a commit must know about a root manifest besides its files and leaves.

    Raises `UnsupportedFeatureError` if the entries have another profile than this package writes.
    """
    location = str(snapshot.root_manifest)
    return _VECTORS.get_or_read(
        io,
        (location, snapshot.table_location, snapshot.snapshot_id),
        lambda: _read_base_root(io, location, snapshot),
    )


def _read_base_root(io: FileIO, location: str, snapshot: Snapshot) -> RootVectors:
    manifest_file = open_manifest(io, location)
    raw = manifest_file.raw_entries()
    profile = profile_of(raw)
    if profile is not SINGLE_FILE_COMMITS:
        raise UnsupportedFeatureError(
            f"{location}: a root manifest of entries as Java's class TrackedFile has them can be "
            "read but not written; change the table with the engine that wrote it"
        )
    entries = ContentEntries(raw, profile, location, manifest_file.damage_error)
    return _Root(io, manifest_file, entries, snapshot).vectors()


def snapshot_files(io: FileIO, snapshot: Snapshot) -> frozenset[str]:
    """Return the files besides manifests that are needed to list a snapshot's files.

    They are the manifest list, or the root manifest and the Puffin files of its manifest deletion
    vectors.
    """
    if snapshot.root_manifest is None:
        return frozenset(() if snapshot.manifest_list is None else (snapshot.manifest_list,))
    manifest_file = open_manifest(io, snapshot.root_manifest)
    raw = manifest_file.raw_entries()
    if profile_of(raw) is not SINGLE_FILE_COMMITS:
        # in the other profile, manifest deletion vectors are never in separate files
        return frozenset((snapshot.root_manifest,))
    return read_base_root(io, snapshot).files | {snapshot.root_manifest}


def with_common_dead_positions(one: ManifestFile, other: ManifestFile) -> ManifestFile:
    """Return a manifest of two snapshots with the entries that are in either of the snapshots."""
    if one.dead_positions is None or one.dead_positions == other.dead_positions:
        return one
    if other.dead_positions is None:
        return replace(one, dead_positions=None, dead_count=0)
    where = one.manifest_path
    dead = decode_deletion_vector(one.dead_positions, where)
    dead &= decode_deletion_vector(other.dead_positions, where)
    return with_dead_positions(one, dead)


def with_dead_positions(manifest: ManifestFile, dead: BitMap64) -> ManifestFile:
    """Return the manifest with the positions of the entries that are not in the snapshot."""
    positions = encode_deletion_vector(dead) if dead else None
    return replace(manifest, dead_positions=positions, dead_count=len(dead))


@dataclass(frozen=True, slots=True, kw_only=True)
class RootVectors:
    """The manifest deletion vectors of a root, by manifest location, and related data.

    `live` has the live vectors. `changed_vectors` has the positions that the root's own snapshot
    deletes, `files` the Puffin files of all vectors, including DELETED ones, and `targets` the data
    manifest to which each delete manifest belongs. `length` is the size of the root in bytes.
    """

    live: Mapping[str, tuple[ManifestVectorEntry, ...]]
    changed_vectors: Mapping[str, bytes]
    files: frozenset[str]
    targets: Mapping[str, str]
    length: int


_CACHE_BYTES = 8 * 1024 * 1024
_VECTORS: DecodedCache[RootVectors] = DecodedCache(
    _CACHE_BYTES, lambda vectors: 4096 + 1024 * (len(vectors.live) + len(vectors.targets))
)


class _Root:
    """The conversion of one root manifest to manifests."""

    def __init__(
        self,
        io: FileIO,
        manifest_file: EncodedManifest,
        entries: ContentEntries,
        snapshot: Snapshot,
    ) -> None:
        self._io = io
        self._location = manifest_file.location
        self._length = manifest_file.size
        self._damage_error = manifest_file.damage_error
        self._entries = entries
        self._snapshot = snapshot
        self._resolves = may_hold_relative_paths(manifest_file.metadata.get("format-version"))

    def manifests(self) -> Iterator[ManifestFile]:
        """Yield the result of `read_root_manifest`."""
        entries = self._entries
        spec_ids = np.asarray(entries.spec_ids)
        for content in ManifestContent:
            files = entries.files(content)
            if content is ManifestContent.DELETES and entries.has_vectors_in_data_files:
                files = files | entries.files(ManifestContent.DATA)
            for spec_id in np.unique(spec_ids[files]).tolist():
                yield self._own_files(content, spec_id, files & (spec_ids == spec_id))
        dead = self._dead_positions()
        is_leaf = entries.is_live & entries.of_types(*MANIFEST_TYPES)
        columns = entries.columns_of(is_leaf)
        for row, summaries in zip(self._rows(is_leaf, _LEAF, spec_ids), columns, strict=True):
            yield from self._leaf(row, dead, summaries)
        if dead:
            raise self._damage_error(
                f"a manifest deletion vector is of {min(dead)}, which it has no live entry of"
            )

    def vectors(self) -> RootVectors:
        """Return the result of `read_base_root`."""
        snapshot_id = self._snapshot.snapshot_id
        live: dict[str, tuple[ManifestVectorEntry, ...]] = {}
        added_positions: dict[str, BitMap64] = {}
        before: dict[str, BitMap64] = {}
        files = set[str]()
        is_vector = self._entries.of_types(ContentType.MANIFEST_DELETION_VECTOR)
        for row in self._rows(is_vector, (*_VECTOR, *_VERSION), np.asarray(self._entries.spec_ids)):
            entry = self._vector_entry(row)
            if entry.location is not None:
                # DELETED vectors are included: the changes of a snapshot follow from vectors of
                # both statuses
                files.add(entry.location)
            if entry.status in LIVE_STATUSES:
                live[entry.leaf] = (*live.get(entry.leaf, ()), entry)
            if entry.snapshot_id == snapshot_id and entry.status != ContentStatus.EXISTING:
                side = before if entry.status is ContentStatus.DELETED else added_positions
                side[entry.leaf] = side.get(entry.leaf, BitMap64()) | self._vector(row, entry.leaf)
        is_delete_manifest = self._entries.is_live & self._entries.of_types(
            ContentType.DELETE_MANIFEST
        )
        targets = {
            self._resolve_path(row["location"], "a manifest without location"): self._resolve_path(
                row["referenced_file"], "a manifest that is for none"
            )
            for row in self._rows(is_delete_manifest, ("location", "referenced_file"))
            if row["referenced_file"] is not None
        }
        changed_vectors = {
            leaf: bits - before.get(leaf, BitMap64()) for leaf, bits in added_positions.items()
        }
        return RootVectors(
            live=live,
            changed_vectors={
                leaf: encode_deletion_vector(bits) for leaf, bits in changed_vectors.items() if bits
            },
            files=frozenset(files),
            targets=targets,
            length=self._length,
        )

    def _vector_entry(self, row: dict[str, Any]) -> ManifestVectorEntry:
        leaf = self._resolve_path(
            row["referenced_file"], "a manifest deletion vector without referenced_file"
        )
        return ManifestVectorEntry(
            status=ContentStatus(row["status"]),
            snapshot_id=row["snapshot_id"] or 0,
            sequence_number=row["sequence_number"] or 0,
            spec_id=row["spec_id"],
            leaf=leaf,
            cardinality=row["record_count"],
            inline=row["inline_vector"],
            location=None
            if row["location"] is None
            else self._resolve_path(row["location"], "a vector without location"),
            offset=row["vector_offset"],
            size_in_bytes=row["vector_size_in_bytes"],
        )

    def _own_files(self, content: ManifestContent, spec_id: int, files: Mask) -> ManifestFile:
        status = np.asarray(self._entries["status"])[files]
        rows = np.asarray(self._entries["record_count"])[files]
        manifest = ManifestFile(
            manifest_path=self._location,
            manifest_length=self._length,
            partition_spec_id=spec_id,
            content=content,
            sequence_number=self._snapshot.sequence_number,
            added_snapshot_id=self._snapshot.snapshot_id,
            table_location=self._snapshot.table_location,
            is_root=True,
        )
        if self._entries.has_vectors_in_data_files:
            # the statuses differ there, and a data file's entry may also stand for its vector
            return manifest
        return with_counts(
            manifest,
            {s: int((status == s).sum()) for s in EntryStatus},
            {s: int(rows[status == s].sum()) for s in EntryStatus},
        )

    def _leaf(
        self, row: dict[str, Any], dead: dict[str, BitMap64], columns: tuple[ColumnSummary, ...]
    ) -> Iterator[ManifestFile]:
        location = self._resolve_path(row["location"], "a manifest without location")
        positions = dead.pop(location, BitMap64())
        if row["manifest_vector"] is not None:
            positions |= decode_deletion_vector(row["manifest_vector"], self._location)
        is_data = row["content_type"] == ContentType.DATA_MANIFEST
        leaf = ManifestFile(
            manifest_path=location,
            manifest_length=row["file_size_in_bytes"] or 0,
            partition_spec_id=row["spec_id"],
            content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
            sequence_number=row["sequence_number"] or 0,
            min_sequence_number=row["min_sequence_number"] or 0,
            added_snapshot_id=row["snapshot_id"],
            **{role: row[role] for role in MANIFEST_COUNTS},
            key_metadata=row["key_metadata"],
            first_row_id=row["first_row_id"] if is_data else None,
            table_location=self._snapshot.table_location,
            columns=columns,
            data_manifest=None
            if is_data or row["referenced_file"] is None
            else self._resolve_path(row["referenced_file"], "a manifest that is for none"),
        )
        leaf = with_dead_positions(leaf, positions)
        yield leaf
        has_content_entries = row["format_version"] != _BEFORE_VERSION_4
        if is_data and has_content_entries and self._entries.has_vectors_in_data_files:
            # the vectors in its data file entries are read like delete entries
            no_counts: dict[str, Any] = dict.fromkeys(MANIFEST_COUNTS)
            yield replace(
                leaf, content=ManifestContent.DELETES, first_row_id=None, columns=(), **no_counts
            )

    def _dead_positions(self) -> dict[str, BitMap64]:
        """Return, by manifest, the entry positions that live manifest deletion vectors delete."""
        is_vector = self._entries.is_live & self._entries.of_types(
            ContentType.MANIFEST_DELETION_VECTOR
        )
        dead: dict[str, BitMap64] = {}
        for row in self._rows(is_vector, _VECTOR):
            leaf = self._resolve_path(
                row["referenced_file"], "a manifest deletion vector without referenced_file"
            )
            dead[leaf] = dead.get(leaf, BitMap64()) | self._vector(row, leaf)
        return dead

    def _vector(self, row: dict[str, Any], leaf: str) -> BitMap64:
        where = f"{self._location}: the manifest deletion vector of {leaf}"
        if row["inline_vector"] is not None:
            if row["location"] is not None:
                raise self._damage_error(f"the vector of {leaf} is inline and in a file")
            bitmap = decode_deletion_vector(row["inline_vector"], where)
            if len(bitmap) != row["record_count"]:
                raise self._damage_error(
                    f"the vector of {leaf} has {len(bitmap)} positions, its entry says "
                    f"{row['record_count']}"
                )
            return bitmap
        if row["vector_offset"] is None or row["vector_size_in_bytes"] is None:
            raise self._damage_error(f"the vector of {leaf} is neither inline nor in a file")
        return read_deletion_vector(
            self._io,
            self._resolve_path(row["location"], f"the vector of {leaf} without location"),
            row["vector_offset"],
            row["vector_size_in_bytes"],
            row["record_count"],
            where,
        )

    def _rows(
        self, selection: Mask, roles: Sequence[Role], spec_ids: Any = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the selected entries as dicts by role."""
        rows = pa.array(np.flatnonzero(selection))
        columns: dict[str, list[Any]] = {
            role: self._entries[role].take(rows).to_pylist() for role in roles
        }
        if spec_ids is not None:
            columns["spec_id"] = spec_ids[selection].tolist()
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))

    def _resolve_path(self, path: str | None, problem: str) -> str:
        if path is None:
            raise self._damage_error(problem)
        base = self._snapshot.table_location
        return path if base is None or not self._resolves else resolved_path(path, base)
