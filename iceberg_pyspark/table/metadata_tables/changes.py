"""The metadata table `changes`: which rows each snapshot of a history added and took away.

A row is added by a snapshot, or deleted by it, if it is live after the snapshot and was not before,
or the other way round: rows are told apart by their file and position, so that files which are
written anew show the rows they keep as deleted and added. Snapshots of operation `replace` change
no row by definition (specification, "Snapshots") and are passed over. Columns are Java's
(`SparkChangelogTable`), which reads no history with delete files; here they are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.schemas import arrow_type
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.planning.scan_plan import ScanPlan
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    FILE,
    LINEAGE,
    POS,
    SPEC_ID,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.manifest_columns import read_entries
from iceberg_pyspark.storage.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.table.metadata_tables.rows import batch_of
from iceberg_pyspark.table.reading.scan import partition_of

ChangeType: TypeAlias = Literal["INSERT", "DELETE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTask:
    """The rows of a data file that one snapshot added or deleted.

    They are the live rows of `task` without those of `kept`, which is the same file with the
    deletes of the other side of the snapshot; None: all of them.
    """

    type: ChangeType
    ordinal: int
    snapshot_id: int
    task: ScanTask
    kept: ScanTask | None = None


def changes_schema(metadata: TableMetadata) -> Schema:
    """The table's columns, then what is said of the change."""
    names = {f.name for f in CHANGE_COLUMNS}
    taken = sorted(names.intersection(f.name for f in metadata.current_schema.fields))
    if taken:
        raise InvalidRequestError(
            f"table {metadata.location} has columns named as those of changes "
            f"({', '.join(taken)}); rename them to read its changes"
        )
    return Schema(fields=(*metadata.current_schema.fields, *CHANGE_COLUMNS))


def hidden_of_changes(metadata: TableMetadata) -> Schema:
    """Where a changed row was or is, and from version 3 which row it is."""
    partition = partition_of(metadata)
    lineage = LINEAGE if metadata.format_version >= 3 else ()
    partitions = () if partition is None else (partition,)
    return Schema(fields=(SPEC_ID, FILE, POS, *lineage, *partitions))


def plan_changes(
    io: FileIO, metadata: TableMetadata, table: str, snapshots: Sequence[Snapshot]
) -> list[ChangeTask]:
    """The changes that snapshots of one lineage made, the newest of which comes first.

    Raises `NoSuchSnapshotError` where what was before a snapshot has expired, unless it has only
    appended rows.
    """
    changes: list[ChangeTask] = []
    changing = [s for s in reversed(snapshots) if s.operation != "replace"]
    for ordinal, snapshot in enumerate(changing):
        compared = _Compared(io, metadata, table, snapshot)
        for type_, task, kept in compared.changes():
            changes.append(
                ChangeTask(
                    type=type_,
                    ordinal=ordinal,
                    snapshot_id=snapshot.snapshot_id,
                    task=task,
                    kept=kept,
                )
            )
    return changes


_Change: TypeAlias = tuple[ChangeType, ScanTask, ScanTask | None]


