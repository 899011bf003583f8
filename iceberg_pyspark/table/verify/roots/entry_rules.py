"""Reads content entries as they are stored, and checks the rules of a single one.

Proposal "Single-file commits". Entries in the form of Java's class `TrackedFile` are checked for
fewer rules: those that Java's classes require.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iceberg_pyspark.formats.manifest_files.open_manifest import EncodedManifest
from iceberg_pyspark.formats.roots.content_entry_reader import ContentEntries, profile_of
from iceberg_pyspark.spec.content_entries import (
    LIVE_STATUSES,
    MANIFEST_COUNTS,
    MANIFEST_TYPES,
    ROLES,
    SINGLE_FILE_COMMITS,
    ContentStatus,
    ContentType,
    Profile,
    Role,
)
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.relative_paths import may_hold_relative_paths, resolved_path
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.verify.findings import Problem

_ROWS_AT_ONCE = 4096
_NOT_READ = frozenset[Role](("partition", "content_stats"))

_MANIFEST_STATS: tuple[Role, ...] = (*MANIFEST_COUNTS, "min_sequence_number")


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry: its position in the file, counted from 0, and its values; paths are resolved."""

    ordinal: int
    values: Mapping[Role, Any]

    def __getitem__(self, role: Role) -> Any:
        return self.values[role]

    @property
    def type(self) -> ContentType:
        """The content type of the entry."""
        return ContentType(self.values["content_type"])

    @property
    def status(self) -> ContentStatus:
        """The status: what the snapshot did to the file."""
        return ContentStatus(self.values["status"])

    @property
    def is_live(self) -> bool:
        """Whether the file is in the snapshot."""
        return self.status in LIVE_STATUSES

    @property
    def is_manifest(self) -> bool:
        """Whether the entry represents a manifest."""
        return self.type in MANIFEST_TYPES

    def manifest(self, table_location: str | None) -> ManifestFile:
        """Return the manifest that the entry represents; its deletion vector is not applied."""
        is_data = self.type is ContentType.DATA_MANIFEST
        return ManifestFile(
            manifest_path=self["location"] or "",
            manifest_length=self["file_size_in_bytes"] or 0,
            partition_spec_id=self["spec_id"] or 0,
            content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
            sequence_number=self["sequence_number"] or 0,
            min_sequence_number=self["min_sequence_number"] or 0,
            added_snapshot_id=self["snapshot_id"],
            **{role: self[role] for role in MANIFEST_COUNTS},
            first_row_id=self["first_row_id"] if is_data else None,
            table_location=table_location,
        )


class StoredEntries:
    """The entries of one file; raises `InvalidMetadataError` if they cannot be read at all."""

    def __init__(
        self, manifest_file: EncodedManifest, profile: Profile, raw: Any, table_location: str | None
    ) -> None:
        self._entries = ContentEntries(
            raw, profile, manifest_file.location, manifest_file.damage_error
        )
        self._base = table_location
        version = manifest_file.metadata.get("format-version")
        self._resolves = table_location is not None and may_hold_relative_paths(version)
        self.location = manifest_file.location
        self.metadata = manifest_file.metadata
        self.count = self._entries.row_count
        self.is_own = profile is SINGLE_FILE_COMMITS
        """Whether entries have the form that this project writes, in contrast to Java's classes."""

    def __iter__(self) -> Iterator[StoredEntry]:
        columns = {role: self._entries[role] for role in ROLES if role not in _NOT_READ}
        for start in range(0, self.count, _ROWS_AT_ONCE):
            lists = {role: c.slice(start, _ROWS_AT_ONCE).to_pylist() for role, c in columns.items()}
            for role in ("location", "referenced_file", "vector_location"):
                lists[role] = [self._resolve_path(path) for path in lists[role]]
            for i, values in enumerate(zip(*lists.values(), strict=True)):
                yield StoredEntry(start + i, dict(zip(lists, values, strict=True)))

    def _resolve_path(self, path: str | None) -> str | None:
        if path is None or self._base is None or not self._resolves:
            return path
        return resolved_path(path, self._base)


def stored_entries(
    manifest_file: EncodedManifest, table_location: str | None
) -> StoredEntries | None:
    """Return the content entries of a manifest, or None if its entries are of before version 4."""
    raw = manifest_file.raw_entries()
    profile = profile_of(raw)
    return None if profile is None else StoredEntries(manifest_file, profile, raw, table_location)


Place = Literal["root", "data", "delete"]
"""The kind of a file of entries: a root manifest, or a leaf of data files or of deletes."""

_NUMBERS: tuple[Role, ...] = ("snapshot_id", "sequence_number", "file_sequence_number")
_VECTORS = (ContentType.DELETION_VECTOR, ContentType.MANIFEST_DELETION_VECTOR)
_IN_LEAVES = {
    "data": (ContentType.DATA,),
    "delete": (ContentType.DELETION_VECTOR, ContentType.EQUALITY_DELETES),
}
_OWN_STATUSES = (ContentStatus.EXISTING, ContentStatus.ADDED, ContentStatus.DELETED)
_DATA_FORMATS = ("parquet", "avro", "orc")
_MANIFEST_FORMATS = ("parquet", "avro")


