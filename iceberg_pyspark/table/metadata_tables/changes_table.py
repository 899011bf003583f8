"""Implements the metadata table `changes`: the rows that each snapshot added and deleted.

A row is added by a snapshot if it is live after the snapshot and was not before, and deleted in the
opposite case. Rows are identified by their file and position, so rewritten files show their kept
rows as deleted and added. Snapshots of operation `replace` change no row by definition
(specification, "Snapshots") and are skipped. The columns are Java's (`SparkChangelogTable`), which
reads no history with delete files; here deletes are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.formats.manifest_columns import entries_of_manifests
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.planning.scan_plan import (
    PlannedFiles,
    PlanStatistics,
    ScanPlan,
    split_into_tasks,
    tasks_of,
)
from iceberg_pyspark.planning.scan_tasks import RowChange, ScanContext, ScanTask
from iceberg_pyspark.planning.split_pack import DEFAULT_SPLIT, SplitOptions
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    COMMIT_COLUMNS,
    FILE,
    POS,
    SPEC_ID,
    lineage_columns,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.rows import batch_of
from iceberg_pyspark.table.reading.table_scan import partition_of

_EVERY_ROW = AlwaysTrue()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeScanTask:
    """Rows of a data file that one snapshot added or deleted, as `task.change` says.

    The rows are the live rows of `task` without the live rows of `other_side`, which is the same
    file with the deletes of the other side of the snapshot; None: all live rows of `task`.
    """

    task: ScanTask
    other_side: ScanTask | None = None

    @property
    def tasks(self) -> tuple[ChangeScanTask]:
        """The task itself, as of `ComparedChanges`."""
        return (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedChanges:
    """What one snapshot deleted and inserted, to be read without the rows that it only copied.

    All copies of a row are in the same object.
    """

    deletes: tuple[ChangeScanTask, ...]
    inserts: tuple[ChangeScanTask, ...]
    sequence_number: int

    @property
    def tasks(self) -> tuple[ChangeScanTask, ...]:
        """The tasks of both sides."""
        return (*self.deletes, *self.inserts)

    @property
    def has_lineage(self) -> bool:
        """Whether the rows have row ids."""
        return all(t.task.first_row_id is not None for t in self.tasks)


def changes_schema(metadata: TableMetadata) -> Schema:
    """Return the table's columns, followed by the columns that describe the change."""
    names = {f.name for f in CHANGE_COLUMNS}
    clashing_names = sorted(names.intersection(f.name for f in metadata.current_schema.fields))
    if clashing_names:
        raise InvalidRequestError(
            f"table {metadata.location} has columns with the names of columns of changes "
            f"({', '.join(clashing_names)}); rename them to read its changes"
        )
    return Schema(fields=(*metadata.current_schema.fields, *CHANGE_COLUMNS))


def hidden_of_changes(metadata: TableMetadata) -> Schema:
    """Return the hidden columns: the commit, the row's file and position, from version 3 its id."""
    partition = partition_of(metadata)
    lineage = lineage_columns(metadata.format_version)
    partitions = () if partition is None else (partition,)
    return Schema(fields=(*COMMIT_COLUMNS, SPEC_ID, FILE, POS, *lineage, *partitions))


