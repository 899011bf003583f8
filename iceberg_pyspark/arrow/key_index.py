"""Finds the rows of a source that have the same key as a row.

A key of one integer, date or time column is compared as it is, any other key by a hash of 128 bits.
As in Spark's joins, -0.0 equals 0.0, all NaNs are equal, and a key with a null equals no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import as_longs
from iceberg_pyspark.arrow.row_hashes import row_hashes
from iceberg_pyspark.arrow.row_sources import RowNumbers

_Codes: TypeAlias = npt.NDArray[Any]
"""Values of a column as signed integers, or halves of hashes as unsigned ones."""


BYTES_PER_KEY = 24
"""The most bytes of a key in a `KeyIndex`."""


@dataclass(frozen=True, kw_only=True)
class KeyPart:
    """One of several parts of all keys: equal keys are in the same part.

    `points` are the codes at which the second part and later parts begin, in order. Keys with
    nulls are in the first part.
    """

    points: npt.NDArray[Any]
    number: int

    def holds(self, keys: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which keys are in the part."""
        rows, first, _ = _codes(keys)
        held = np.full(keys.num_rows, self.number == 0)
        held[rows] = self.holds_codes(first)
        return held

    def holds_codes(self, first: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which first codes are in the part."""
        parts: npt.NDArray[np.intp] = np.searchsorted(self.points, first, side="right")
        return np.equal(parts, self.number)


class KeySample:
    """A sample of the keys of a source, to divide them into parts of about the same size."""

    def __init__(self, rows: int) -> None:
        """`rows` is the number of keys that will be added."""
        self._step = max(rows // _SAMPLE_ROWS, 1)
        self._codes: list[npt.NDArray[Any]] = []

    def add(self, keys: pa.RecordBatch) -> None:
        """Add a batch of keys."""
        _, first, _ = _codes(keys.take(pa.array(np.arange(0, keys.num_rows, self._step))))
        self._codes.append(first)

    def parts(self, count: int) -> list[KeyPart]:
        """Return about `count` parts; fewer if many keys are equal."""
        codes = np.sort(np.concatenate(self._codes))
        # without any key that is not null, there is one part
        places = [len(codes) * i // count for i in range(1, count) if len(codes)]
        points = np.unique(codes[np.array(places, np.int64)])
        return [KeyPart(points=points, number=i) for i in range(len(points) + 1)]


_SAMPLE_ROWS = 65_536


class KeyIndex:
    """The keys of a source; it has 16 bytes for a row, or 24 where keys are hashed."""

    def __init__(self, keys: Iterable[pa.RecordBatch], part: KeyPart | None = None) -> None:
        """`keys` are batches with the key columns only, of the types of the keys to find.

        With a `part`, the index has only its keys.
        """
        numbers, firsts, seconds = [], [], []
        start = 0
        for batch in keys:
            present, first, second = _codes(batch)
            if part is not None:
                held = part.holds_codes(first)
                present, first = present[held], first[held]
                second = None if second is None else second[held]
            numbers.append(present + start)
            firsts.append(first)
            if second is not None:
                seconds.append(second)
            start += batch.num_rows
        first = np.concatenate(firsts) if firsts else np.empty(0, np.int64)
        rows = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        self._second: _Codes | None = np.concatenate(seconds) if seconds else None
        if len(first) > 1 and not (first[1:] > first[:-1]).all():
            if self._second is None:
                order = np.argsort(first, kind="stable")
            else:
                order = np.lexsort((self._second, first))
                self._second = self._second[order]
            first, rows = first[order], rows[order]
        self._first, self._rows = first, rows
        # where the codes of the next key begin, if any code is there twice
        self._ends: RowNumbers | None = None
        is_last = np.append(first[1:] != first[:-1], True) if len(first) else np.empty(0, bool)
        if not is_last.all():
            ends = np.flatnonzero(is_last) + 1
            self._ends = np.repeat(ends, np.diff(ends, prepend=0))

    def __len__(self) -> int:
        return len(self._rows)

    def duplicates(self) -> tuple[int, int] | None:
        """Return the numbers of two source rows with the same key, or None if there are none."""
        if self._ends is None:
            return None
        same = self._first[1:] == self._first[:-1]
        if self._second is not None:
            same &= self._second[1:] == self._second[:-1]
        if not same.any():
            return None
        place = int(same.argmax())
        return int(self._rows[place]), int(self._rows[place + 1])

    def matches(self, keys: pa.RecordBatch) -> tuple[RowNumbers, RowNumbers]:
        """Return the pairs of a row of `keys` and a source row with the same key, both by number.

        The pairs are in the order of the rows of `keys`.
        """
        rows, first, second = _codes(keys)
        if not len(self._first) or not len(rows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = np.searchsorted(self._first, first)
        np.minimum(at, len(self._first) - 1, out=at)
        hit = np.flatnonzero(self._first[at] == first)
        at, rows = at[hit], rows[hit]
        second = None if second is None else second[hit]
        if self._ends is not None:
            counts = self._ends[at] - at
            rows = np.repeat(rows, counts)
            second = None if second is None else np.repeat(second, counts)
            within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
            at = np.repeat(at, counts) + within
        if second is not None and self._second is not None:
            same = self._second[at] == second
            at, rows = at[same], rows[same]
        return rows, self._rows[at]


def _codes(keys: pa.RecordBatch) -> tuple[RowNumbers, _Codes, _Codes | None]:
    """Return the numbers of the rows without nulls, and one code or two for each of them."""
    rows = np.arange(keys.num_rows)
    if any(c.null_count for c in keys.columns):
        present = np.ones(keys.num_rows, bool)
        for column in keys.columns:
            present &= column.is_valid().to_numpy(zero_copy_only=False)
        rows = rows[present]
        keys = keys.filter(pa.array(present))
    columns = [_normal(column) for column in keys.columns]
    if len(columns) == 1 and (
        pa.types.is_integer(columns[0].type) or pa.types.is_temporal(columns[0].type)
    ):
        return rows, as_longs(columns[0]), None
    first, second = row_hashes(pa.RecordBatch.from_arrays(columns, keys.schema.names))
    return rows, first, second


def _normal(column: pa.Array) -> pa.Array:
    """Return floating-point numbers without -0.0; hashes do not distinguish NaNs."""
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0, column.type))
    return column
