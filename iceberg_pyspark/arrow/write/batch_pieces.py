"""Splits batches into pieces that are small in memory, however their values are encoded.

A column of a piece has offsets of 32 bits, and values that dictionaries, runs or views share are
copied for each row. A single row is never split.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.arrays import Longs, children_of, runs_of
from iceberg_pyspark.arrow.arrow_schemas import is_binary_like, is_text_like

_MAX_ROWS = 131_072
_MAX_BYTES = 2**28


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of the batch that together are the batch."""
    for start in range(0, batch.num_rows, _MAX_ROWS):
        yield from _halves(batch.slice(start, _MAX_ROWS))


def _halves(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if rows.num_rows > 1 and sum(map(plain_size, rows.columns)) > _MAX_BYTES:
        half = rows.num_rows // 2
        yield from _halves(rows.slice(0, half))
        yield from _halves(rows.slice(half))
    else:
        yield rows


def plain_size(array: pa.Array) -> int:
    """Return about the bytes of the array in a plain encoding, at least one for each element."""
    if isinstance(array, pa.ExtensionArray):
        return plain_size(array.storage)
    if isinstance(array, pa.DictionaryArray):
        indices = array.indices.drop_null().to_numpy()
        return len(array) + int(_value_sizes(array.dictionary)[indices].sum())
    if isinstance(array, pa.RunEndEncodedArray):
        ends, values = runs_of(array)
        return int(np.diff(ends, prepend=0) @ _value_sizes(values))
    if _is_view(array.type):
        return 16 * len(array) + int(_view_lengths(array).sum())
    if isinstance(array, pa.StructArray | pa.MapArray | pa.ListArray | pa.LargeListArray):
        return len(array) + sum(map(plain_size, children_of(array)))
    if pa.types.is_nested(array.type):
        # lists of list views may share elements, which `children_of` would copy
        elements = pc.sum(pc.list_value_length(array)).as_py() or 0
        return len(array) + int(elements * _mean_size(array.values))
    return max(int(array.nbytes), len(array))


def _value_sizes(values: pa.Array) -> Longs:
    """Return about the bytes of each value; texts and bytes exactly, as they differ most."""
    if _is_view(values.type):
        return _view_lengths(values)
    if is_text_like(values.type) or is_binary_like(values.type):
        lengths: Longs = pc.binary_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        return lengths.astype(np.int64)
    return np.full(len(values), round(_mean_size(values)), np.int64)


def _mean_size(values: pa.Array) -> float:
    return plain_size(values) / max(len(values), 1)


def _is_view(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(type_) or pa.types.is_binary_view(type_))


def _view_lengths(views: pa.Array) -> Longs:
    """Return the lengths of texts or bytes: each view has 16 bytes, and begins with its length."""
    if not len(views):
        return np.zeros(0, np.int64)
    parts = np.frombuffer(views.buffers()[1], np.int32)
    lengths = parts[4 * views.offset : 4 * (views.offset + len(views)) : 4].astype(np.int64)
    if views.null_count:
        lengths[views.is_null().to_numpy(zero_copy_only=False)] = 0
    return lengths