def entry_problems(entry: StoredEntry, place: Place, *, is_own: bool) -> Iterator[Problem]:
    """Yield the problems of an entry that do not depend on its snapshot.

    `is_own`: the entry has the form of "Single-file commits".
    """
    yield from _type_problems(entry, place, is_own)
    yield from _stats_problems(entry)
    if is_own:
        yield from _own_problems(entry)
    else:
        yield from _tracked_problems(entry)
    yield from _format_problems(entry)
    yield from _number_problems(entry, place, is_own)


def _type_problems(entry: StoredEntry, place: Place, is_own: bool) -> Iterator[Problem]:
    type_ = entry.type
    if place == "root":
        if not is_own and type_ in _VECTORS:
            yield "types-in-root", f"{_subject(type_)} stands beside data files, where it is a part"
        return
    if entry.is_manifest or type_ is ContentType.MANIFEST_DELETION_VECTOR:
        yield "types-in-root", f"{_subject(type_)} is in a leaf"
    elif type_ not in _IN_LEAVES[place] or (not is_own and type_ is ContentType.DELETION_VECTOR):
        yield "leaf-content", f"{_subject(type_)} is in a leaf of {place}"


def _stats_problems(entry: StoredEntry) -> Iterator[Problem]:
    missing = [role for role in _MANIFEST_STATS if entry[role] is None]
    if entry.is_manifest and missing:
        yield "manifest-stats-iff-manifest", f"a manifest without {', '.join(missing)}"
    if not entry.is_manifest and len(missing) < len(_MANIFEST_STATS):
        present = [role for role in _MANIFEST_STATS if entry[role] is not None]
        yield "manifest-stats-iff-manifest", f"{_subject(entry.type)} with {', '.join(present)}"


def _own_problems(entry: StoredEntry) -> Iterator[Problem]:
    type_, subject = entry.type, _subject(entry.type)
    if entry.status not in _OWN_STATUSES:
        yield "known-status", f"status {entry.status.name} is one of Java's classes alone"
    yield from _vector_problems(entry)
    if (type_ is ContentType.EQUALITY_DELETES) != bool(entry["equality_ids"]):
        has = "with" if entry["equality_ids"] else "without"
        yield "equality-ids-iff-equality-deletes", f"{subject} {has} equality_ids"
    if type_ is not ContentType.DATA and entry["sort_order_id"] is not None:
        yield "sort-order-of-data", f"{subject} with sort order {entry['sort_order_id']}"
    if (
        type_ not in (ContentType.DATA, ContentType.DATA_MANIFEST)
        and entry["first_row_id"] is not None
    ):
        yield "first-row-id-of-data", f"{subject} with first_row_id {entry['first_row_id']}"
    referenced_file = entry["referenced_file"]
    if type_ in _VECTORS and referenced_file is None:
        yield "referenced-file", f"{subject} does not say which file it is of"
    if type_ not in (*_VECTORS, ContentType.DELETE_MANIFEST) and referenced_file is not None:
        yield "referenced-file", f"{subject} is of {referenced_file}"
    is_inline = type_ is ContentType.MANIFEST_DELETION_VECTOR and entry["inline_vector"] is not None
    if entry["location"] is None and not is_inline:
        yield "location", f"{subject} without location"
    if (entry["location"] is None) != (entry["file_size_in_bytes"] is None):
        yield (
            "file-size-iff-location",
            f"location is {entry['location']}, file_size_in_bytes {entry['file_size_in_bytes']}",
        )
    if entry["spec_id"] is None:
        yield "partition-spec-id", f"{subject} without partition_spec_id"


def _vector_problems(entry: StoredEntry) -> Iterator[Problem]:
    type_, subject = entry.type, _subject(entry.type)
    offset, size = entry["vector_offset"], entry["vector_size_in_bytes"]
    inline = entry["inline_vector"]
    has_vector = not (offset is None and size is None and inline is None)
    if (type_ in _VECTORS) != has_vector:
        yield "vector-iff-type", f"{subject} {'with' if has_vector else 'without'} deletion_vector"
        return
    if not has_vector:
        return
    if inline is None:
        if offset is None or size is None:
            yield "vector-place", f"offset is {offset}, size_in_bytes {size}; both are needed"
        elif offset < 0 or size <= 0:
            yield "vector-place", f"offset {offset} and size_in_bytes {size} are no place"
    elif type_ is ContentType.DELETION_VECTOR:
        yield "vector-place", "the deletion vector of a data file is inline"
    elif offset is not None or size is not None:
        yield "vector-place", "the vector is inline and in a file"
    elif entry["location"] is not None:
        yield "vector-place", f"the vector is inline and in {entry['location']}"


