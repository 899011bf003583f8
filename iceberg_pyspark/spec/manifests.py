"""Manifests, manifest entries and the files that they track, as Python values.

Specification, "Manifests", "Manifest Lists" and "Sequence Number Inheritance". The Avro schemas are
in `spec/avro_schemas.py`; the files are read and written by `formats/manifest_lists.py`,
`formats/manifest_reader.py` and `formats/manifest_writer.py`. Scan planning handles entries as rows
of an Arrow table (`formats/manifest_columns.py`); the objects of this module are what a commit
adds, keeps and removes.

A commit that is repeated writes a new manifest list and keeps its manifests: they leave out the
values that only the finished commit knows, and the manifest list gives them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.json_fields import MAX_INT64
from iceberg_pyspark.spec.types import DoubleType, FloatType, StructType, Type, UUIDType
from iceberg_pyspark.spec.values import may_bound_uuids, value_to_bytes

DataFileFormat = Literal["parquet", "avro", "orc"]
FileFormat = Literal["parquet", "avro", "orc", "puffin"]


def next_row_id_after(first_row_id: int, row_count: int, where: str) -> int:
    """Return the first row id after those of a file or manifest; raise `InvalidMetadataError`.

    `where` is the location that the error names.
    """
    next_row_id = first_row_id + row_count
    if not 0 <= next_row_id <= MAX_INT64:
        raise InvalidMetadataError(
            f"{where}: the ids of its rows would reach {next_row_id}, beyond the largest id; the "
            "table's metadata or the manifest is damaged"
        )
    return next_row_id


class FileContent(IntEnum):
    """The content type of a file (field 134)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(IntEnum):
    """The content type of a manifest (field 517)."""

    DATA = 0
    DELETES = 1