class _Compared:
    """A snapshot beside its parent."""

    def __init__(self, io: FileIO, metadata: TableMetadata, table: str, snapshot: Snapshot) -> None:
        self._io = io
        self._metadata = metadata
        self._table = table
        self._snapshot = snapshot

    def changes(self) -> Iterator[_Change]:
        """Files with the rows that it added or deleted."""
        after = read_snapshot_manifests(self._io, self._snapshot)
        parent_id = self._snapshot.parent_snapshot_id
        parent = None if parent_id is None else self._metadata.snapshot_by_id.get(parent_id)
        if parent is None and parent_id is not None:
            yield from self._without_parent(after)
            return
        before = [] if parent is None else read_snapshot_manifests(self._io, parent)
        # where deletes are the same, files of manifests that are in both have not changed
        deletes = [{m.manifest_path for m in each if not _has_data(m)} for each in (before, after)]
        same = set()
        if deletes[0] == deletes[1]:
            same = {m.manifest_path for m in before} & {m.manifest_path for m in after}
        files = [
            self._files([m for m in each if not (_has_data(m) and m.manifest_path in same)])
            for each in (before, after)
        ]
        yield from _changed_files(*files)

    def _without_parent(self, after: Sequence[ManifestFile]) -> Iterator[_Change]:
        """Of a snapshot whose parent has expired what it appended is known, and nothing else."""
        if self._snapshot.operation != "append":
            raise NoSuchSnapshotError(
                f"table {self._table}: what snapshot {self._snapshot.snapshot_id} changed is not "
                f"known, because snapshot {self._snapshot.parent_snapshot_id} before it has "
                f"expired; read the changes with start-snapshot-id {self._snapshot.snapshot_id} "
                "or a later start"
            )
        for task in self._files(after, only_added=True).values():
            yield "INSERT", task, None

    def _files(
        self, manifests: Sequence[ManifestFile], *, only_added: bool = False
    ) -> dict[str, ScanTask]:
        plan = ScanPlan(
            metadata=self._metadata,
            manifests=manifests,
            predicate=AlwaysTrue(),
            read_entries=partial(read_entries, self._io),
            only_added_by=[self._snapshot.snapshot_id] if only_added else None,
        )
        return {task.file_path: task for task in plan.tasks(split=None)}


def _has_data(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DATA


def _changed_files(
    before: Mapping[str, ScanTask], after: Mapping[str, ScanTask]
) -> Iterator[_Change]:
    for path, old in before.items():
        if path not in after:
            yield "DELETE", old, None
    for path, new in after.items():
        file_before = before.get(path)
        if file_before is None:
            yield "INSERT", new, None
            continue
        added = set(new.deletes) - set(file_before.deletes)
        removed = set(file_before.deletes) - set(new.deletes)
        if added:
            yield "DELETE", file_before, new
        if removed:
            # most often by a deletion vector that has the same rows and more
            yield "INSERT", new, file_before


@dataclass(frozen=True, kw_only=True)
class ChangeRows:
    """Reads tasks that are changes of one data file."""

    context: ScanContext = field(repr=False)

    def read(self, io: FileIO, task: ChangeTask, projection: Schema) -> Iterator[pa.RecordBatch]:
        """The rows, with what is said of the change."""
        facts = {
            CHANGE_TYPE.field_id: task.type,
            CHANGE_ORDINAL.field_id: task.ordinal,
            COMMIT_SNAPSHOT_ID.field_id: task.snapshot_id,
        }
        fields = tuple(f for f in projection.fields if f.field_id not in facts)
        place = {f.field_id: i for i, f in enumerate(fields)}
        kept = None if task.kept is None else self._positions(io, task.kept)
        if kept is not None and POS.field_id not in place:
            place[POS.field_id] = len(fields)
            fields = (*fields, POS)
        for batch in read_task(self._of(fields), task.task, io):
            rows = batch if kept is None else _without(batch, place[POS.field_id], kept)

            def column(f: NestedField, rows: pa.RecordBatch = rows) -> pa.Array:
                if f.field_id in facts:
                    value = pa.scalar(facts[f.field_id], arrow_type(f.type))
                    return pa.repeat(value, rows.num_rows)
                return rows.column(place[f.field_id])

            if rows.num_rows:
                yield batch_of(projection, rows.num_rows, column)

    def _of(self, fields: Sequence[NestedField]) -> ScanContext:
        return replace(self.context, projection=Schema(fields=tuple(fields)))

    def _positions(self, io: FileIO, task: ScanTask) -> BitMap64:
        """Where the live rows of a file are."""
        positions = BitMap64()
        for batch in read_task(self._of([POS]), task, io):
            positions.update(batch.column(0).to_pylist())
        return positions


def _without(batch: pa.RecordBatch, column: int, positions: BitMap64) -> pa.RecordBatch:
    of_rows = batch.column(column).to_pylist()
    return batch.filter(pa.array(np.fromiter((p not in positions for p in of_rows), np.bool_)))
