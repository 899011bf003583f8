"""Finds the rows that a snapshot deleted and added again unchanged, as copy-on-write does.

With row lineage, a copied row keeps its row id and the sequence number of its last update. Rows
without lineage are compared by their values; of equal rows, as many are left out on one side as on
the other. Memory is bounded: row ids are kept as bitmaps, and of values a hash of each row, of a
limited number of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from iceberg_pyspark.arrow.row_hashes import RowHashes, row_hashes
from iceberg_pyspark.spec.metadata_columns import LINEAGE
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.metadata_tables.changes_table import ChangeScanTask

Tasks: TypeAlias = Sequence[ChangeScanTask]
Batches: TypeAlias = Iterator[pa.RecordBatch]
Mask: TypeAlias = npt.NDArray[np.bool_]
Indices: TypeAlias = npt.NDArray[np.int64]

ReadTasks: TypeAlias = Callable[[Tasks, Sequence[NestedField]], Batches]
"""Reads these fields of the rows of tasks; equal calls return equal batches."""

ROWS_AT_A_TIME = 4_000_000
"""The most rows whose hashes are in memory; of more rows, a part is compared after the other."""


def without_carried_rows(
    read: ReadTasks,
    fields: Sequence[NestedField],
    *,
    deletes: Tasks,
    inserts: Tasks,
    compared: int,
    sequence_number: int,
) -> Batches:
    """Yield these fields of the rows that one snapshot deleted, and then of those it added.

    `compared` is the number of the first fields, by whose values rows are equal without lineage.
    """
    has_lineage = all(t.task.first_row_id is not None for t in (*deletes, *inserts))
    if not (deletes and inserts):
        yield from read(deletes or inserts, fields)
    elif has_lineage:
        yield from _by_lineage(read, fields, deletes, inserts, sequence_number)
    else:
        yield from _by_values(read, fields, deletes, inserts, compared)


class _RowVersions:
    """A set of row versions: bitmaps of row ids by the sequence number of their last update."""

    def __init__(self) -> None:
        self._ids: dict[int, BitMap64] = {}

    def __bool__(self) -> bool:
        return bool(self._ids)

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Return which rows are in the set, by the last two columns of the batch."""
        result = np.zeros(batch.num_rows, np.bool_)
        for number, at, ids in _versions(batch):
            if number in self._ids:
                known = self._ids[number]
                result[at] = [i in known for i in ids]
        return result

    def add(self, batch: pa.RecordBatch) -> None:
        for number, _, ids in _versions(batch):
            self._ids.setdefault(number, BitMap64()).update(ids)


def _versions(batch: pa.RecordBatch) -> Iterator[tuple[int, Indices, list[int]]]:
    """Yield the rows of each sequence number: their indices in the batch, and their row ids."""
    row_ids, numbers = (batch.column(i).to_numpy() for i in (-2, -1))
    for number in np.unique(numbers):
        at = np.flatnonzero(numbers == number)
        yield int(number), at, row_ids[at].tolist()


def _by_lineage(
    read: ReadTasks,
    fields: Sequence[NestedField],
    deletes: Tasks,
    inserts: Tasks,
    sequence_number: int,
) -> Batches:
    lineage_ids = {f.field_id for f in LINEAGE}
    others = [f for f in fields if f.field_id not in lineage_ids]
    at = {f.field_id: i for i, f in enumerate((*others, *LINEAGE))}
    copied, carried = _RowVersions(), _RowVersions()
    for batch in read(inserts, LINEAGE):
        # a row that this snapshot has updated is no copy
        copied.add(batch.filter(pa.array(batch.column(1).to_numpy() < sequence_number)))
    for batch in read(deletes, LINEAGE) if copied else ():
        carried.add(batch.filter(pa.array(copied.mask(batch))))
    for tasks in (deletes, inserts):
        for batch in read(tasks, (*others, *LINEAGE)):
            rows = batch.filter(pa.array(~carried.mask(batch))) if carried else batch
            yield rows.select([at[f.field_id] for f in fields])


