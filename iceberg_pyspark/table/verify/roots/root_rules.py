"""Checks the rules of one root manifest and its leaves, without earlier snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest, open_manifest
from iceberg_pyspark.formats.puffin.deletion_vectors import (
    decode_deletion_vector,
    read_deletion_vector,
)
from iceberg_pyspark.spec.content_entries import ContentStatus, ContentType
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.verify.findings import Problem, Report
from iceberg_pyspark.table.verify.metadata_rules import entries_of_manifest, manifest_problems
from iceberg_pyspark.table.verify.roots.bound_checks import (
    bounds_by_column,
    incomplete_bounds,
    leaf_bound_problems,
)
from iceberg_pyspark.table.verify.roots.entry_rules import (
    Place,
    StoredEntries,
    StoredEntry,
    entry_problems,
    problems_in_snapshot,
    stored_entries,
)

_WORDS: Mapping[Place, tuple[str, ...]] = {
    "root": ("root", "root-manifest"),
    "data": ("data",),
    "delete": ("delete", "deletes"),
}


@dataclass(frozen=True, kw_only=True)
class Root:
    """A root manifest as it is stored.

    `vectors` are the readable positions of its manifest deletion vectors, by the entry's position
    in the root.
    """

    snapshot: Snapshot
    location: str
    is_own: bool
    entries: tuple[StoredEntry, ...]
    vectors: Mapping[int, BitMap64] = field(default_factory=dict)

    def of_types(self, *types: ContentType) -> Iterator[StoredEntry]:
        """Return the entries of these content types."""
        return (e for e in self.entries if e.type in types)

    def live_vectors(self) -> dict[str, StoredEntry]:
        """Return the live deletion vector of each manifest that has one, by manifest location."""
        entries = self.of_types(ContentType.MANIFEST_DELETION_VECTOR)
        return {e["referenced_file"]: e for e in entries if e.is_live}

    def live_manifests(self) -> dict[str, StoredEntry]:
        """Return the live manifests by location."""
        return {e["location"]: e for e in self.entries if e.is_live and e.is_manifest}


@dataclass
class RootRules:
    """Checks of roots; a leaf is read again only if an entry says something else about it."""

    io: FileIO
    metadata: TableMetadata
    report: Report
    checked_leaves: set[object] = field(default_factory=set)

    def root(self, snapshot: Snapshot) -> Root | None:
        """Check and return the root of a snapshot; return None if it cannot be read."""
        location = str(snapshot.root_manifest)
        here = snapshot.snapshot_id
        root = None
        with self.report.reading(here, location):
            manifest_file = open_manifest(self.io, location)
            entries_as_stored = stored_entries(manifest_file, snapshot.table_location)
            if entries_as_stored is None:
                raise manifest_file.damage_error(
                    "it is referenced as a root manifest, but has other columns"
                )
            self.report.add_problems(_content_problems(entries_as_stored, "root"), here, location)
            entries = tuple(entries_as_stored)
            for e in entries:
                self._problems(
                    entry_problems(e, "root", is_own=entries_as_stored.is_own), here, location, e
                )
                problems = problems_in_snapshot(e, snapshot, is_own=entries_as_stored.is_own)
                self._problems(problems, here, location, e)
            root = Root(
                snapshot=snapshot,
                location=location,
                is_own=entries_as_stored.is_own,
                entries=entries,
                vectors=self._vectors(entries, location, here),
            )
            self._vector_rules(root)
            self._leaves(root)
            self._tight_bounds(root, manifest_file)
        return root

    def entries_of(self, snapshot: Snapshot) -> Root | None:
        """Return the root of a snapshot without checks, or None if it has other columns."""
        location = str(snapshot.root_manifest)
        entries_as_stored = stored_entries(
            open_manifest(self.io, location), snapshot.table_location
        )
        if entries_as_stored is None:
            return None
        entries = tuple(entries_as_stored)
        return Root(
            snapshot=snapshot,
            location=location,
            is_own=entries_as_stored.is_own,
            entries=entries,
            vectors=self._vectors(entries, location, snapshot.snapshot_id),
        )

    def _problems(
        self, problems: Iterator[Problem], snapshot_id: int, location: str, entry: StoredEntry
    ) -> None:
        self.report.add_problems(problems, snapshot_id, location, entry.ordinal)

    # --- vectors of manifests ---

    def _vectors(
        self, entries: tuple[StoredEntry, ...], location: str, snapshot_id: int
    ) -> dict[int, BitMap64]:
        vectors = {}
        for e in entries:
            with self.report.reading(snapshot_id, e["location"] or location):
                positions = self._positions(e, location)
                if positions is not None:
                    vectors[e.ordinal] = positions
        return vectors

    def _positions(self, entry: StoredEntry, location: str) -> BitMap64 | None:
        where = f"{location}, entry {entry.ordinal}"
        if entry["manifest_vector"] is not None:
            return decode_deletion_vector(entry["manifest_vector"], where)
        if entry.type is not ContentType.MANIFEST_DELETION_VECTOR:
            return None
        if entry["inline_vector"] is not None:
            return decode_deletion_vector(entry["inline_vector"], where)
        offset, size = entry["vector_offset"], entry["vector_size_in_bytes"]
        if offset is None or size is None or entry["location"] is None:
            # the rules of entries report this
            return None
        return read_deletion_vector(self.io, entry["location"], offset, size, None, where)

    def _vector_rules(self, root: Root) -> None:
        here = root.snapshot.snapshot_id
        manifests = root.live_manifests()
        leaves: set[str] = set()
        for e in root.of_types(ContentType.MANIFEST_DELETION_VECTOR):
            positions, leaf = root.vectors.get(e.ordinal), e["referenced_file"]
            if positions is not None and len(positions) != e["record_count"]:
                self.report.add(
                    "record-count",
                    here,
                    root.location,
                    f"the vector has {len(positions)} positions, record_count is "
                    f"{e['record_count']}",
                    e.ordinal,
                )
            if not e.is_live or leaf is None:
                continue
            if leaf in leaves:
                self.report.add(
                    "one-live-manifest-vector",
                    here,
                    root.location,
                    f"{leaf} has another live vector",
                    e.ordinal,
                )
            leaves.add(leaf)
            if leaf not in manifests:
                self.report.add(
                    "vector-of-live-manifest",
                    here,
                    root.location,
                    f"{leaf} is not a live manifest of the root",
                    e.ordinal,
                )
            else:
                self._vector_of(e, manifests[leaf], positions, root)
        for e in manifests.values():
            if e["manifest_vector"] is not None:
                self._vector_of(e, e, root.vectors.get(e.ordinal), root)

    def _vector_of(
        self, vector: StoredEntry, leaf: StoredEntry, positions: BitMap64 | None, root: Root
    ) -> None:
        here = root.snapshot.snapshot_id
        if vector["spec_id"] != leaf["spec_id"]:
            self.report.add(
                "partition-spec-id",
                here,
                root.location,
                f"the vector is of spec {vector['spec_id']}, its manifest of {leaf['spec_id']}",
                vector.ordinal,
            )
        if positions and positions.max() >= leaf["record_count"]:
            self.report.add(
                "vector-positions",
                here,
                root.location,
                f"position {positions.max()} is beyond the {leaf['record_count']} entries of "
                f"{leaf['location']}",
                vector.ordinal,
            )

    # --- leaves ---

    def _leaves(self, root: Root) -> None:
        locations: set[str] = set()
        here = root.snapshot.snapshot_id
        for e in root.entries:
            if not e.is_manifest or e["location"] is None:
                continue
            if e.is_live and e["location"] in locations:
                self.report.add(
                    "one-entry-per-file",
                    here,
                    root.location,
                    f"the manifest {e['location']} is live more than once",
                    e.ordinal,
                )
            locations.add(e["location"])
            # a carried-over entry has the same values apart from its status
            values = tuple(v for role, v in e.values.items() if role != "status")
            is_new = e.is_live and e["snapshot_id"] == here
            key = (*map(repr, values), is_new and e["status"])
            if key not in self.checked_leaves:
                self.checked_leaves.add(key)
                with self.report.reading(here, e["location"]):
                    self._leaf(e, root)
            if e.is_live and e["referenced_file"] is not None:
                with self.report.reading(here, e["location"]):
                    self._affinity(e, root)

    def _tight_bounds(self, root: Root, manifest_file: EncodedManifest) -> None:
        here = root.snapshot.snapshot_id
        self._incomplete_bounds(manifest_file, here, root.location)
        with_vector = root.live_vectors().keys() | {
            e["location"] for e in root.entries if e["manifest_vector"] is not None
        }
        columns = bounds_by_column(manifest_file)
        for e in root.entries:
            bounds = {i: entries[e.ordinal] for i, entries in columns.items()}
            tight = {i: b for i, b in bounds.items() if b.is_tight}
            if not e.is_live or not e.is_manifest or not tight or e["location"] is None:
                continue
            if e["location"] in with_vector:
                self.report.add(
                    "tight-bounds",
                    here,
                    root.location,
                    f"tight_bounds of column {min(tight)}, and a deletion vector of the manifest "
                    f"{e['location']} applies",
                    e.ordinal,
                )
                continue
            with self.report.reading(here, e["location"]):
                for problem in leaf_bound_problems(tight, open_manifest(self.io, e["location"])):
                    self.report.add("tight-bounds", here, root.location, problem, e.ordinal)

    def _incomplete_bounds(self, manifest_file: EncodedManifest, here: int, location: str) -> None:
        for ordinal, problem in incomplete_bounds(manifest_file):
            self.report.add("tight-bounds", here, location, problem, ordinal)

    def _leaf(self, entry: StoredEntry, root: Root) -> None:
        here, location = root.snapshot.snapshot_id, entry["location"]
        manifest = entry.manifest(root.snapshot.table_location)
        manifest_file = open_manifest(self.io, location)
        if manifest_file.record_count != entry["record_count"]:
            self.report.add(
                "record-count",
                here,
                root.location,
                f"{location} has {manifest_file.record_count} entries, record_count is "
                f"{entry['record_count']}",
                entry.ordinal,
            )
        if manifest.partition_spec_id not in self.metadata.spec_by_id:
            self.report.add(
                "known-partition-spec",
                here,
                root.location,
                f"there is no partition spec {manifest.partition_spec_id}",
                entry.ordinal,
            )
            return
        is_data = manifest.content is ManifestContent.DATA
        entries_as_stored = stored_entries(manifest_file, root.snapshot.table_location)
        is_sound = True
        if entries_as_stored is not None:
            is_sound = self._leaf_entries(
                entries_as_stored, entry, "data" if is_data else "delete", here
            )
            self._incomplete_bounds(manifest_file, here, location)
        if is_sound and manifest_file.record_count == entry["record_count"]:
            problems = manifest_problems(
                self.io, self.metadata, manifest, counts_rule="manifest-stats"
            )
            self.report.add_problems(problems, here, location)

    def _leaf_entries(
        self, stored: StoredEntries, leaf: StoredEntry, place: Place, here: int
    ) -> bool:
        """Check the entries of a leaf; return whether they can be read as entries of a leaf."""
        location = stored.location
        self.report.add_problems(_content_problems(stored, place), here, location)
        by_status: dict[ContentStatus, int] = {}
        is_sound = True
        for e in stored:
            broken_rules = list(entry_problems(e, place, is_own=stored.is_own))
            broken_rules += _inherited_problems(e, leaf)
            is_sound &= not any(r in ("types-in-root", "leaf-content") for r, _ in broken_rules)
            self.report.add_problems(broken_rules, here, location, e.ordinal)
            by_status.setdefault(e.status, e.ordinal)
        if stored.is_own:
            problems = _status_problems(
                by_status, leaf, is_new=leaf.is_live and leaf["snapshot_id"] == here
            )
            for ordinal, problem in problems:
                self.report.add("no-mixed-leaf", here, location, problem, ordinal)
        return is_sound

    def _affinity(self, entry: StoredEntry, root: Root) -> None:
        here, target = root.snapshot.snapshot_id, entry["referenced_file"]
        data = root.live_manifests().get(target)
        if data is None or data.type is not ContentType.DATA_MANIFEST:
            self.report.add(
                "affinity",
                here,
                root.location,
                f"the data manifest {target} is not a live entry",
                entry.ordinal,
            )
            return
        base = root.snapshot.table_location
        deletes, of = entry.manifest(base), data.manifest(base)
        key = ("affinity", deletes, of)
        if key in self.checked_leaves:
            return
        self.checked_leaves.add(key)
        data_paths = set(self._read(of)["file_path"].to_pylist())
        read = self._read(deletes)
        for i, path in enumerate(read["referenced_data_file"].to_pylist()):
            if path not in data_paths or read["content_offset"][i].as_py() is None:
                subject = "an equality delete" if path is None else f"the vector of {path}"
                self.report.add(
                    "affinity",
                    here,
                    entry["location"],
                    f"{subject} is none of a file of {target}",
                    i,
                )

    def _read(self, manifest: ManifestFile) -> pa.Table:
        return entries_of_manifest(self.io, self.metadata, manifest, drop_deleted=False)


def _content_problems(stored: StoredEntries, place: Place) -> Iterator[Problem]:
    word = stored.metadata.get("content")
    if word is not None and word not in _WORDS[place]:
        yield "file-content", f"content is '{word}' in what is named as a {_PLACE_NAMES[place]}"
    version = stored.metadata.get("format-version")
    if version != "4":
        yield "file-content", f"format-version is '{version}', and content entries are of 4"


_PLACE_NAMES: Mapping[Place, str] = {
    "root": "root manifest",
    "data": "leaf of data",
    "delete": "leaf of deletes",
}


def _inherited_problems(entry: StoredEntry, leaf: StoredEntry) -> Iterator[Problem]:
    if entry["spec_id"] is not None and entry["spec_id"] != leaf["spec_id"]:
        yield (
            "partition-spec-id",
            f"of spec {entry['spec_id']} in a leaf of spec {leaf['spec_id']}",
        )
    if entry.status is not ContentStatus.ADDED:
        return
    by, number = entry["snapshot_id"], entry["sequence_number"]
    if by is not None and by != leaf["snapshot_id"]:
        yield "inherit-in-leaf", f"ADDED by snapshot {by} in a leaf of {leaf['snapshot_id']}"
    if number is not None and number >= (leaf["sequence_number"] or 0):
        yield (
            "inherit-in-leaf",
            f"an ADDED entry brings sequence_number {number}, that of its leaf or a later one",
        )


def _status_problems(
    by_status: Mapping[ContentStatus, int], leaf: StoredEntry, *, is_new: bool
) -> Iterator[tuple[int, str]]:
    """Yield the first entry of each status that is not allowed, and a description."""
    if ContentStatus.DELETED in by_status:
        yield by_status[ContentStatus.DELETED], "an entry of a leaf is DELETED"
    live = {s: i for s, i in by_status.items() if s is not ContentStatus.DELETED}
    if len(live) > 1:
        yield max(live.values()), "the leaf has both EXISTING and ADDED entries"
    elif is_new and live and leaf.status not in live:
        (status, ordinal), *_ = live.items()
        yield ordinal, f"{status.name} in a leaf that is {leaf.status.name} in the root"
