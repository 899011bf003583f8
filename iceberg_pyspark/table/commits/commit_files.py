"""Commits files that are already written: the last step of every write.

The functions take the table as it was loaded when the operation read it, refresh, and return the
table as committed. If the commit is refused, the files in `written_files` are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks, FileTest, IsolationLevel
from iceberg_pyspark.changes.file_filter import compile_file_match, compile_may_match
from iceberg_pyspark.changes.removals import RemoveAll, RemoveWhere
from iceberg_pyspark.changes.snapshot_changes import (
    AppendFiles,
    OverwriteFiles,
    OverwritePartitions,
    SnapshotAction,
)
from iceberg_pyspark.changes.summary import WRITE_ID
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.condition_text import condition_text
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK, Clock
from iceberg_pyspark.table.commits.commit import CommitStep, Start, commit_steps
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.written_files import WrittenFiles

OverwriteMode: TypeAlias = Literal["static", "dynamic"] | Predicate
"""The rows to replace: all rows, the partitions written to, or the rows of an (unbound) filter."""


def commit_action(
    catalog: Catalog,
    table: LoadedTable,
    io: FileIO,
    action: SnapshotAction,
    options: CommitOptions | None = None,
    *,
    written_files: WrittenFiles | None = None,
    before: Sequence[CommitStep] = (),
    start: Start = "newest",
    clock: Clock = SYSTEM_CLOCK,
    schema: Schema | None = None,
) -> LoadedTable:
    """Commit one action as one snapshot of `options.branch`, together with the steps `before`.

    The operation began with `schema`, by default the schema of `table`.

    The default start is the newest table, since the table loaded at the start of the write is
    usually outdated. If the table already has a snapshot with the write id, an earlier try has
    succeeded, and the table is returned unchanged.
    """
    step = SnapshotStep(
        action,
        io,
        options,
        table_uuid=table.metadata.table_uuid,
        clock=clock,
        written_files=written_files,
        schema=schema or table.metadata.current_schema,
    )
    return commit_steps(
        catalog, table, [*before, step], written_files=written_files, start=start, clock=clock
    )


def snapshot_of_write(metadata: TableMetadata, branch: str, write_id: str) -> Snapshot:
    """Return the snapshot that a write has just committed to a branch."""
    ref = metadata.refs.get(branch)
    head = None if ref is None else metadata.snapshot(ref.snapshot_id)
    if head is not None and head.has_value(WRITE_ID, write_id):
        return head
    # another commit was next
    return next(s for s in reversed(metadata.snapshots) if s.has_value(WRITE_ID, write_id))


def write_action(
    table: LoadedTable,
    data_files: Iterable[DataFile],
    mode: OverwriteMode | None,
    *,
    branch: str = MAIN,
    isolation: IsolationLevel | None = None,
    validates_from: int | None = None,
) -> SnapshotAction:
    """Return the action that adds data files and removes the data that `mode` selects, if any.

    With an isolation level, changes of the selected data since `table` was loaded, or since the
    snapshot `validates_from`, are refused; without a level they are overwritten too.
    """
    files = tuple(data_files)
    if mode is None:
        return AppendFiles(data_files=files)
    metadata = table.metadata
    ref = metadata.refs.get(branch)
    base_id = None if ref is None else ref.snapshot_id
    if validates_from is not None:
        base_id = metadata.snapshot(validates_from).snapshot_id
    if mode == "dynamic":
        partitions = {(f.spec_id, partition_key(f.partition)) for f in files}
        is_unpartitioned = any(metadata.spec_by_id[f.spec_id].is_unpartitioned for f in files)
        return OverwritePartitions(
            data_files=files,
            checks=_overwrite_checks(
                base_id,
                isolation,
                lambda f: is_unpartitioned or (f.spec_id, partition_key(f.partition)) in partitions,
            ),
        )
    if mode == "static":
        checks = _overwrite_checks(base_id, isolation, lambda f: True)
        return OverwriteFiles(removal=RemoveAll(), data_files=files, checks=checks)
    bound = bind(mode, metadata.current_schema)
    checks = _overwrite_checks(base_id, isolation, compile_may_match(bound, metadata))
    removal = RemoveWhere(compile_file_match(bound, metadata), condition_text(mode))
    return OverwriteFiles(removal=removal, data_files=files, checks=checks)


def _overwrite_checks(
    base_snapshot_id: int | None, isolation: IsolationLevel | None, is_replaced: FileTest
) -> ConflictChecks | None:
    if isolation is None:
        return None
    return ConflictChecks(
        base_snapshot_id=base_snapshot_id,
        no_new_data=is_replaced if isolation == "serializable" else None,
        no_removed_data=is_replaced,
        no_new_deletes=is_replaced,
    )