def _by_values(
    read: ReadTasks,
    fields: Sequence[NestedField],
    deletes: Tasks,
    inserts: Tasks,
    compared: int,
) -> Batches:
    def hashes(tasks: Tasks) -> Iterator[RowHashes]:
        return (row_hashes(batch.select(range(compared))) for batch in read(tasks, fields))

    sides = (deletes, inserts)
    carried = (_Masks(), _Masks())
    smaller = min((0, 1), key=lambda side: _rows(sides[side]))
    parts = _rows(sides[smaller]) // ROWS_AT_A_TIME + 1
    for part in range(parts):
        kept = [np.empty((2, 0), np.uint64)]
        in_part = _Masks()
        for number, of_batch in enumerate(hashes(sides[smaller])):
            mask = of_batch[0] % np.uint64(parts) == part
            in_part.add(number, mask)
            kept.append(of_batch[:, mask])
        counts = _Counts(np.concatenate(kept, axis=1))
        for number, of_batch in enumerate(hashes(sides[1 - smaller])):
            carried[1 - smaller].add(number, counts.take(of_batch))
        taken = counts.taken()
        for number, of_batch in enumerate(kept[1:]):
            mask = in_part.of(number)
            mask[mask], taken = np.split(taken, [of_batch.shape[1]])
            carried[smaller].add(number, mask)
    for tasks, masks in zip(sides, carried, strict=True):
        for number, batch in enumerate(read(tasks, fields)):
            yield batch.filter(pa.array(~masks.of(number)))


def _rows(tasks: Tasks) -> int:
    return sum(max(t.task.record_count, 0) for t in tasks)


@dataclass
class _Masks:
    """A mask for each batch of a side, of one bit a row."""

    _packed: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    _rows: list[int] = field(default_factory=list)

    def add(self, number: int, mask: Mask) -> None:
        """Add the rows of a mask to those of a batch."""
        packed = np.packbits(mask)
        if number == len(self._packed):
            self._packed.append(packed)
            self._rows.append(len(mask))
        else:
            self._packed[number] |= packed

    def of(self, number: int) -> Mask:
        """Return the mask of a batch."""
        bits = np.unpackbits(self._packed[number], count=self._rows[number])
        return bits.astype(np.bool_)


class _Counts:
    """How often each row of one side occurs, and how often the other side has taken it."""

    def __init__(self, hashes: RowHashes) -> None:
        first, second = hashes
        self._first, at, self._places, self._counts = np.unique(
            first, return_index=True, return_inverse=True, return_counts=True
        )
        self._second = second[at]
        # If rows share only half of a hash, none of them is left out, which is also right.
        self._counts[self._places[self._second[self._places] != second]] = 0
        self._left = self._counts.copy()

    def take(self, hashes: RowHashes) -> Mask:
        """Return which of these rows have an equal row that was not taken yet, and take it."""
        found = np.zeros(hashes.shape[1], np.bool_)
        if len(self._first):
            places = np.searchsorted(self._first, hashes[0])
            places[places == len(self._first)] = 0
            found = (self._first[places] == hashes[0]) & (self._second[places] == hashes[1])
            found[found] = _first_ones(places[found], self._left)
            self._left -= np.bincount(places[found], minlength=len(self._left))
        return found

    def taken(self) -> Mask:
        """Return which of the counted rows were taken."""
        return _first_ones(self._places, self._counts - self._left)


def _first_ones(places: Indices, counts: Indices) -> Mask:
    """Return a mask of the first rows with each place, as many as its count."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    begins = np.flatnonzero(is_new)
    rank = np.arange(len(ordered)) - begins[np.cumsum(is_new) - 1]
    mask = np.empty(len(ordered), np.bool_)
    mask[order] = rank < counts[ordered]
    return mask