class EntryStatus(IntEnum):
    """The status of a manifest entry (field 0)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


def is_deletion_vector(content: FileContent, file_format: FileFormat) -> bool:
    """Return whether a file of this content and format is a `deletion-vector-v1` blob."""
    return content is FileContent.POSITION_DELETES and file_format == "puffin"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file, delete file or deletion vector, with its metrics keyed by field id.

    `partition` is a tuple in the field order of spec `spec_id`; its values have the form of
    `values.py`. Bounds are binary single values. A deletion vector has content POSITION_DELETES,
    format `puffin`, and all of `referenced_data_file`, `content_offset`, `content_size_in_bytes`.
    """

    content: FileContent = FileContent.DATA
    file_path: str
    file_format: FileFormat = "parquet"
    spec_id: int = 0
    partition: tuple[Any, ...] = ()
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_deletion_vector(self) -> bool:
        """Whether the object is a `deletion-vector-v1` blob of a Puffin file."""
        return is_deletion_vector(self.content, self.file_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A file with its status; a number that is None is inherited from the manifest list."""

    status: EntryStatus
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    data_file: DataFile

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the snapshot."""
        return self.status is not EntryStatus.DELETED


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFieldSummary:
    """The bounds of one partition field over a manifest; `contains_nan` None means unknown."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


ManifestPart: TypeAlias = tuple[str, ManifestContent, int]
"""The type of `ManifestFile.part`: a root manifest has a part for each content and spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """The metrics of one column over all entries of a manifest; None means unknown."""

    field_id: int
    value_count: int | None = None
    null_value_count: int | None = None
    nan_value_count: int | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One row of a manifest list. A count that is None (v1) means "non-zero".

    `table_location` is the base of relative paths in the manifest; None before version 4. If
    `is_root`, the object stands for the files of one content and partition spec that a root
    manifest lists directly. `dead_positions` is a deletion vector with `dead_count` positions,
    counted from 0 in the file, of the entries that are not in the snapshot. `columns` holds the
    column metrics that a root manifest states for a leaf; they include the dead entries.
    `data_manifest` is set if a root manifest states that a delete manifest has only deletion
    vectors of files in that data manifest; it is the path of the data manifest.
    """

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_snapshot_id: int | None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    first_row_id: int | None = None
    table_location: str | None = None
    is_root: bool = False
    dead_positions: bytes | None = None
    dead_count: int = field(default=0, compare=False)
    columns: tuple[ColumnSummary, ...] = field(default=(), compare=False)
    data_manifest: str | None = field(default=None, compare=False)

    @property
    def part(self) -> ManifestPart:
        """The identity of the listed part of a manifest: path, content and partition spec id."""
        return self.manifest_path, self.content, self.partition_spec_id

    @property
    def has_live_files(self) -> bool:
        """Whether the manifest may hold ADDED or EXISTING entries."""
        added_count, existing = self.added_files_count, self.existing_files_count
        if self.dead_count and self.deleted_files_count == 0:
            return (
                added_count is None or existing is None or self.dead_count < added_count + existing
            )
        return added_count != 0 or existing != 0


UNASSIGNED_SEQUENCE_NUMBER = -1
"""A placeholder in a `ManifestFile` of an unfinished commit for the snapshot's sequence number."""


def with_counts(
    manifest: ManifestFile, files: Mapping[EntryStatus, int], rows: Mapping[EntryStatus, int]
) -> ManifestFile:
    """Return the manifest with its file and row counts set from counts by entry status."""
    return replace(
        manifest,
        added_files_count=files[EntryStatus.ADDED],
        existing_files_count=files[EntryStatus.EXISTING],
        deleted_files_count=files[EntryStatus.DELETED],
        added_rows_count=rows[EntryStatus.ADDED],
        existing_rows_count=rows[EntryStatus.EXISTING],
        deleted_rows_count=rows[EntryStatus.DELETED],
    )


def summarise_partitions(
    partition_type: StructType, partitions: Iterable[tuple[Any, ...]]
) -> tuple[PartitionFieldSummary, ...] | None:
    """Return one summary per partition field over the partition tuples of all entries.

    Bounds are not truncated. Returns None if `may_bound_uuids` forbids bounds for a field: a
    summary without bounds would mean that all values are null.
    """
    values: list[set[Any]] = [set() for _ in partition_type.fields]
    zeros: list[set[float]] = [set() for _ in partition_type.fields]
    for partition in partitions:
        for i, value in enumerate(partition):
            if value == 0 and isinstance(value, float):
                # a set would keep only one of -0.0 and 0.0, because they are equal
                zeros[i].add(math.copysign(1.0, value))
            else:
                values[i].add(value)
    summaries = tuple(
        _summary(f.type, values[i], zeros[i]) for i, f in enumerate(partition_type.fields)
    )
    unbounded = any(
        isinstance(f.type, UUIDType)
        and s.lower_bound is not None
        and s.upper_bound is not None
        and not may_bound_uuids(s.lower_bound, s.upper_bound)
        for f, s in zip(partition_type.fields, summaries, strict=True)
    )
    return None if unbounded else summaries


def _summary(
    type_: Type, values: Collection[Any], zero_signs: Collection[float]
) -> PartitionFieldSummary:
    floating = isinstance(type_, FloatType | DoubleType)
    comparable = [v for v in values if v is not None and not (floating and math.isnan(v))]
    comparable += [math.copysign(0.0, sign) for sign in zero_signs]
    # the specification: a lower bound of zero must be -0.0 if it occurs, an upper bound +0.0
    key = _total_order if floating else None
    return PartitionFieldSummary(
        contains_null=None in values,
        contains_nan=floating and any(v is not None and math.isnan(v) for v in values),
        lower_bound=value_to_bytes(type_, min(comparable, key=key)) if comparable else None,
        upper_bound=value_to_bytes(type_, max(comparable, key=key)) if comparable else None,
    )


def _total_order(value: float) -> tuple[float, float]:
    return value, math.copysign(1.0, value)


def inherited_sequence_number(
    status: EntryStatus, manifest: ManifestFile, *, is_written: bool
) -> int | None:
    """Return the number of an entry whose own (field 3 or 4) is null; None if it must have one.

    Without the field, as in version 1 (`is_written` is False), all numbers are 0. Otherwise only an
    ADDED entry inherits: any other was in the table before the manifest.
    """
    if not is_written or manifest.sequence_number == 0:
        return 0
    return manifest.sequence_number if status is EntryStatus.ADDED else None


def inherits_from_leaf(status: EntryStatus, *, in_root: bool) -> bool:
    """Return whether an entry may leave out its snapshot id and numbers (proposal of version 4).

    The entries of a root manifest have no parent to inherit from.
    """
    return status is EntryStatus.ADDED and not in_root


def first_inherited_row_id(manifest: ManifestFile) -> int | None:
    """Return the first row id of the first entry that has none; None if no entry inherits one.

    Each such entry that is not DELETED takes as many ids as it has rows. Entries of deletes have no
    rows of a table, and a manifest older than row lineage gives no ids.
    """
    return None if manifest.content is ManifestContent.DELETES else manifest.first_row_id


def takes_row_ids(status: EntryStatus) -> bool:
    """Return whether an entry without a first row id inherits one, if its manifest has ids."""
    return status is not EntryStatus.DELETED
