"""A row-level operation from beginning to end: read one snapshot, run one job, commit.

A concurrent commit that touches what was read makes the operation as a whole run again on the new
snapshot, which is what it would have done had it come later; the number of tries is bounded by
`commit.retry.num-retries`. An operation whose source is pinned to an older state of the same table
is not repeated: the conflict is raised.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.commits.manifest_changes import RemoveFiles, RemoveNothing
from iceberg_pyspark.commits.snapshot_changes import OverwriteFiles, RowDelta, SnapshotAction
from iceberg_pyspark.errors import ConcurrentChangeError, IcebergError
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_task import ChangeTask
from iceberg_pyspark.spark.row_level.isolation import conflict_checks, mode_of
from iceberg_pyspark.spark.row_level.operation import Operation, RowChanges
from iceberg_pyspark.spark.row_level.target import RowLevelSession, Target, new_write_id, pinned
from iceberg_pyspark.spark.row_level.touched_rows import TouchedRows, unite
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.properties import COMMIT_NUM_RETRIES
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.commit_files import CommitOptions, commit_action
from iceberg_pyspark.table.new_data import write_context_of
from iceberg_pyspark.table.row_deletes import write_row_deletes
from iceberg_pyspark.table.table_storage import table_io
from iceberg_pyspark.table.write_rows import delete_written

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which table an operation is for, and what its snapshot shall say."""

    session: RowLevelSession
    catalog: Catalog
    identifier: TableIdentifier
    branch: str = MAIN
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    like: Any = None
    """The columns of the table as a statement of Spark's knows them."""


def run(request: Request, operation: Operation) -> tuple[LoadedTable, RowChanges]:
    """Run and commit; the table as it is then, and what was done."""
    tries = 0
    while True:
        loaded = request.catalog.load_table(request.identifier)
        io = table_io(loaded, request.catalog.properties)
        with pinned(request.session, loaded, io, request.branch, request.like) as target:
            try:
                return _run_once(request, operation, target)
            except ConcurrentChangeError as e:
                tries += 1
                most = COMMIT_NUM_RETRIES.of(loaded.metadata.properties)
                if tries > most or not operation.may_run_again:
                    raise
                _log.info("%s of %s runs again: %s", operation.name, target.name, e)


def _run_once(
    request: Request, operation: Operation, target: Target
) -> tuple[LoadedTable, RowChanges]:
    mode = mode_of(target.metadata, operation.name)
    rewritten: frozenset[str] | None = None
    if mode == "copy-on-write":
        touched = operation.touched(target)
        if touched is None:
            mode = "merge-on-read"
        else:
            rewritten = _touched_files(touched)
    frame = operation.changes(target, target.rows(rewritten), mode)
    context = _context(target) if operation.writes_rows(mode) else None
    found = _run_job(frame, context, target)
    try:
        if operation.meets_once:
            found.check_met_once(target.name)
    except IcebergError:
        delete_written(target.io, found.data_files)
        raise
    return _commit(request, operation, target, found, rewritten)


def _touched_files(touched: DataFrame) -> frozenset[str]:
    return frozenset(r[0] for r in touched.select(metadata_columns.FILE.name).distinct().collect())


def _context(target: Target) -> WriteContext:
    context = write_context_of(target.name, target.metadata, write_id=new_write_id())
    schema = context.schema
    return replace(context, schema=replace(schema, fields=(*schema.fields, *target.lineage)))


def _run_job(frame: DataFrame, context: WriteContext | None, target: Target) -> TouchedRows:
    task = ChangeTask(context=context, io=target.io)
    results = frame.mapInArrow(task, "changes binary").collect()
    return unite(pickle.loads(r.changes) for r in results)


def _commit(
    request: Request,
    operation: Operation,
    target: Target,
    found: TouchedRows,
    rewritten: Collection[str] | None,
) -> tuple[LoadedTable, RowChanges]:
    io = target.io
    write_id = new_write_id()
    written: list[DataFile] = list(found.data_files)
    try:
        touched = target.files(found.removed if rewritten is None else rewritten)
        if not touched and not found.data_files:
            return target.loaded, _row_changes(target.snapshot_id, found)
        checks = conflict_checks(
            target.metadata,
            operation.name,
            snapshot_id=target.snapshot_id,
            read=target.read_predicate(),
            touched=touched.values(),
            rows_are_kept=rewritten is not None or operation.name != "delete",
        )
        action: SnapshotAction
        if rewritten is not None:
            action = OverwriteFiles(
                removal=RemoveFiles(data_paths=frozenset(touched)) if touched else RemoveNothing(),
                data_files=found.data_files,
                checks=checks,
            )
        else:
            deletes = write_row_deletes(
                target.name,
                target.metadata,
                io,
                found.removed,
                touched,
                write_id=write_id,
            )
            written.extend(deletes.delete_files)
            action = RowDelta(
                data_files=found.data_files,
                delete_files=deletes.delete_files,
                removed_data_paths=deletes.removed_data_paths,
                removed_deletes=deletes.removed_deletes,
                checks=checks,
            )
        options = CommitOptions(
            branch=request.branch,
            snapshot_properties=request.snapshot_properties,
            write_id=write_id,
        )
        loaded = commit_action(request.catalog, target.loaded, io, action, options)
    except IcebergError as e:
        if e.safe_to_clean_up:
            delete_written(io, written)
        raise
    snapshot_id = loaded.metadata.ref_snapshot(request.branch).snapshot_id
    return loaded, _row_changes(snapshot_id, found)


def _row_changes(snapshot_id: int | None, found: TouchedRows) -> RowChanges:
    updated = found.counts.get(Op.UPDATE, 0)
    return RowChanges(
        snapshot_id=snapshot_id,
        inserted=found.counts.get(Op.INSERT, 0),
        updated=updated,
        # by place: one row may have been met by several to be deleted
        deleted=sum(map(len, found.removed.values())) - updated,
        copied=found.counts.get(Op.COPY, 0),
    )
