"""Content entries: the rows of root manifests and leaf manifests, as proposed for format version 4.

Two sources use different field ids for the same data: the proposal "Single-file commits", in whose
form this package writes entries, and the classes of Iceberg's Java library, whose entries this
package can read. A `Profile` describes one of the two: for each role the field ids that lead to its
column. The two profiles use some ids with different meanings, so a file has the columns of one
profile only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias, get_args

from iceberg_pyspark.spec.manifests import ManifestEntry, ManifestFile


class ContentType(IntEnum):
    """The kind of object that an entry describes; the last three occur only in root manifests."""

    DATA = 0
    DELETION_VECTOR = 1
    EQUALITY_DELETES = 2
    DATA_MANIFEST = 3
    DELETE_MANIFEST = 4
    MANIFEST_DELETION_VECTOR = 5


class ContentStatus(IntEnum):
    """The change that the snapshot made to an entry; the last two occur only in Java's entries."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2
    REPLACED = 3
    MODIFIED = 4


LIVE_STATUSES = frozenset((ContentStatus.EXISTING, ContentStatus.ADDED, ContentStatus.MODIFIED))
MANIFEST_TYPES = frozenset((ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST))

Role = Literal[
    "status",
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "content_type",
    "location",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "content_stats",
    "sort_order_id",
    "first_row_id",
    "referenced_file",
    "vector_location",
    "vector_offset",
    "vector_size_in_bytes",
    "vector_cardinality",
    "inline_vector",
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
    "min_sequence_number",
    "manifest_vector",
    "format_version",
    "key_metadata",
    "split_offsets",
    "equality_ids",
]
ROLES: tuple[Role, ...] = get_args(Role)
MANIFEST_COUNTS: tuple[Role, ...] = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)


@dataclass(frozen=True, slots=True)
class Profile:
    """The place of each role's column: a path of field ids from the top of the schema downwards.

    A role that is absent from `paths` has no column in the profile.
    """

    name: str
    marker: tuple[int, str]
    """The id and name of the top-level field that identifies the profile of a file."""
    paths: Mapping[Role, tuple[int, ...]]

    @property
    def top_level_ids(self) -> frozenset[int]:
        """The field ids of the profile's columns at the top of the schema."""
        return frozenset(path[0] for path in self.paths.values())


_SHARED_PATHS: Mapping[Role, tuple[int, ...]] = {
    "content_type": (134,),
    "location": (100,),
    "file_format": (101,),
    "partition": (102,),
    "record_count": (103,),
    "file_size_in_bytes": (104,),
    "sort_order_id": (140,),
    "key_metadata": (131,),
    "split_offsets": (132,),
    "equality_ids": (135,),
}


def _tracking(struct_id: int) -> Mapping[Role, tuple[int, ...]]:
    return {
        "status": (struct_id, 0),
        "snapshot_id": (struct_id, 1),
        "sequence_number": (struct_id, 3),
        "file_sequence_number": (struct_id, 4),
    }


def _manifest_counts(struct_id: int) -> Mapping[Role, tuple[int, ...]]:
    return {
        "added_files_count": (struct_id, 504),
        "existing_files_count": (struct_id, 505),
        "deleted_files_count": (struct_id, 506),
        "added_rows_count": (struct_id, 512),
        "existing_rows_count": (struct_id, 513),
        "deleted_rows_count": (struct_id, 514),
        "min_sequence_number": (struct_id, 516),
    }


SINGLE_FILE_COMMITS = Profile(
    name="single-file commits",
    marker=(5, "version_info"),
    paths={
        **_SHARED_PATHS,
        **_tracking(5),
        **_manifest_counts(521),
        "spec_id": (148,),
        "content_stats": (149,),
        "first_row_id": (142,),
        "referenced_file": (143,),
        "vector_offset": (147, 144),
        "vector_size_in_bytes": (147, 145),
        "inline_vector": (147, 146),
    },
)
"""Entries as in the proposal "Single-file commits": a deletion vector is a separate entry."""

TRACKED_FILES = Profile(
    name="tracked files",
    marker=(147, "tracking"),
    paths={
        **_SHARED_PATHS,
        **_tracking(147),
        **_manifest_counts(150),
        "spec_id": (141,),
        "content_stats": (146,),
        "first_row_id": (147, 142),
        "vector_location": (148, 155),
        "vector_offset": (148, 144),
        "vector_size_in_bytes": (148, 145),
        "vector_cardinality": (148, 156),
        "manifest_vector": (150, 522),
        "format_version": (157,),
    },
)
"""Entries as in Java's class `TrackedFile`: a deletion vector is part of its data file's entry."""

PROFILES = (SINGLE_FILE_COMMITS, TRACKED_FILES)


# --- entries as values ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafEntry:
    """An entry of a root manifest for a leaf manifest: `DATA_MANIFEST` or `DELETE_MANIFEST`.

    `manifest` holds all fields of the entry. Both sequence numbers of the entry are the manifest's
    sequence number, and its snapshot id is the manifest's `added_snapshot_id`. `referenced_file` is
    set if all deletion vectors of a delete manifest apply to files of one data manifest: it is the
    path of that data manifest. None means unknown.
    """

    status: ContentStatus
    manifest: ManifestFile
    referenced_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestVectorEntry:
    """A manifest deletion vector: the positions of the entries in manifest `leaf` that are deleted.

    The vector is a `deletion-vector-v1` blob: either `inline` holds the whole blob, or the blob
    lies in the Puffin file `location`, starts at `offset` and is `size_in_bytes` long.
    `file_size_in_bytes` is the size of the Puffin file, or None if unknown. `cardinality` is the
    number of positions.
    """

    status: ContentStatus
    snapshot_id: int
    sequence_number: int
    spec_id: int
    leaf: str
    cardinality: int
    inline: bytes | None = None
    location: str | None = None
    offset: int | None = None
    size_in_bytes: int | None = None
    file_size_in_bytes: int | None = None


RootEntry: TypeAlias = ManifestEntry | LeafEntry | ManifestVectorEntry
"""An entry of a root manifest: a file or deletion vector, a leaf manifest, or a leaf's vector."""


# --- statistics of columns ------------------------------------------------------------------------

STATS_BASE = 10_000
STATS_WIDTH = 200
_HIGHEST_STATS_ID = 200_000_000


class StatsField(IntEnum):
    """A field of a column's statistics; the value is the offset of its id from the struct's id."""

    LOWER_BOUND = 1
    UPPER_BOUND = 2
    TIGHT_BOUNDS = 3
    VALUE_COUNT = 4
    NULL_VALUE_COUNT = 5
    NAN_VALUE_COUNT = 6


def stats_field_id(field_id: int) -> int | None:
    """Return the id of the struct with a column's statistics, or None if the id would be too large.

    >>> stats_field_id(1), stats_field_id(999_950)
    (10200, None)
    """
    struct_id = STATS_BASE + STATS_WIDTH * field_id
    return struct_id if struct_id < _HIGHEST_STATS_ID else None
