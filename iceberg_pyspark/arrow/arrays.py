"""Arrow arrays by their buffers: columns as integers, and other children for lists and maps.

pyarrow imports pandas when it first converts values of Python or numpy, which takes a quarter of a
second in each new worker of Spark. The functions that say so convert without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs: TypeAlias = npt.NDArray[np.int64]


def as_integers(column: pa.Array) -> pa.Array | None:
    """Return the column as integers with its nulls, or None for other types.

    All NaNs become one value, and -0.0 differs from 0.0.
    """
    type_ = column.type
    if pa.types.is_integer(type_):
        return column
    if pa.types.is_floating(type_):
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), type_), column)
    elif not pa.types.is_temporal(type_):
        return None
    # pyarrow cannot cast every 64-bit temporal type to integers, but its bits are the integers
    return column.view(pa.int32() if type_.bit_width == 32 else pa.int64())


def as_longs(column: pa.Array) -> Longs:
    """Return the values of a number, date or time column as 64-bit integers, without pandas; 0 for
    null.
    """
    integers = as_integers(column)
    assert integers is not None, "numbers, dates and times are integers"
    longs: Longs = raw_values(integers).astype(np.int64, copy=False)
    return np.where(validity(integers), longs, 0) if integers.null_count else longs


def raw_values(column: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a column of integers, without pandas; those of nulls are undefined."""
    # older pyarrow imports pandas for its own `to_pandas_dtype`; integers have numpy's names
    type_ = np.dtype(str(column.type))
    return buffer_values(column.buffers()[1], type_, column.offset, len(column))


def buffer_values(
    buffer: pa.Buffer | None, type_: npt.DTypeLike, start: int, count: int
) -> npt.NDArray[Any]:
    """Return `count` numbers of a buffer from number `start` on.

    The rest of the buffer may be of any size: Arrow's arrays of nulls share one in all columns.
    """
    if buffer is None or not count:
        return np.empty(0, type_)
    return np.frombuffer(buffer, type_, count, start * np.dtype(type_).itemsize)


def validity(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values of a column are not null, without pandas."""
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.ones(len(column), np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def number_array(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers as an array of the same type, without pandas; null where not `valid`."""
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bitmap, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def binary_array(value: bytes) -> pa.Array:
    """Return an array of one binary value, without pandas."""
    offsets = pa.py_buffer(np.array([0, len(value)], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(value)])


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Return about the bytes of the rows of a batch of any types."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        # pyarrow 23 counts no views: it knows only what their buffers hold as a whole
        return int(batch.get_total_buffer_size())


def children_of(array: pa.Array) -> list[pa.Array]:
    """Return the fields of structs, the elements of lists of any kind, or keys and items of maps.

    Fields of structs may hold values where the struct is null.
    """
    if isinstance(array, pa.StructArray):
        return [array.field(i) for i in range(array.type.num_fields)]
    if isinstance(array, pa.MapArray):
        return [_in_range(array, array.keys), _in_range(array, array.items)]
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        return [_in_range(array, array.values)]
    try:
        return [array.flatten()]
    except pa.ArrowNotImplementedError:  # of some types, such as dictionaries of UUIDs
        return [_elements(array)]


def runs_of(array: pa.RunEndEncodedArray) -> tuple[Longs, pa.Array]:
    """Return the end of each run within the array, and the runs' values."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = np.minimum(array.run_ends.to_numpy()[first : first + count] - array.offset, len(array))
    return ends.astype(np.int64), array.values.slice(first, count)


def used_part(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the array with only the part of the dictionary that its indices span."""
    bounds = pc.min_max(array.indices)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is None:
        first, last = 0, -1
    return pa.DictionaryArray.from_arrays(
        pc.subtract(array.indices, pa.scalar(first, array.indices.type)),
        array.dictionary.slice(first, last + 1 - first),
    )


def with_children(
    array: pa.Array, target: pa.DataType, children: Sequence[pa.Array], *, nulls: bool = True
) -> pa.Array:
    """Return the array with other children, as many as `children_of` returns of the same lengths.

    The result has the type `target`: a struct, list or map; without `nulls`, no row of it is null.
    """
    if not len(array):
        return pa.nulls(0, target)
    mask = array.is_null() if nulls and array.null_count else None
    if isinstance(target, pa.StructType):
        if not children:
            validity = None if mask is None else array.is_valid().buffers()[1]
            return pa.Array.from_buffers(target, len(array), [validity])
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    lists = pa.MapArray if isinstance(target, pa.MapType) else pa.ListArray
    return lists.from_arrays(_offsets(array), *children, type=target, mask=mask)


def without_hidden_elements(array: pa.Array, present: pa.Array | None = None) -> pa.Array:
    """Return the array without elements of null lists and maps, and of those below a null.

    `present` is false for the rows that are below a null. Without such elements, the result is the
    array itself.
    """
    type_ = array.type
    if not isinstance(type_, pa.StructType | pa.ListType | pa.MapType):
        return array
    if array.null_count:
        valid = array.is_valid()
        present = valid if present is None else pc.and_(present, valid)
    if present is not None and not isinstance(type_, pa.StructType):
        hidden = ~present.to_numpy(zero_copy_only=False)
        if np.diff(array.offsets.to_numpy())[hidden].any():
            array = array.take(pa.array(np.arange(len(array)), mask=hidden))
        present = None
    children = children_of(array)
    shown = [without_hidden_elements(c, present) for c in children]
    if all(a is b for a, b in zip(shown, children, strict=True)):
        return array
    return with_children(array, type_, shown)


def _in_range(array: pa.Array, values: pa.Array) -> pa.Array:
    if not len(array):
        return values.slice(0, 0)
    first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
    return values.slice(first, last - first)


def _elements(array: pa.Array) -> pa.Array:
    """Return the elements of list views, or of lists of a fixed size, that are not null."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    if isinstance(array, pa.FixedSizeListArray):
        starts = (array.offset + np.arange(len(array))) * array.type.list_size
    else:
        starts = array.offsets.to_numpy()[: len(array)]
    starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    # neighbours are one slice
    first = np.append(True, starts[1:] != (starts + lengths)[:-1])[: len(starts)]
    counts = np.add.reduceat(lengths, np.flatnonzero(first)) if len(starts) else lengths
    slices = [array.values.slice(s, n) for s, n in zip(starts[first], counts, strict=True)]
    return _concatenated(slices) if slices else array.values.slice(0, 0)


def _concatenated(arrays: Sequence[pa.Array]) -> pa.Array:
    if not isinstance(arrays[0], pa.RunEndEncodedArray):
        return pa.concat_arrays(arrays)
    # pyarrow does not concatenate runs of extension types
    runs = [runs_of(a) for a in arrays]
    before = np.cumsum([0, *map(len, arrays[:-1])])
    ends = np.concatenate([e + n for (e, _), n in zip(runs, before, strict=True)])
    return pa.RunEndEncodedArray.from_arrays(
        pa.array(ends, arrays[0].type.run_end_type), pa.concat_arrays([v for _, v in runs])
    )


def _offsets(array: pa.Array) -> pa.Array:
    """Return offsets from 0 of the elements that `children_of` returns."""
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        offsets = array.offsets
        if array.offset or offsets[0].as_py():
            offsets = pc.subtract(offsets, offsets[0])
        return offsets.cast(pa.int32())
    # pyarrow's casts of list views to lists create invalid arrays
    lengths = pc.list_value_length(array).fill_null(0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(lengths)])
