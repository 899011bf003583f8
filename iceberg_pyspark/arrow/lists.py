"""Replaces the children of Arrow lists and maps; offsets and null masks are shared, not copied."""

from __future__ import annotations

import pyarrow as pa


def with_values(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Return the lists of `array` with `values` as children, as an array of the type `target`."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], offset=array.offset, children=[values]
    )


def with_entries(
    array: pa.MapArray, target: pa.MapType, keys: pa.Array, items: pa.Array
) -> pa.MapArray:
    """Return the maps of `array` with other keys and items, as an array of the type `target`."""
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[target.key_field, target.item_field]
    )
    return with_values(array, target, entries)
