"""The task of a row-level operation: writes new rows, and collects the positions of old rows.

A row of the changes has an operation, the position of the target row that it changes (null if there
is none), and the values of the row to write, if any. The task runs on executors, which import this
module, and returns only file names, bitmaps and counts (`TaskChanges`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from iceberg_pyspark.arrow.arrays import number_array, raw_values, validity
from iceberg_pyspark.arrow.read.position_deletes import bitmap_of, positions_by_path
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO

OP = "__ice_op"
FILE = "__ice_file"
POS = "__ice_pos"


class Op(IntEnum):
    """The operation on a row."""

    DELETE = 0
    UPDATE = 1
    INSERT = 2
    COPY = 3
    """The row is written again unchanged, because its file is rewritten."""
    KEEP_UNCHANGED = 4
    """A source row matched the row without changing it; a second match is still an error."""


WRITE_OPS = (Op.UPDATE, Op.INSERT, Op.COPY)
_WRITE_OPS = number_array(np.array(WRITE_OPS, np.int32))
_REMOVE_OPS = (Op.DELETE, Op.UPDATE)

ClauseOp: TypeAlias = Literal[Op.UPDATE, Op.DELETE, Op.INSERT]
"""The operations that a clause of a MERGE may have."""


@dataclass(frozen=True, kw_only=True)
class TaskChanges:
    """The result of one task; bitmaps are in their portable form, by data file path.

    `removed_positions` are those of removed target rows, `unchanged_positions` those of matched
    rows that stay. `duplicate_match` is a data file in which a row was matched twice.
    """

    data_files: tuple[DataFile, ...]
    removed_positions: Mapping[str, bytes]
    unchanged_positions: Mapping[str, bytes]
    duplicate_match: str | None
    counts: Mapping[Op, int]


@dataclass(frozen=True, kw_only=True)
class ChangeTask:
    """The work of one task; `context` is None if no rows are written."""

    context: WriteContext | None
    io: FileIO

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition_id: int, task_id: int
    ) -> tuple[tuple[DataFile, ...], TaskChanges]:
        """Carry out the changes of one partition and return its new files and its result."""
        changes = carry_out(
            self.context, batches, self.io, partition_id=partition_id, task_id=task_id
        )
        return changes.data_files, changes


def carry_out(
    context: WriteContext | None,
    batches: Iterable[pa.RecordBatch],
    io: FileIO,
    *,
    partition_id: int,
    task_id: int,
) -> TaskChanges:
    """Write the new rows of one task and collect the positions of the changed rows."""
    positions = _Positions()
    files: list[DataFile] = []
    if context is None:
        for batch in batches:
            positions.add_batch(batch)
    else:
        files = write_data_files(
            context, positions.rows_of(batches), io, partition_id=partition_id, task_id=task_id
        )
    return positions.changes(files)


@dataclass(slots=True)
class _Positions:
    """Positions and counts that are collected batch by batch."""

    removed_positions: dict[str, BitMap64] = field(default_factory=dict)
    unchanged_positions: dict[str, BitMap64] = field(default_factory=dict)
    counts: dict[Op, int] = field(default_factory=dict)
    duplicate_match: str | None = None

    def rows_of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Collect the positions of each batch, then yield its rows to write."""
        for batch in batches:
            self.add_batch(batch)
            is_written = pc.is_in(batch.column(OP), value_set=_WRITE_OPS)
            rows = batch.drop_columns([OP, FILE, POS])
            if not pc.all(is_written).as_py():
                rows = rows.filter(is_written)
            if rows.num_rows:
                yield rows

    def add_batch(self, batch: pa.RecordBatch) -> None:
        ops = raw_values(batch.column(OP))
        count_by_op = np.bincount(ops, minlength=len(Op))
        for op in Op:
            if count_by_op[op]:
                self.counts[op] = self.counts.get(op, 0) + int(count_by_op[op])
        has_position = validity(batch.column(POS))
        is_removed = np.isin(ops, _REMOVE_OPS) & has_position
        self._add(batch, is_removed, self.removed_positions)
        self._add(batch, has_position & ~is_removed, self.unchanged_positions)

    def _add(self, batch: pa.RecordBatch, rows: np.ndarray, into: dict[str, BitMap64]) -> None:
        if not rows.any():
            return
        for path, here in positions_by_path(batch.column(FILE), batch.column(POS), rows):
            bitmap = into.setdefault(path, BitMap64())
            before = len(bitmap)
            bitmap |= bitmap_of(here)
            into[path] = bitmap
            if len(bitmap) - before < len(here):
                self.duplicate_match = path

    def changes(self, files: list[DataFile]) -> TaskChanges:
        """Return the result of the task."""
        return TaskChanges(
            data_files=tuple(files),
            removed_positions=_serialize(self.removed_positions),
            unchanged_positions=_serialize(self.unchanged_positions),
            duplicate_match=self.duplicate_match,
            counts=dict(self.counts),
        )


def _serialize(bitmaps: Mapping[str, BitMap64]) -> dict[str, bytes]:
    out = {}
    for path, bitmap in bitmaps.items():
        bitmap.run_optimize()
        out[path] = bitmap.serialize()
    return out
