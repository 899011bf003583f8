"""Runs a row-level operation in this process: read one snapshot, write the changes, commit.

The changes are collected in one pass: positions of old rows, and files of new rows. If the mode is
copy-on-write, a second pass writes the remaining rows of the touched files. If a concurrent commit
conflicts with what was read, the whole operation runs again on the new snapshot, at most
`commit.retry.num-retries` times.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_in_threads
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.errors import ConcurrentChangeError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.formats.puffin.deletion_vectors import positions_mask
from iceberg_pyspark.planning.scan_tasks import ScanTask, ScanTaskGroup, by_path
from iceberg_pyspark.planning.split_pack import pack_tasks
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.metadata_columns import POS
from iceberg_pyspark.spec.table_properties import COMMIT_NUM_RETRIES
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.syncs import syncs_together
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.commits.commit_files import commit_action, snapshot_of_write
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.new_data import write_context_of
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.reading.whole_files import select_files
from iceberg_pyspark.table.row_level import change_task
from iceberg_pyspark.table.row_level.change_commit import change_action, row_changes_of
from iceberg_pyspark.table.row_level.change_task import Op, TaskChanges, carry_out
from iceberg_pyspark.table.row_level.isolation import OperationName, conflict_checks, mode_of
from iceberg_pyspark.table.row_level.row_target import Files, RowTarget
from iceberg_pyspark.table.row_level.touched_rows import RowChanges, TouchedRows, unite

_log = get_logger(__name__)

_COPIES_AT_ONCE = 2
"""The number of groups of files copied at once; each takes the memory of a row group."""


class RowOperation(Protocol):
    """A change of rows; it may be carried out several times, on newer and newer snapshots."""

    @property
    def name(self) -> OperationName:
        """The operation's name in table properties."""
        ...

    @property
    def writes_rows(self) -> bool:
        """Whether the changes have rows to write."""
        ...

    def plan(self, target: RowTarget) -> PlannedChanges:
        """Return the changes of the target's rows, which are not computed yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlannedChanges:
    """The changes of an operation on one snapshot.

    All rows that it reads fulfil `predicate`, which is bound. `changes` yields the changes of the
    rows of some files, and new rows (`change_batch`). `new_rows` are added as an append adds rows;
    if they are not None, there is a snapshot even if nothing changes.
    """

    predicate: Predicate
    changes: Callable[[Files], Iterator[pa.RecordBatch]]
    new_rows: list[pa.RecordBatch] | None = None


def change_batch(
    op: Op, columns: Mapping[str, pa.Array], path: str | None = None
) -> pa.RecordBatch:
    """Return rows with one operation; `columns` has the values, and `_pos` the positions if any."""
    rows = len(next(iter(columns.values())))
    positions = columns.get(POS.name) if path is not None else None
    file = pa.DictionaryArray.from_arrays(
        pa.nulls(rows, pa.int32()) if path is None else np.zeros(rows, np.int32),
        pa.array([] if path is None else [path], pa.string()),
    )
    arrays = {
        change_task.OP: pa.array(np.full(rows, int(op), np.int32)),
        change_task.FILE: file,
        change_task.POS: pa.nulls(rows, pa.int64()) if positions is None else positions,
        **{name: array for name, array in columns.items() if name != POS.name},
    }
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def columns_of(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the columns of a batch by name."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))


@dataclass(frozen=True, kw_only=True)
class RowChanger:
    """The table of an operation, and how to load and commit it.

    `load` returns the newest state and its storage.
    """

    catalog: Catalog
    load: Callable[[], tuple[LoadedTable, FileIO]]
    options: CommitOptions
    clock: Clock
    case_sensitive: bool

    def run(self, operation: RowOperation) -> tuple[LoadedTable, RowChanges]:
        """Run and commit an operation; return the table after the commit, and the counts."""
        tries = 0
        while True:
            loaded_table, io = self.load()
            target = RowTarget(
                loaded_table=loaded_table,
                io=io,
                branch=self.options.branch,
                write_id=str(uuid.uuid4()),
                case_sensitive=self.case_sensitive,
            )
            try:
                with syncs_together():
                    return self._attempt(operation, target)
            except ConcurrentChangeError as e:
                tries += 1
                if tries > COMMIT_NUM_RETRIES.of(loaded_table.metadata.properties):
                    raise
                _log.info("%s of %s runs again: %s", operation.name, target.name, e)

    def _attempt(
        self, operation: RowOperation, target: RowTarget
    ) -> tuple[LoadedTable, RowChanges]:
        metadata, io = target.metadata, target.io
        snapshot_id = target.snapshot_id  # refuses a missing branch before anything is read
        planned = operation.plan(target)
        predicate = planned.predicate
        scan = target.scan(predicate)
        whole: Files = {}
        files: Files
        if operation.name == "delete":
            selection = select_files(scan)
            # how many rows equality deletes have deleted is known only by reading
            whole = {p: t for p, t in selection.whole.items() if not _has_equality_deletes(t)}
            read = (p for p in selection.whole if p not in whole)
            files = {**selection.partial, **{p: selection.whole[p] for p in read}}
        else:
            files = by_path(scan.plan().tasks(split=None))
        rewrites = mode_of(metadata, operation.name) == "copy-on-write"
        context = target.write_context()
        first = carry_out(
            context if operation.writes_rows else None,
            planned.changes(files),
            io,
            partition_id=0,
            task_id=0,
        )
        with WrittenFiles(io, first.data_files) as written_files:
            rows = unite([first])
            rows.check_single_matches(target.name)
            if planned.new_rows is not None:
                rows = _with_new(target, planned.new_rows, rows, written_files)
            if rewrites and rows.removed_positions:
                rows = _with_rest(target, context, files, rows, written_files)
            row_changes = row_changes_of(rows, whole.values(), target.name, metadata, io)
            touched_files = {**{p: files[p] for p in rows.removed_positions}, **whole}
            if not touched_files and not rows.data_files and planned.new_rows is None:
                return target.loaded_table, replace(row_changes, snapshot_id=snapshot_id)
            checks = conflict_checks(
                metadata,
                operation.name,
                snapshot_id=snapshot_id,
                read_predicate=predicate,
                source_predicate=lambda: predicate,
                touched_tasks=touched_files.values(),
                rows_are_kept=rewrites or operation.name != "delete",
            )
            action = change_action(
                target.name,
                metadata,
                io,
                rows,
                written_files,
                rewritten=rewrites,
                touched_files=touched_files,
                whole_paths=whole.keys(),
                checks=checks,
                write_id=target.write_id,
            )
            committed = commit_action(
                self.catalog,
                target.loaded_table,
                io,
                action,
                replace(self.options, write_id=target.write_id),
                written_files=written_files,
                clock=self.clock,
            )
        snapshot = snapshot_of_write(committed.metadata, target.branch, target.write_id)
        return committed, replace(row_changes, snapshot_id=snapshot.snapshot_id)


def _has_equality_deletes(task: ScanTask) -> bool:
    return any(d.content is FileContent.EQUALITY_DELETES for d in task.deletes)


def _with_new(
    target: RowTarget,
    new_rows: list[pa.RecordBatch],
    rows: TouchedRows,
    written_files: WrittenFiles,
) -> TouchedRows:
    """Write further rows as an append does."""
    context = write_context_of(target.name, target.metadata, target.io, write_id=target.write_id)
    files = write_in_threads(context, new_rows, target.io)
    written_files.add(files)
    inserted = rows.counts.get(Op.INSERT, 0) + sum(batch.num_rows for batch in new_rows)
    return replace(
        rows,
        data_files=(*rows.data_files, *files),
        counts={**rows.counts, Op.INSERT: inserted},
    )


def _with_rest(
    target: RowTarget,
    context: WriteContext,
    files: Files,
    rows: TouchedRows,
    written_files: WrittenFiles,
) -> TouchedRows:
    """Copy the rows of the touched files that no change removes.

    Files that a scan would read in one task are copied together, so that the new files are not
    small, and their bounds stay narrow.
    """

    def copied(number: int, group: ScanTaskGroup) -> TaskChanges:
        remaining = _remaining(target, group.tasks, rows.removed_positions)
        # the number of the task makes names of files different from those of new rows
        copies = carry_out(context, remaining, target.io, partition_id=number, task_id=1)
        written_files.add(copies.data_files)
        return copies

    tasks = (files[path] for path in rows.removed_positions)
    groups = pack_tasks(tasks, target.scan(AlwaysTrue()).split)
    # the block ends when all copies are written or have failed
    with ThreadPoolExecutor(_COPIES_AT_ONCE, thread_name_prefix="copy-rows") as pool:
        try:
            # with the context of this thread, files are synced together
            contexts = [copy_context() for _ in groups]
            runs = pool.map(lambda c, *args: c.run(copied, *args), contexts, count(1), groups)
            rest = unite(runs)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return replace(
        rows, data_files=rows.data_files + rest.data_files, counts={**rows.counts, **rest.counts}
    )


def _remaining(
    target: RowTarget, tasks: Iterable[ScanTask], removed: Mapping[str, BitMap64]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files that no change removes, as copies."""
    for path, batch in target.all_of(tasks):
        kept = _without(batch, removed[path])
        if kept.num_rows:
            yield change_batch(Op.COPY, columns_of(kept))


def _without(batch: pa.RecordBatch, removed: BitMap64) -> pa.RecordBatch:
    if not batch.num_rows:
        return batch
    positions = batch.column(POS.name).to_numpy()
    first, last = int(positions[0]), int(positions[-1])
    is_removed = positions_mask(removed, first, last - first + 1)[positions - first]
    return batch.filter(pa.array(~is_removed)) if is_removed.any() else batch
