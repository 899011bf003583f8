"""The interface of row-level operations: their modes, their conflicts, and their result.

The properties `write.<operation>.isolation-level` and `write.<operation>.mode` are Java's, with
Java's defaults. The checks cover the files that may have rows which the scan selected, and the
changed files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol, TypeAlias, cast

from pyspark.sql import DataFrame

from iceberg_pyspark.changes.conflicts import ConflictChecks, FileTest, IsolationLevel, TouchedFile
from iceberg_pyspark.changes.file_filter import compile_may_match
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.row_level.key_range import Source
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ROW_LEVEL_ISOLATION, ROW_LEVEL_MODE
from iceberg_pyspark.table.reading.whole_files import FileSelection

OperationName: TypeAlias = Literal["delete", "update", "merge"]
Mode: TypeAlias = Literal["copy-on-write", "merge-on-read"]


def mode_of(metadata: TableMetadata, operation: OperationName) -> Mode:
    """Return the table's mode for the operation; format version 1 allows only copy-on-write."""
    mode = ROW_LEVEL_MODE[operation].of(metadata.properties)
    if mode == "copy-on-write" or metadata.format_version < 2:
        return "copy-on-write"
    return "merge-on-read"


def isolation_of(metadata: TableMetadata, operation: OperationName) -> IsolationLevel:
    """Return the table's isolation level for the operation."""
    return cast("IsolationLevel", ROW_LEVEL_ISOLATION[operation].of(metadata.properties))


def conflict_checks(
    metadata: TableMetadata,
    operation: OperationName,
    *,
    snapshot_id: int | None,
    read_predicate: Predicate,
    source_predicate: Callable[[], Predicate],
    touched_tasks: Iterable[ScanTask],
    rows_are_kept: bool,
) -> ConflictChecks:
    """Return the conflict checks of an operation that touched these files.

    The operation has read the rows that match `read_predicate`, and only those that match
    `source_predicate` matter to it; that is called at most once, and only if a file may have rows
    that match `read_predicate`. `rows_are_kept` means that rows of
    the files are written again, which would undo deletes that other commits add to the files in the
    meantime.
    """
    files = tuple(touched_tasks)
    serializable = isolation_of(metadata, operation) == "serializable"
    return ConflictChecks(
        base_snapshot_id=snapshot_id,
        no_new_data=_may_matter(read_predicate, source_predicate, metadata)
        if serializable
        else None,
        still_live=frozenset(f.file_path for f in files),
        no_new_deletes_for=tuple(
            TouchedFile(file_path=f.file_path, spec_id=f.spec_id, partition=f.partition)
            for f in files
        )
        if rows_are_kept
        else (),
    )


def _may_matter(
    read_predicate: Predicate, source_predicate: Callable[[], Predicate], metadata: TableMetadata
) -> FileTest:
    was_read = compile_may_match(read_predicate, metadata)

    @cache
    def matches_source() -> FileTest:
        return compile_may_match(source_predicate(), metadata)

    return lambda f: was_read(f) and matches_source()(f)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """The counts of changed rows, and the id of the snapshot that the operation created.

    Without any change, `snapshot_id` is the id of the unchanged snapshot. `copied` rows were
    written again unchanged, because their files were rewritten.
    """

    snapshot_id: int | None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    copied: int = 0


class Operation(Protocol):
    """A DELETE, UPDATE or MERGE that can be run on a target."""

    @property
    def name(self) -> OperationName:
        """The operation's name in table properties."""
        ...

    @property
    def requires_single_match(self) -> bool:
        """Whether each row of the table may match at most one row of the source."""
        ...

    @property
    def may_run_again(self) -> bool:
        """Whether the operation can be repeated on a newer snapshot after a conflict."""
        ...

    @property
    def source(self) -> DataFrame | None:
        """The source that the operation reads besides the table, or None."""
        ...

    def selection(self, target: Target) -> FileSelection | None:
        """Return the files and rows that the operation selects, if metadata determine them, or
        None.
        """
        ...

    def writes_rows(self, mode: Mode) -> bool:
        """Return whether the operation may write rows."""
        ...

    def needs_no_rebalance(self, target: Target) -> bool:
        """Return whether the tasks already get as many rows to write as after a rebalancing."""
        ...

    def sources(self, target: Target, rows: DataFrame) -> list[Source]:
        """Return the sources of which a row of the target must match some row each to matter.

        A row that does not is neither changed nor does it decide which rows are inserted.
        """
        ...

    def touched_files(self, target: Target) -> DataFrame | None:
        """Return target rows whose files must be rewritten, or None if no target row changes."""
        ...

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """Return the changes of the target's rows (`change_task.py`)."""
        ...

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """Return the operation's additional entries for the snapshot summary."""
        ...