def describing_columns(schema: Schema) -> Schema:
    """Return the columns that describe a change and its commit, but none with a column's name."""
    names = {f.name for f in schema.fields}
    columns = (*CHANGE_COLUMNS, *COMMIT_COLUMNS)
    return Schema(fields=tuple(f for f in columns if f.name not in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeForm:
    """How a plan shows changes: the texts of their types, and whether copied rows are left out.

    If it `compares`, snapshots that both delete and insert are in `ChangePlan.compared`, and not
    in `files` and `in_part`.
    """

    insert: str = "INSERT"
    delete: str = "DELETE"
    compares: bool = False


RAW = ChangeForm()


class ChangePlan:
    """The plan of the changes that snapshots of one lineage made; `snapshots` is newest first.

    Files and snapshots that cannot match the predicates are not read. Planning raises
    `NoSuchSnapshotError` if the parent of a snapshot has expired, unless the snapshot has only
    appended rows.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        table: str,
        snapshots: Sequence[Snapshot],
        *,
        predicate: Predicate = _EVERY_ROW,
        of_changes: Predicate = _EVERY_ROW,
        form: ChangeForm = RAW,
    ) -> None:
        """Plan with `predicate` bound to the table's schema, `of_changes` to a change's columns."""
        self._io = io
        self._metadata = metadata
        self._table = table
        self.snapshots = [s for s in reversed(snapshots) if s.operation != "replace"]
        """The snapshots that change rows, the oldest first."""

        self._changing = list(enumerate(self.snapshots))
        self._times_us = commit_times_us(metadata, snapshots[0].snapshot_id) if snapshots else {}
        self._predicate = predicate
        self._of_changes = of_changes
        self._form = form
        self.metrics: Collection[int] = ()
        """The columns for which entries include metrics, in addition to the predicate's columns."""

        self.statistics = PlanStatistics()
        self.in_part: list[ChangeScanTask] = []
        """The tasks for a part of a file's rows; complete after `files` is exhausted."""

        self.compared: list[ComparedChanges] = []
        """What is compared; complete after `files` is exhausted."""

    def files(self) -> Iterator[PlannedFiles]:
        """Yield the files of which all rows were added or deleted, grouped by snapshot."""
        for ordinal, snapshot in self._changing:
            inserts, deletes = self._both_changes(ordinal, snapshot)
            tasks = [change for change in (inserts, deletes) if self._is_wanted(change)]
            if not tasks:
                continue
            comparison = _SnapshotComparison(
                self._sides_of(snapshot), inserts=inserts, deletes=deletes
            )
            if self._form.compares:
                compared = comparison.compared(snapshot.sequence_number)
                if compared:
                    self.compared += compared
                    continue
            yield from (f for f in comparison.whole_files() if f.change in tasks)
            self.in_part += (t for t in comparison.in_part() if t.task.change in tasks)

    def of_each_snapshot(
        self,
    ) -> Iterator[tuple[Snapshot, list[ChangeScanTask], list[ChangeScanTask]]]:
        """Yield each snapshot, the oldest first, with its tasks: what it deleted and inserted."""
        for ordinal, snapshot in self._changing:
            inserts, deletes = self._both_changes(ordinal, snapshot)
            comparison = _SnapshotComparison(
                self._sides_of(snapshot), inserts=inserts, deletes=deletes
            )
            yield snapshot, *comparison.both_sides()

    def tasks(self, split: SplitOptions | None = DEFAULT_SPLIT) -> Iterator[ScanTask]:
        """Yield the files as scan tasks."""
        return split_into_tasks(self.files(), split)

    def change_tasks(self) -> list[ChangeScanTask | ComparedChanges]:
        """Return all tasks, for whole files, for parts of files, and for what is compared."""
        whole = [ChangeScanTask(task=t) for t in self.tasks(split=None)]
        return [*whole, *self.in_part, *self.compared]

    def _both_changes(self, ordinal: int, snapshot: Snapshot) -> tuple[RowChange, RowChange]:
        """Return what a snapshot inserts and what it deletes."""
        inserts = RowChange(
            type=self._form.insert,
            ordinal=ordinal,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            time_us=self._times_us[snapshot.snapshot_id],
        )
        return inserts, replace(inserts, type=self._form.delete)

    def _is_wanted(self, change: RowChange) -> bool:
        return bool(evaluate(self._of_changes, change.values()))

    def _sides_of(self, snapshot: Snapshot) -> tuple[_Side, _Side]:
        """Return the files before and after a snapshot, without files that cannot have changed."""
        after = read_snapshot_manifests(self._io, snapshot)
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else self._metadata.snapshot_by_id.get(parent_id)
        if parent is None and parent_id is not None:
            return _Side([]), self._without_parent(snapshot, after)
        before = [] if parent is None else read_snapshot_manifests(self._io, parent)
        # If deletes are the same, files of manifests that are on both sides have not changed.
        deletes = [{_state(m) for m in each if not _has_data(m)} for each in (before, after)]
        same = set()
        if deletes[0] == deletes[1]:
            same = {_state(m) for m in before} & {_state(m) for m in after}
        sides = [
            self._side([m for m in each if not (_has_data(m) and _state(m) in same)])
            for each in (before, after)
        ]
        return sides[0], sides[1]

    def _without_parent(self, snapshot: Snapshot, after: Sequence[ManifestFile]) -> _Side:
        """Return the files that an append added, which are known even if its parent has expired."""
        if snapshot.operation != "append":
            raise NoSuchSnapshotError(
                f"table {self._table}: what snapshot {snapshot.snapshot_id} changed is not "
                f"known, because snapshot {snapshot.parent_snapshot_id} before it has "
                f"expired; read the changes with start-snapshot-id {snapshot.snapshot_id} "
                "or a later start"
            )
        return self._side(after, only_added_by=[snapshot.snapshot_id])

    def _side(
        self, manifests: Sequence[ManifestFile], only_added_by: Sequence[int] | None = None
    ) -> _Side:
        plan = ScanPlan(
            metadata=self._metadata,
            manifests=manifests,
            predicate=self._predicate,
            read_entries=partial(entries_of_manifests, self._io),
            only_added_by=only_added_by,
            metrics=self.metrics,
        )
        return _Side(list(plan.files()))


def commit_times_us(metadata: TableMetadata, snapshot_id: int) -> dict[int, int]:
    """Return the times of a snapshot and of its ancestors in microseconds, by snapshot id.

    Clocks of writers differ, so a snapshot may have an earlier time than its parent. Here each has
    a later one.
    """
    times_us: dict[int, int] = {}
    last = 0
    ancestors = list(ancestors_of(metadata, metadata.snapshot_by_id.get(snapshot_id)))
    for snapshot in reversed(ancestors):
        last = max(snapshot.timestamp_ms * 1000, last + 1)
        times_us[snapshot.snapshot_id] = last
    return times_us


class _Side:
    """The files of one side of a snapshot."""

    def __init__(self, planned_files: Sequence[PlannedFiles]) -> None:
        self.groups = [(files, tasks_of(files)) for files in planned_files]
        self.tasks = {task.file_path: task for _, tasks in self.groups for task in tasks}


class _SnapshotComparison:
    """The two sides of a snapshot, compared to find the rows that it added or deleted."""

    def __init__(
        self, sides: tuple[_Side, _Side], *, inserts: RowChange, deletes: RowChange
    ) -> None:
        self._before, self._after = sides
        self._inserts = inserts
        self._deletes = deletes

    def whole_files(self) -> Iterator[PlannedFiles]:
        """Yield the files that are on one side only and have no deletes there."""
        for side, other, change in self._directions():
            for files, tasks in side.groups:
                rows = [
                    i
                    for i, task in enumerate(tasks)
                    if task.file_path not in other.tasks and not task.deletes
                ]
                if rows:
                    yield replace(
                        files,
                        entries=files.entries.take(pa.array(rows, pa.int64())),
                        deletes={},
                        satisfies_filter=files.satisfies_filter[rows],
                        change=change,
                    )

    def in_part(self) -> Iterator[ChangeScanTask]:
        """Yield the files with deletes on one side, or with different deletes on both sides."""
        for side, other, change in self._directions():
            for path, task in side.tasks.items():
                on_other = other.tasks.get(path)
                if on_other is None and task.deletes:
                    yield ChangeScanTask(task=replace(task, change=change))
                elif on_other is not None and set(on_other.deletes) - set(task.deletes):
                    # Rows are rarely added again: usually the other deletion vector includes these
                    # deletes.
                    yield ChangeScanTask(task=replace(task, change=change), other_side=on_other)

    def both_sides(self) -> tuple[list[ChangeScanTask], list[ChangeScanTask]]:
        """Return what the snapshot deleted, and what it inserted."""
        whole = split_into_tasks(self.whole_files(), None)
        tasks = [*(ChangeScanTask(task=t) for t in whole), *self.in_part()]
        deleted, inserted = (
            [t for t in tasks if t.task.change == change]
            for change in (self._deletes, self._inserts)
        )
        return deleted, inserted

    def compared(self, sequence_number: int) -> list[ComparedChanges]:
        """Return what is to be compared, by partition; empty if the snapshot has one side only."""
        sides = self.both_sides()
        if not all(sides):
            return []
        # A copied row stays in its partition, unless the table was partitioned in another way.
        one_spec = len({t.task.spec_id for side in sides for t in side}) == 1
        groups: dict[str, tuple[list[ChangeScanTask], list[ChangeScanTask]]] = {}
        for number, side in enumerate(sides):
            for task in side:
                key = repr(task.task.partition) if one_spec else ""
                groups.setdefault(key, ([], []))[number].append(task)
        return [
            ComparedChanges(
                deletes=tuple(deletes), inserts=tuple(inserts), sequence_number=sequence_number
            )
            for deletes, inserts in groups.values()
        ]

    def _directions(self) -> tuple[tuple[_Side, _Side, RowChange], ...]:
        return (
            (self._before, self._after, self._deletes),
            (self._after, self._before, self._inserts),
        )


def _state(manifest: ManifestFile) -> tuple[Hashable, ...]:
    """Return a key: manifests with equal keys have the same live entries."""
    return *manifest.part, manifest.dead_positions


def _has_data(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DATA


@dataclass(frozen=True, kw_only=True)
class ChangeRows:
    """A reader of tasks that are changes of one data file."""

    context: ScanContext = field(repr=False)

    def read(
        self, io: FileIO, task: ChangeScanTask, projection: Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows, with the columns that describe the change."""
        if task.other_side is None:
            yield from read_task(self._of(projection.fields), task.task, io)
            return
        positions = self._positions(io, task.other_side)
        at = {f.field_id: i for i, f in enumerate(projection.fields)}
        extra = () if POS.field_id in at else (POS,)
        at.setdefault(POS.field_id, len(at))
        for batch in read_task(self._of((*projection.fields, *extra)), task.task, io):
            rows = _without(batch, at[POS.field_id], positions)

            def column(f: NestedField, rows: pa.RecordBatch = rows) -> pa.Array:
                return rows.column(at[f.field_id])

            if rows.num_rows:
                yield batch_of(projection, rows.num_rows, column)

    def _of(self, fields: Sequence[NestedField]) -> ScanContext:
        return replace(self.context, projection=Schema(fields=tuple(fields)))

    def _positions(self, io: FileIO, task: ScanTask) -> BitMap64:
        """Return the positions of the live rows of a file."""
        positions = BitMap64()
        for batch in read_task(self._of([POS]), task, io):
            positions.update(batch.column(0).to_pylist())
        return positions


def _without(batch: pa.RecordBatch, column: int, positions: BitMap64) -> pa.RecordBatch:
    of_rows = batch.column(column).to_pylist()
    return batch.filter(pa.array(np.fromiter((p not in positions for p in of_rows), np.bool_)))
