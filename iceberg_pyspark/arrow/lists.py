"""Builds lists and maps over other children, with shared offsets and nulls; slices stay slices."""

from __future__ import annotations

import pyarrow as pa


def with_values(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """The lists over other values, as an array of the type `target`."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], offset=array.offset, children=[values]
    )


def with_entries(
    array: pa.MapArray, target: pa.MapType, keys: pa.Array, items: pa.Array
) -> pa.MapArray:
    """The maps over other keys and items, as an array of the type `target`."""
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[target.key_field, target.item_field]
    )
    return with_values(array, target, entries)
