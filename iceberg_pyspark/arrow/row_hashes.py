"""Hashes whole rows: 128 bits that are equal for rows with the same values.

Null equals null, all NaNs are equal, and -0.0 differs from 0.0. The entries of maps are compared in
their order. The two halves are independent, so that only equal rows have equal hashes in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceberg_pyspark.arrow.arrays import as_longs, children_of

RowHashes: TypeAlias = npt.NDArray[np.uint64]
"""Two rows: the first and the second half of each hash."""

_SEEDS = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], np.uint64)
_FACTORS = np.array([[0xFF51AFD7ED558CCD], [0xC4CEB9FE1A85EC53]], np.uint64)
_NULL = _SEEDS ^ np.uint64(0x5555555555555555)


def row_hashes(batch: pa.RecordBatch) -> RowHashes:
    """Return the hashes of the rows of a batch."""
    return _combined(batch.columns, batch.num_rows)


def _combined(columns: Sequence[pa.Array], rows: int) -> RowHashes:
    total: RowHashes = np.repeat(_SEEDS, rows, axis=1)
    for column in columns:
        total = _mixed(total * _FACTORS + _hashes(column))
    return total


def _hashes(column: pa.Array) -> RowHashes:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    type_ = column.type
    if pa.types.is_null(type_):
        return np.repeat(_NULL, len(column), axis=1)
    if pa.types.is_struct(type_):
        hashes = _combined(children_of(column), len(column))
    elif pa.types.is_nested(type_):
        hashes = _of_lists(column)
    elif pa.types.is_boolean(type_):
        hashes = _of_longs(as_longs(column.cast(pa.int8())))
    elif pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_temporal(type_):
        hashes = _of_longs(as_longs(column))
    else:
        hashes = _of_bytes(column)
    if not column.null_count:
        return hashes
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(is_null, _NULL, hashes)


def _of_longs(values: npt.NDArray[np.int64]) -> RowHashes:
    return _mixed(values.view(np.uint64) ^ _SEEDS)


def _of_bytes(column: pa.Array) -> RowHashes:
    # equal values are hashed once
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    if pa.types.is_decimal(values.type):
        values = values.view(pa.binary(values.type.byte_width))
    of_values = [mmh3.hash_bytes(v) for v in values.cast(pa.large_binary()).to_pylist()]
    hashes = np.frombuffer(b"".join([*of_values, bytes(16)]), np.uint64).reshape(-1, 2).T
    at = encoded.indices.fill_null(len(of_values)).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(hashes[:, at])


def _of_lists(column: pa.Array) -> RowHashes:
    """Return the hashes of lists or maps: of their lengths, and of each element and its place."""
    # a list that is null may have elements, too
    offsets = column.offsets.to_numpy()
    lengths, ends = np.diff(offsets), offsets[1:] - offsets[0]
    children = children_of(column)
    count = len(children[0])
    place = np.arange(count) - np.repeat(ends - lengths, lengths)
    elements = _mixed(_combined(children, count) + place.astype(np.uint64) * _FACTORS)
    sums = np.concatenate([np.zeros((2, 1), np.uint64), np.cumsum(elements, axis=1)], axis=1)
    return _mixed(sums[:, ends] - sums[:, ends - lengths] + lengths.astype(np.uint64) * _SEEDS)


def _mixed(values: RowHashes) -> RowHashes:
    """Return the values with each bit depending on all bits."""
    values = (values ^ (values >> np.uint64(33))) * _FACTORS[0]
    values = (values ^ (values >> np.uint64(29))) * _FACTORS[1]
    result: RowHashes = values ^ (values >> np.uint64(32))
    return result
