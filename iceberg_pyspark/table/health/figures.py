"""The figures of a health report, from metadata and manifests only.

Sizes are in bytes, times in milliseconds from 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """How many files have a value of `least` or more, and less than `less_than`; None: any more."""

    least: int
    less_than: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """The data files of the current snapshot, by size.

    Small are files below `wanted_least`, large those above `wanted_greatest`: what
    `rewrite_data_files` takes for candidates where nothing else is said.
    """

    files: int = 0
    bytes: int = 0
    records: int = 0
    least: int | None = None
    median: int | None = None
    greatest: int | None = None
    target: int
    wanted_least: int
    wanted_greatest: int
    small_files: int = 0
    small_bytes: int = 0
    large_files: int = 0
    large_bytes: int = 0
    files_by_size: tuple[Bucket, ...] = ()
    files_by_format: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFiles:
    """The delete files of one kind; `dangling_files` of them apply to no data file any more.

    `records` are deleted positions, or the values that rows are compared with.
    """

    files: int = 0
    bytes: int = 0
    records: int = 0
    dangling_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """What is deleted of data files by files beside them.

    `deleted_ratio`: of all rows those that deletion vectors and position deletes delete, at most,
    because two position delete files may name one row. What equality deletes delete only the rows
    tell. `files_over_ratio` have so many rows deleted that `rewrite_data_files` takes them.
    `files_by_deletes`: data files by how many delete files a scan reads with each.
    """

    deletion_vectors: DeleteFiles
    position_deletes: DeleteFiles
    equality_deletes: DeleteFiles
    data_files_with_deletes: int = 0
    most_deletes_of_a_file: int = 0
    deleted_ratio: float = 0.0
    files_over_ratio: int = 0
    files_by_deletes: tuple[Bucket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHealth:
    """One partition of one spec; `partition` is `name=value/name=value`, for a person to read."""

    spec_id: int
    partition: str
    files: int
    bytes: int
    records: int
    small_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partitions that have data files.

    `skew`: the bytes of the largest partition over those of the mean. `largest` are those with most
    bytes, `most_files` those with most files, some of each.
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
    """A table as the summary of one snapshot tells it; None: it does not."""

    snapshot_id: int
    committed_at_ms: int
    records: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """The snapshots that are kept; `history` has some of the current one's line, oldest first."""

    count: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    branches: int = 0
    tags: int = 0
    log_entries: int = 0
    history: tuple[SnapshotTotals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFiles:
    """What a reader opens before it reads a row, and what lies beside it.

    `metadata_bytes` is the size of the current metadata file, None where the storage does not say.
    Manifests are those of the current snapshot. Unreferenced statistics are of snapshots that are
    no longer there.
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
    """What one procedure would do now, with nothing else said than the table.

    `files_before` become `files_after`: at most, where `is_upper_bound`. `bytes` are those of the
    files before. None is not known; `problem` says why. `call` is for Spark's SQL, None where no
    catalog has the table; `command` is for a shell.
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
    """What was found of a table at `examined_at_ms`, of its current snapshot and its metadata."""

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
