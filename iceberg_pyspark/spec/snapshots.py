"""Snapshots, snapshot references, the snapshot log and the metadata log.

Specification, "Snapshots", "Snapshot References" and Appendix C. A REST catalog may load a table
with the snapshots of branches and tags only (Open API specification, `loadTable` with
`snapshots=refs`): the first access to another snapshot, or to all snapshots, loads the rest.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, overload
from uuid import UUID

from iceberg_pyspark.display import html_table, printable, utc_text
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.spec.encryption import ManifestListKey
from iceberg_pyspark.spec.json_fields import JsonObject, compact_json
from iceberg_pyspark.spec.property_types import count_in
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, relative_path, resolved_path

MAIN = "main"
RefType = Literal["branch", "tag"]

_SHOWN_COUNTS = (
    ("added-records", "rows added"),
    ("deleted-records", "rows deleted"),
    ("total-records", "rows"),
    ("total-data-files", "data files"),
)


def snapshot_id_of(uuid: UUID) -> int:
    """Return a snapshot id from a random UUID: its halves combined with XOR, without the sign bit.

    >>> snapshot_id_of(UUID(int=(5 << 64) + 3))
    6
    """
    return ((uuid.int >> 64) ^ uuid.int) & 0x7FFF_FFFF_FFFF_FFFF


class SummaryText(Mapping[str, str]):
    """A snapshot summary as unparsed JSON text; the first access to an entry parses the text.

    A table may have thousands of snapshots; their summaries are most of its metadata, and few are
    ever accessed. The caller must have checked that the text is a JSON object of strings.

    >>> SummaryText(b'{"operation":"append"}')["operation"]
    'append'
    """

    __slots__ = ("_entries", "_text")

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._entries: dict[str, str] | None = None

    @property
    def text(self) -> bytes:
        """The JSON text in UTF-8."""
        return bytes(self._text)

    def may_hold(self, value: str) -> bool:
        """Return whether the summary may contain a value, without parsing it."""
        text = self.text
        # with a JSON escape, the text may contain the value in another spelling
        return b"\\" in text or value.encode() in text

    def _parse(self) -> dict[str, str]:
        if self._entries is None:
            self._entries = json.loads(self.text)
        return self._entries

    def __getitem__(self, key: str) -> str:
        return self._parse()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parse())

    def __len__(self) -> int:
        return len(self._parse())

    def __repr__(self) -> str:
        return repr(self._parse())

    def __reduce__(self) -> tuple[Any, ...]:
        return SummaryText, (self.text,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of the table at one commit.

    `manifests` lists manifest locations inline, which only v1 tables may have instead of a manifest
    list. `root_manifest` replaces both in snapshots as proposed for version 4. `table_location` is
    the base of relative paths in the snapshot's files; None before version 4, which has no relative
    paths. `list_key` is the key with the id `key_id`, of an encrypted manifest list.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    root_manifest: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    table_location: str | None = None
    list_key: ManifestListKey | None = field(default=None, repr=False, compare=False)
    _text: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """The result of `snapshot_to_bytes`, once it is known: each commit writes all snapshots."""

    def __repr__(self) -> str:
        parts = [str(self.snapshot_id), self.operation or "unknown operation"]
        parts.append(utc_text(self.timestamp_ms))
        if self.parent_snapshot_id is not None:
            parts.append(f"parent {self.parent_snapshot_id}")
        for key, word in _SHOWN_COUNTS:
            if (number := self.number(key)) is not None:
                parts.append(f"{word} {number:,}")
        return printable(f"Snapshot({', '.join(parts)})")

    def _repr_html_(self) -> str:
        rows = [
            ("committed", utc_text(self.timestamp_ms)),
            ("parent", "" if self.parent_snapshot_id is None else str(self.parent_snapshot_id)),
            *redact_properties(self.summary).items(),
        ]
        return html_table(f"snapshot {self.snapshot_id}", (), rows)

    @property
    def operation(self) -> str | None:
        """The operation: `append`, `replace`, `overwrite` or `delete`; None in old v1 snapshots."""
        return self.summary.get("operation")

    @property
    def list_location(self) -> str:
        """The manifest list, or what replaces it; empty if there is nothing."""
        return self.root_manifest or self.manifest_list or "".join((self.manifests or ())[:1])

    def number(self, key: str) -> int | None:
        """Return a count or size from the summary, or None if the entry is missing or invalid.

        Writers may omit every count, and the specification does not guarantee that counts are
        correct.

        >>> Snapshot(snapshot_id=1, timestamp_ms=0, summary={"total-records": "7"}).number(
        ...     "total-records"
        ... )
        7
        """
        return count_in(self.summary.get(key, ""))

    def has_value(self, key: str, value: str) -> bool:
        """Return whether the summary has the value under `key`; fast enough for all snapshots."""
        summary = self.summary
        if isinstance(summary, SummaryText) and not summary.may_hold(value):
            return False
        return summary.get(key) == value


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRef:
    """A branch or tag with its retention settings; ages are in milliseconds."""

    snapshot_id: int
    type: RefType = "branch"
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotLogEntry:
    """The time at which a snapshot became the current snapshot."""

    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogEntry:
    """The location and the time of a previous metadata file."""

    metadata_file: str
    timestamp_ms: int


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as metadata JSON, without the sequence number 0 of v1 tables."""
    return _to_json(snapshot, snapshot.summary)


