"""Partition tuples as integers, so that equality of tuples is equality of numbers.

Specification, "Scan Planning", notes 3 and 4: nulls are equal, NaNs are equal, -0.0 and 0.0 are
not, and values of unknown transforms count like any other.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class PartitionCodes:
    """Numbers the distinct tuples of one spec, and finds the number of others."""

    def __init__(self, partitions: pa.StructArray) -> None:
        self._levels: list[tuple[pa.Array, Codes]] = []
        codes = np.zeros(len(partitions), np.int64)
        for column in partitions.flatten():
            comparable = _comparable(column)
            values = pc.unique(comparable)
            # numbered anew at each field, so that the product of many fields cannot overflow
            combined = codes * len(values) + _positions(comparable, values)
            known, codes = np.unique(combined, return_inverse=True)
            self._levels.append((values, known))
        self.codes = codes

    def find(self, partitions: pa.StructArray) -> Codes:
        """The number of each tuple; -1 for a tuple that has none."""
        codes = np.zeros(len(partitions), np.int64)
        for column, (values, known) in zip(partitions.flatten(), self._levels, strict=True):
            position = _positions(_comparable(column), values)
            combined = codes * len(values) + position
            at = np.minimum(np.searchsorted(known, combined), len(known) - 1)
            found = (codes >= 0) & (position >= 0) & (known[at] == combined)
            codes = np.where(found, at, -1)
        return codes


def _positions(column: pa.Array, values: pa.Array) -> Codes:
    found = pc.index_in(column, value_set=values, skip_nulls=False)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)


def _comparable(column: pa.Array) -> pa.Array:
    """Floating point numbers by their bits, with one NaN; anything else as it is."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.float64)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return pa.array(bits, mask=np.asarray(column.is_null()))