def _tracked_problems(entry: StoredEntry) -> Iterator[Problem]:
    subject = _subject(entry.type)
    roles: tuple[Role, ...] = (
        *("vector_location", "vector_offset", "vector_size_in_bytes"),
        "vector_cardinality",
    )
    missing = [role for role in roles if entry[role] is None]
    if len(missing) < len(roles):
        if entry.type is not ContentType.DATA:
            yield "vector-iff-type", f"{subject} with deletion_vector"
        elif missing:
            yield "vector-place", f"a deletion vector without {', '.join(missing)}"
    if not entry.is_manifest and entry["manifest_vector"] is not None:
        yield "vector-iff-type", f"{subject} with a vector of a manifest"
    if entry["location"] is None:
        yield "location", f"{subject} without location"
    if entry["file_size_in_bytes"] is None:
        yield "file-size-iff-location", f"{subject} without file_size_in_bytes"
    if (entry.type is ContentType.EQUALITY_DELETES) != bool(entry["equality_ids"]):
        has = "with" if entry["equality_ids"] else "without"
        yield "equality-ids-iff-equality-deletes", f"{subject} {has} equality_ids"


def _format_problems(entry: StoredEntry) -> Iterator[Problem]:
    file_format = entry["file_format"]
    allowed_formats: tuple[str, ...] = ("puffin",) if entry.type in _VECTORS else _DATA_FORMATS
    if entry.is_manifest:
        allowed_formats = _MANIFEST_FORMATS
    if file_format is None or file_format.lower() not in allowed_formats:
        yield "file-format", f"{_subject(entry.type)} with file_format {file_format}"


def _number_problems(entry: StoredEntry, place: Place, is_own: bool) -> Iterator[Problem]:
    missing = [role for role in _NUMBERS if entry[role] is None]
    if place == "root":
        has_row_ids = entry.type in (ContentType.DATA, ContentType.DATA_MANIFEST)
        if has_row_ids and entry.is_live and entry["first_row_id"] is None:
            missing.append("first_row_id")
        if missing:
            yield "explicit-in-root", f"{_subject(entry.type)} without {', '.join(missing)}"
    elif entry.status is not ContentStatus.ADDED:
        if missing:
            yield (
                "explicit-in-leaf",
                f"an entry that is {entry.status.name} without {', '.join(missing)}",
            )
    elif is_own and entry["file_sequence_number"] is not None:
        yield (
            "inherit-in-leaf",
            f"an ADDED entry brings file_sequence_number {entry['file_sequence_number']}, which "
            "only its commit knows",
        )
    data_number, file_number = entry["sequence_number"], entry["file_sequence_number"]
    if entry.is_manifest and data_number != file_number:
        yield (
            "manifest-sequence-numbers",
            f"a manifest with sequence_number {data_number} and file_sequence_number {file_number}",
        )


def problems_in_snapshot(
    entry: StoredEntry, snapshot: Snapshot, *, is_own: bool
) -> Iterator[Problem]:
    """Yield the problems of a root's entry in relation to its snapshot."""
    here, number = snapshot.snapshot_id, snapshot.sequence_number
    by, status = entry["snapshot_id"], entry.status
    data_number, file_number = entry["sequence_number"], entry["file_sequence_number"]
    if by is None or data_number is None or file_number is None:
        return
    if not 0 <= data_number <= file_number <= number and not entry.is_manifest:
        yield (
            "sequence-number-range",
            f"sequence_number {data_number} and file_sequence_number {file_number} in a snapshot "
            f"of {number}",
        )
    elif entry.is_manifest and not 0 <= data_number <= number:
        yield "sequence-number-range", f"manifest of {data_number} in a snapshot of {number}"
    is_by_this = by == here and file_number == number
    if status is ContentStatus.ADDED and not is_by_this:
        yield (
            "added-by-this-snapshot",
            f"ADDED by snapshot {by} with file_sequence_number {file_number} in snapshot {here} "
            f"of {number}",
        )
    elif status is ContentStatus.ADDED and entry.type in _VECTORS and data_number != number:
        yield "vector-sequence-number", f"ADDED vector of {data_number} in a commit of {number}"
    if status is ContentStatus.DELETED and by != here:
        yield "deleted-by-this-snapshot", f"DELETED by snapshot {by} in snapshot {here}"
    if status is ContentStatus.EXISTING and by == here:
        if not entry.is_manifest:
            yield "existing-is-older", f"{_subject(entry.type)} is EXISTING and of this snapshot"
        elif file_number != number:
            yield (
                "manifest-sequence-numbers",
                f"a manifest that this commit of {number} wrote has {file_number}",
            )
    if is_own and status is ContentStatus.DELETED and entry.is_manifest:
        yield "no-deleted-leaf", f"the manifest {entry['location']} is DELETED"


def _subject(type_: ContentType) -> str:
    return f"an entry of type {int(type_)} ({type_.name})"