def _to_json(snapshot: Snapshot, summary: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {"snapshot-id": snapshot.snapshot_id}
    if snapshot.parent_snapshot_id is not None:
        out["parent-snapshot-id"] = snapshot.parent_snapshot_id
    if snapshot.sequence_number > 0:
        out["sequence-number"] = snapshot.sequence_number
    out["timestamp-ms"] = snapshot.timestamp_ms
    if summary:
        out["summary"] = dict(summary)
    if snapshot.root_manifest is not None:
        out["root-manifest"] = _path_to_store(snapshot.root_manifest, snapshot.table_location)
    elif snapshot.manifest_list is not None:
        out["manifest-list"] = snapshot.manifest_list
    elif snapshot.manifests is not None:
        out["manifests"] = list(snapshot.manifests)
    if snapshot.schema_id is not None:
        out["schema-id"] = snapshot.schema_id
    if snapshot.first_row_id is not None:
        out["first-row-id"] = snapshot.first_row_id
    if snapshot.added_rows is not None:
        out["added-rows"] = snapshot.added_rows
    if snapshot.key_id is not None:
        out["key-id"] = snapshot.key_id
    return out


def _path_to_store(path: str, table_location: str | None) -> str:
    return path if table_location is None else relative_path(path, table_location)


def snapshot_to_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as compact JSON; an unparsed summary is written unchanged."""
    text = snapshot._text
    if text is None:
        text = _encode(snapshot)
        with_text(snapshot, text)
    return text


def with_text(snapshot: Snapshot, text: bytes) -> Snapshot:
    """Return a snapshot of which `snapshot_to_bytes` returns the JSON that it was read from.

    The caller must have checked that the snapshot has all that the JSON says.
    """
    object.__setattr__(snapshot, "_text", text)
    return snapshot


def _encode(snapshot: Snapshot) -> bytes:
    summary = snapshot.summary
    if not isinstance(summary, SummaryText):
        return compact_json(snapshot_to_json(snapshot)).encode()
    rest = compact_json(_to_json(snapshot, {}))
    return b'%s,"summary":%s}' % (rest[:-1].encode(), summary.text)


def snapshot_from_json(data: JsonObject, format_version: int) -> Snapshot:
    """Parse a snapshot of a table of the given format version; errors name the JSON path."""
    root_manifest = data.optional_string("root-manifest")
    if root_manifest is not None and format_version < RELATIVE_PATHS_VERSION:
        raise InvalidMetadataError(
            f"{data.path_of('root-manifest')}: version {format_version} has none"
        )
    if root_manifest is not None and data.has("manifest-list"):
        raise InvalidMetadataError(
            f"{data.path_of('root-manifest')}: not allowed together with manifest-list"
        )
    # an upgraded table may still have v1 snapshots, so v2's requirements are not enforced here
    if root_manifest is None and not data.has("manifest-list") and not data.has("manifests"):
        raise InvalidMetadataError(f"{data.path_of('manifest-list')}: required since v2")
    lineage = format_version >= 3
    return Snapshot(
        snapshot_id=data.int64("snapshot-id"),
        parent_snapshot_id=data.optional_int64("parent-snapshot-id"),
        sequence_number=data.optional_int64("sequence-number", 0) or 0,
        timestamp_ms=data.time_ms("timestamp-ms"),
        manifest_list=data.optional_string("manifest-list"),
        manifests=data.strings("manifests") if data.has("manifests") else None,
        root_manifest=root_manifest,
        summary=data.string_map("summary"),
        schema_id=data.optional_int32("schema-id"),
        first_row_id=data.optional_int64("first-row-id", 0) if lineage else None,
        added_rows=data.optional_int64("added-rows", 0) if lineage else None,
        key_id=data.optional_string("key-id"),
    )


def with_resolved_paths(snapshot: Snapshot, table_location: str) -> Snapshot:
    """Return a version 4 snapshot with absolute paths and with its table location set."""
    return with_paths(snapshot, table_location, resolved_path)


def with_paths(
    snapshot: Snapshot, table_location: str, path_of: Callable[[str, str], str]
) -> Snapshot:
    """Return a version 4 snapshot with its table location set and its paths converted.

    `path_of` takes a path and the table location and returns an absolute path.
    """
    lists, manifests, root = snapshot.manifest_list, snapshot.manifests, snapshot.root_manifest
    return replace(
        snapshot,
        root_manifest=None if root is None else path_of(root, table_location),
        manifest_list=None if lists is None else path_of(lists, table_location),
        manifests=None
        if manifests is None
        else tuple(path_of(m, table_location) for m in manifests),
        table_location=table_location,
    )


def snapshot_log_entry_from_json(data: JsonObject) -> SnapshotLogEntry:
    """Parse an entry of the snapshot log."""
    return SnapshotLogEntry(
        snapshot_id=data.int64("snapshot-id"), timestamp_ms=data.time_ms("timestamp-ms")
    )


def metadata_log_entry_from_json(data: JsonObject) -> MetadataLogEntry:
    """Parse an entry of the metadata log."""
    return MetadataLogEntry(
        metadata_file=data.string("metadata-file"), timestamp_ms=data.time_ms("timestamp-ms")
    )


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    """Return a reference as metadata JSON."""
    out: dict[str, Any] = {"snapshot-id": ref.snapshot_id, "type": ref.type}
    if ref.min_snapshots_to_keep is not None:
        out["min-snapshots-to-keep"] = ref.min_snapshots_to_keep
    if ref.max_snapshot_age_ms is not None:
        out["max-snapshot-age-ms"] = ref.max_snapshot_age_ms
    if ref.max_ref_age_ms is not None:
        out["max-ref-age-ms"] = ref.max_ref_age_ms
    return out


def ref_from_json(data: JsonObject) -> SnapshotRef:
    """Parse a reference; errors name the JSON path."""
    type_ = data.string("type").lower()
    if type_ not in ("branch", "tag"):
        raise data.wrong("type", "must be branch or tag")
    return SnapshotRef(
        snapshot_id=data.int64("snapshot-id"),
        type="branch" if type_ == "branch" else "tag",
        min_snapshots_to_keep=data.optional_int32("min-snapshots-to-keep", 1),
        max_snapshot_age_ms=data.optional_int64("max-snapshot-age-ms", 1),
        max_ref_age_ms=data.optional_int64("max-ref-age-ms", 1),
    )


D = TypeVar("D")


class SnapshotsOfRefs(Sequence[Snapshot]):
    """All snapshots of a table; `loaded_snapshots` are available without a load. Thread-safe."""

    def __init__(
        self, loaded_snapshots: Sequence[Snapshot], load: Callable[[], tuple[Snapshot, ...]]
    ) -> None:
        self.loaded_by_id = {s.snapshot_id: s for s in loaded_snapshots}
        self._load = load
        self._lock = threading.Lock()
        self._all: tuple[Snapshot, ...] | None = None

    def all(self) -> tuple[Snapshot, ...]:
        """Return every snapshot in the catalog's order; the first call loads them."""
        with self._lock:
            if self._all is None:
                self._all = self._load()
            return self._all

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | Sequence[Snapshot]:
        return self.all()[index]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __eq__(self, other: object) -> bool:
        return self.all() == (other.all() if isinstance(other, SnapshotsOfRefs) else other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        snapshots = self.loaded_by_id.values() if self._all is None else self._all
        return f"SnapshotsOfRefs({', '.join(str(s.snapshot_id) for s in snapshots)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # the load function cannot be pickled, so a plain tuple of all snapshots is
        return tuple, (self.all(),)


class KnownFirst(Mapping[int, Snapshot]):
    """Snapshots by id: from `loaded_by_id`, or else from `all_by_id()`, which may load."""

    def __init__(
        self,
        loaded_by_id: Mapping[int, Snapshot],
        all_by_id: Callable[[], Mapping[int, Snapshot]],
    ) -> None:
        self._loaded_by_id = loaded_by_id
        self._all_by_id = all_by_id

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        snapshot = self._loaded_by_id.get(snapshot_id)
        return self._all_by_id()[snapshot_id] if snapshot is None else snapshot

    @overload
    def get(self, key: int, /) -> Snapshot | None: ...

    @overload
    def get(self, key: int, /, default: Snapshot | D) -> Snapshot | D: ...

    def get(self, key: int, /, default: Any = None) -> Any:
        """Return the snapshot with the id, or the default."""
        snapshot = self._loaded_by_id.get(key)
        return self._all_by_id().get(key, default) if snapshot is None else snapshot

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._loaded_by_id or snapshot_id in self._all_by_id()

    def __iter__(self) -> Iterator[int]:
        return iter(self._all_by_id())

    def __len__(self) -> int:
        return len(self._all_by_id())

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._all_by_id(),)


def _same(by_id: Mapping[int, Snapshot]) -> Mapping[int, Snapshot]:
    return by_id
