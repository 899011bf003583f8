"""Reads content entries of a root manifest or leaf as they are stored, without inheritance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

_ROWS_AT_ONCE = 4096
_NOT_READ = frozenset[Role](("partition", "content_stats"))

MANIFEST_STATS: tuple[Role, ...] = (*MANIFEST_COUNTS, "min_sequence_number")


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
