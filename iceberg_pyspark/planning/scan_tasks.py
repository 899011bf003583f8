"""Defines the data that the planner sends to readers: one context, and many small tasks.

The context is complete before planning starts and is sent once; tasks carry no metrics. All of this
is plain data that is small when pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spec.manifests import FileContent, FileFormat, is_deletion_vector
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SEQUENCE_NUMBER,
    COMMIT_SNAPSHOT_ID,
    COMMIT_TIMESTAMP,
)
from iceberg_pyspark.spec.name_mapping import NameMapping
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema

UNKNOWN_SEQUENCE_NUMBER = -1
"""The sequence number of files planned by a catalog's server, which sends deletes without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileRef:
    """A delete file or deletion vector that applies to a task's data file.

    A deletion vector has the content POSITION_DELETES, the format `puffin`, and the offset and size
    of its blob. `is_of_one_file`: the delete file has rows of one data file only, which older
    position delete files show by their bounds. `manifest_path` is the manifest that lists the file,
    None if that is unknown.
    """

    content: FileContent
    file_path: str
    file_format: FileFormat
    file_size_in_bytes: int
    record_count: int
    data_sequence_number: int
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    is_of_one_file: bool = False
    key_metadata: bytes | None = field(default=None, repr=False)
    manifest_path: str | None = field(default=None, repr=False, compare=False)

    @property
    def is_deletion_vector(self) -> bool:
        """Whether this is a deletion vector: a blob in a Puffin file."""
        return is_deletion_vector(self.content, self.file_format)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A snapshot's change of rows, for a changelog; `ordinal` counts snapshots from 0.

    `time_us` is the time of the commit in microseconds, later than that of the snapshot before it.
    """

    type: str
    ordinal: int
    snapshot_id: int
    sequence_number: int
    time_us: int

    def values(self) -> Mapping[int, int | str]:
        """Return the values of the columns that describe the change, by field id."""
        return {
            CHANGE_TYPE.field_id: self.type,
            CHANGE_ORDINAL.field_id: self.ordinal,
            COMMIT_SNAPSHOT_ID.field_id: self.snapshot_id,
            COMMIT_SEQUENCE_NUMBER.field_id: self.sequence_number,
            COMMIT_TIMESTAMP.field_id: self.time_us,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """The rows of one data file in the byte range [start, start + length).

    A row group belongs to the range that contains its first byte. `partition` is the file's tuple
    under spec `spec_id`. If `first_row_id` is None, row ids are null. `filter_satisfied`: the
    partition values alone prove the scan's predicate for every row, so no row filter is needed.
    `residual` is an additional bound predicate that rows must fulfil, if a catalog's server asks
    for more than the scan does. `change` has the values of changelog columns. `manifest_path` is
    the manifest that lists the file, None if that is unknown.
    """

    file_path: str
    file_format: FileFormat
    file_size_in_bytes: int
    record_count: int
    start: int
    length: int
    spec_id: int
    partition: tuple[Any, ...]
    data_sequence_number: int
    first_row_id: int | None = None
    deletes: tuple[DeleteFileRef, ...] = ()
    filter_satisfied: bool = False
    residual: Predicate | None = None
    change: RowChange | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    manifest_path: str | None = field(default=None, repr=False, compare=False)


def by_path(tasks: Iterable[ScanTask]) -> dict[str, ScanTask]:
    """Return tasks of whole files by path.

    Of a file that is listed twice, which damages a table, the manifest is unknown.
    """
    files: dict[str, ScanTask] = {}
    for task in tasks:
        is_again = task.file_path in files
        files[task.file_path] = replace(task, manifest_path=None) if is_again else task
    return files


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTaskGroup:
    """The tasks that one reader processes in order: a Spark partition."""

    tasks: tuple[ScanTask, ...]


@dataclass(frozen=True, kw_only=True)
class ScanContext:
    """The information that a reader needs besides its tasks.

    `projection` is the returned schema, in order, including metadata columns. `schemas` are all
    table schemas; the first resolves the names of the scan, and older schemas give dropped equality
    columns and partition sources their type. `predicate` is bound to `schemas[0]`.
    `verify_checksums` applies to the pages of Parquet files that have checksums.
    """

    table: str
    table_location: str
    projection: Schema
    schemas: tuple[Schema, ...]
    specs: Mapping[int, PartitionSpec]
    predicate: Predicate = field(default_factory=AlwaysTrue)
    name_mapping: NameMapping | None = None
    verify_checksums: bool = True
