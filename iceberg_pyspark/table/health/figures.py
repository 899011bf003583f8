"""Defines the figures of a health report, which come from metadata and manifests only.

Sizes are in bytes, times in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The number of files with a value from `at_least` to below `less_than` (None: no limit)."""

    at_least: int
    less_than: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """The data files of the current snapshot, by size.

    Small files are below `min_file_size` bytes, large files above `max_file_size`: by default,
    `rewrite_data_files` rewrites these files.
    """

    files: int = 0
    bytes: int = 0
    records: int = 0
    smallest: int | None = None
    median: int | None = None
    largest: int | None = None
    target: int
    min_file_size: int
    max_file_size: int
    small_files: int = 0
    small_bytes: int = 0
    large_files: int = 0
    large_bytes: int = 0
    files_by_size: tuple[Bucket, ...] = ()
    files_by_format: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileFigures:
    """The delete files of one kind; `dangling_files` of them no longer apply to any data file.

    `records` are deleted positions, or the values that rows are compared with.
    """

    files: int = 0
    bytes: int = 0
    records: int = 0
    dangling_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """The deletes in delete files.

    `deleted_ratio` is the fraction of rows that deletion vectors and position deletes delete. It is
    an upper bound, because two position delete files may delete the same row; equality deletes do
    not count, because only the rows tell what they delete. `files_over_ratio` data files have so
    many deleted rows that `rewrite_data_files` rewrites them. `files_by_deletes` counts data files
    by the number of delete files that a scan reads for each.
    """

    deletion_vectors: DeleteFileFigures
    position_deletes: DeleteFileFigures
    equality_deletes: DeleteFileFigures
    data_files_with_deletes: int = 0
    most_deletes_of_a_file: int = 0
    deleted_ratio: float = 0.0
    files_over_ratio: int = 0
    files_by_deletes: tuple[Bucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHealth:
    """One partition of one spec; `partition` is `name=value/name=value`, for people to read."""

    spec_id: int
    partition: str
    files: int
    bytes: int
    records: int
    small_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partitions that have data files.

    `skew` is the bytes of the largest partition divided by the mean. `largest` are the partitions
    with the most bytes, `most_files` those with the most files; both lists are limited.
    """

    count: int = 0
    median_bytes: int | None = None
    mean_bytes: int | None = None
    greatest_bytes: int | None = None
    skew: float | None = None
    largest: tuple[PartitionHealth, ...] = ()
    most_files: tuple[PartitionHealth, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTotals:
    """A table's totals in the summary of one snapshot; None: not in the summary."""

    snapshot_id: int
    committed_at_ms: int
    records: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """The kept snapshots; `history` is a selection of the current one's ancestors, oldest first."""

    count: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    branches: int = 0
    tags: int = 0
    log_entries: int = 0
    history: tuple[SnapshotTotals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFiles:
    """The metadata files that a reader opens before it reads rows, and statistics files.

    `metadata_bytes` is the size of the current metadata file, or None if the storage does not tell
    it. Manifests are those of the current snapshot. Unreferenced statistics belong to snapshots
    that no longer exist.
    """

    metadata_bytes: int | None = None
    metadata_log_entries: int = 0
    schemas: int = 0
    partition_specs: int = 0
    manifest_list_bytes: int | None = None
    manifests: int = 0
    manifest_bytes: int = 0
    median_manifest_bytes: int | None = None
    greatest_manifest_bytes: int | None = None
    target_manifest_bytes: int
    delete_manifests: int = 0
    statistics_files: int = 0
    statistics_bytes: int = 0
    unreferenced_statistics_files: int = 0
    unreferenced_statistics_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureGain:
    """The effect that one procedure would have now, with its default options.

    `files_before` files become `files_after` files, or at most so many if `is_upper_bound`. `bytes`
    is the size of the files before. None means unknown; `problem` says why. `call` is Spark SQL, or
    None if no catalog has the table; `command` is a shell command.
    """

    procedure: str
    is_worthwhile: bool = False
    what: str
    files_before: int | None = None
    files_after: int | None = None
    is_upper_bound: bool = False
    bytes: int | None = None
    problem: str | None = None
    call: str | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFigures:
    """The figures of a table's current snapshot and metadata at `examined_at_ms`."""

    table: str
    location: str
    format_version: int
    snapshot_id: int | None
    examined_at_ms: int
    file_sizes: FileSizes
    deletes: Deletes
    partitions: Partitions
    snapshots: Snapshots
    metadata: MetadataFiles
    procedures: tuple[ProcedureGain, ...]
