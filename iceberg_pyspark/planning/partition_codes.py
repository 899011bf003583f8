"""Encodes partition tuples as integers, which are equal for equal tuples.

Specification, "Scan Planning", notes 3 and 4: nulls are equal, NaNs are equal, -0.0 and 0.0 differ,
and values of unknown transforms are compared like other values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.spec.transforms import untyped_text

Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class PartitionCodes:
    """A numbering of the distinct tuples of one spec."""

    def __init__(self, partitions: pa.StructArray) -> None:
        self._levels: list[tuple[pa.DataType, pa.Array, Codes]] = []
        codes = np.zeros(len(partitions), np.int64)
        for column in partitions.flatten():
            comparable = _comparable(column)
            values = pc.unique(comparable)
            # codes are renumbered at each field, so that the product of many fields cannot overflow
            combined_codes = codes * len(values) + _positions(comparable, values)
            distinct, codes = np.unique(combined_codes, return_inverse=True)
            self._levels.append((column.type, values, distinct))
        self.codes = codes

    def find(self, partitions: pa.StructArray) -> Codes:
        """Return the number of each tuple, or -1 for a tuple without a number."""
        codes = np.zeros(len(partitions), np.int64)
        for column, level in zip(partitions.flatten(), self._levels, strict=True):
            type_, values, distinct = level
            if column.type == type_:
                position = _positions(_comparable(column), values)
            else:
                # only a field of an unknown transform can have several types
                position = _positions(as_texts(column), as_texts(values))
            combined_codes = codes * len(values) + position
            at = np.minimum(np.searchsorted(distinct, combined_codes), len(distinct) - 1)
            is_in_level = (codes >= 0) & (position >= 0) & (distinct[at] == combined_codes)
            codes = np.where(is_in_level, at, -1)
        return codes


def concat_partitions(parts: Sequence[pa.StructArray]) -> pa.StructArray:
    """Concatenate the partitions of manifests of one spec; a field may have several types."""
    if all(part.type == parts[0].type for part in parts):
        return pa.concat_arrays(parts)
    names = [field.name for field in parts[0].type]
    columns = []
    for arrays in zip(*(part.flatten() for part in parts), strict=True):
        same = all(array.type == arrays[0].type for array in arrays)
        columns.append(pa.concat_arrays(arrays if same else [as_texts(a) for a in arrays]))
    return pa.StructArray.from_arrays(columns, names)


def as_texts(values: pa.Array) -> pa.Array:
    """Return values of unknown type as texts; equal values have equal texts."""
    if pa.types.is_string(values.type):
        return values
    texts = [None if v is None else untyped_text(v) for v in values.to_pylist()]
    return pa.array(texts, pa.string())


def _positions(column: pa.Array, values: pa.Array) -> Codes:
    positions = pc.index_in(column, value_set=values, skip_nulls=False)
    return np.asarray(pc.fill_null(positions, -1).to_numpy(zero_copy_only=False), np.int64)


def _comparable(column: pa.Array) -> pa.Array:
    """Return floats as their bits, with one NaN; other columns are unchanged."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.float64)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return pa.array(bits, mask=np.asarray(column.is_null()))
