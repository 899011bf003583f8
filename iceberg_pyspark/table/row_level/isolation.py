"""The modes of row-level operations, and what conflicts with an operation.

The properties `write.<operation>.isolation-level` and `write.<operation>.mode` are Java's, with
Java's defaults. The checks cover the files that may have rows which the scan selected, and the
changed files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal, TypeAlias, cast

from iceberg_pyspark.changes.conflicts import ConflictChecks, FileTest, IsolationLevel, TouchedFile
from iceberg_pyspark.changes.file_filter import compile_may_match
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ROW_LEVEL_ISOLATION, ROW_LEVEL_MODE

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
