"""Orders the rows of new files by sort columns, or along a space-filling curve.

Ordering has two steps, so that more rows than fit into memory can be ordered: `Ranges` assigns each
row to a range of the order, and `sort` orders the rows of one range.

Columns are encoded as byte strings of equal length whose order is the order of the values
(specification, "Sorting"): NaN is the greatest number, -0.0 is less than 0.0, decimals compare by
value and strings by their bytes. Only a prefix of a string is encoded, so different values may have
equal bytes; values with different bytes are ordered as their bytes.

Rows that are close on a curve are close in each column, so a file of neighbouring rows has a narrow
range of each column, and filters on any of the columns skip files. The z-order curve interleaves
the bits of all columns. The Hilbert curve (by Skilling's transformation) has no jumps, but takes
more time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.arrays import as_longs, buffer_values
from iceberg_pyspark.arrow.write.partition_batches import source_column, transform_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortField

Bytes: TypeAlias = NDArray[np.uint8]
"""An array with one row of bytes per value; its shape is (values, bytes per value)."""

_SIGN = np.uint64(1 << 63)


def order_bytes(
    column: pa.Array, *, is_descending: bool, nulls_first: bool, text_bytes: int
) -> Bytes:
    """Return a null flag and the bytes of each value; at most `text_bytes` bytes of a text."""
    parts = _value_bytes(column, text_bytes)
    if is_descending:
        parts = ~parts
    is_null = np.zeros(len(column), np.bool_)
    if column.null_count:
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        parts = np.where(is_null[:, None], np.uint8(0), parts)
    flags = (~is_null if nulls_first else is_null).astype(np.uint8)
    return np.concatenate([flags[:, None], parts], axis=1)


def is_whole(type_: pa.DataType, text_bytes: int) -> bool:
    """Return whether two values of the type with the same bytes are always equal."""
    if pa.types.is_fixed_size_binary(type_):
        return bool(type_.byte_width <= text_bytes)
    return not _is_text(type_)


def as_texts(rows: Bytes) -> NDArray[np.bytes_]:
    """Return each row as a numpy byte string; byte strings compare in the order of the rows."""
    texts: NDArray[np.bytes_] = np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)
    return texts


def ordered_floats(column: pa.Array) -> pa.Array:
    """Return integers in the order of a column's floating-point numbers; null stays null."""
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    bits = _float_bits(column)
    return pa.array((bits ^ _SIGN).view(np.int64), mask=mask)


def _value_bytes(column: pa.Array, text_bytes: int) -> Bytes:
    type_ = column.type
    if pa.types.is_boolean(type_):
        flags = column.fill_null(False).to_numpy(zero_copy_only=False)
        one: Bytes = flags.astype(np.uint8)[:, None]
        return one
    if pa.types.is_floating(type_):
        return _big_endian(_float_bits(column))
    if pa.types.is_decimal128(type_):
        return _decimal_bytes(column)
    if _is_text(type_):
        return _first_bytes(column.cast(pa.large_binary()), text_bytes)
    if pa.types.is_fixed_size_binary(type_):
        return _first_bytes(column.cast(pa.large_binary()), min(text_bytes, type_.byte_width))
    if pa.types.is_integer(type_) or pa.types.is_temporal(type_):
        return _big_endian(as_longs(column).view(np.uint64) ^ _SIGN)
    raise InvalidRequestError(f"rows cannot be sorted by a column of type {type_}")


def _is_text(type_: pa.DataType) -> bool:
    is_large = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
    return bool(is_large or pa.types.is_string(type_) or pa.types.is_binary(type_))


def _big_endian(numbers: NDArray[np.uint64]) -> Bytes:
    big_endian: Bytes = numbers.astype(">u8").view(np.uint8).reshape(len(numbers), 8)
    return big_endian


def _float_bits(column: pa.Array) -> NDArray[np.uint64]:
    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    # all NaNs become one value
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    bits = numbers.view(np.uint64)
    ordered_bits: NDArray[np.uint64] = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return ordered_bits


def _decimal_bytes(column: pa.Array) -> Bytes:
    plain = pa.concat_arrays([pc.fill_null(column, pa.scalar(Decimal(0), column.type))])
    words = buffer_values(plain.buffers()[1], "<u8", 2 * plain.offset, 2 * len(plain))
    words = words.reshape(-1, 2)
    high = _big_endian(words[:, 1] ^ _SIGN)
    return np.concatenate([high, _big_endian(words[:, 0].copy())], axis=1)


def _first_bytes(column: pa.Array, count: int) -> Bytes:
    plain = column.fill_null(b"")
    prefixes = np.zeros((len(plain), count), np.uint8)
    if not len(plain):
        return prefixes
    buffers: list[Any] = plain.buffers()
    ends = buffer_values(buffers[1], np.int64, plain.offset, len(plain) + 1)
    starts, sizes = ends[:-1], ends[1:] - ends[:-1]
    if buffers[2] is None:
        return prefixes
    data = np.frombuffer(buffers[2], np.uint8)
    for place in range(min(count, int(sizes.max()))):
        has = np.flatnonzero(sizes > place)
        prefixes[has, place] = data[starts[has] + place]
    return prefixes


Keys: TypeAlias = NDArray[Any]
"""Sort keys that numpy can compare: byte strings or unsigned numbers."""

_TEXT_BYTES = 64


class Ranges(Protocol):
    """Consecutive ranges of an order, numbered from 0; rows with equal keys are in one range."""

    def of(self, batch: pa.RecordBatch) -> NDArray[np.intp]:
        """Return the range of each row."""
        ...


class RowOrder(Protocol):
    """An order of rows.

    `source_ids` are the needed fields. `text_bytes` is how many bytes of a text `ranges` compares.
    """

    @property
    def source_ids(self) -> Sequence[int]:
        """The ids of the fields whose values determine the order."""
        ...

    def fit(self, sample: pa.RecordBatch) -> RowOrder:
        """Return the order adapted to rows like those of the sample."""
        ...

    def ranges(self, sample: pa.RecordBatch, count: int, text_bytes: int) -> Ranges:
        """Return at most `count` ranges, each with about as many rows of the sample."""
        ...

    def without_constants(self, batches: Iterable[pa.RecordBatch]) -> RowOrder | None:
        """Return the order of rows in one range, or None if any order is right."""
        ...

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows in order."""
        ...


@dataclass(frozen=True, kw_only=True)
class SortedBy:
    """An order by the fields of a sort order of a schema."""

    schema: Schema
    fields: tuple[SortField, ...]

    @property
    def source_ids(self) -> Sequence[int]:
        """The ids of the fields whose values determine the order."""
        return [f.source_id for f in self.fields]

    def fit(self, sample: pa.RecordBatch) -> RowOrder:
        """Return this order: it does not depend on a sample."""
        return self

    def ranges(self, sample: pa.RecordBatch, count: int, text_bytes: int) -> Ranges:
        """Return at most `count` ranges, each with about as many rows of the sample."""
        return _RangesOfKeys(_SortKeys(self, text_bytes), sample, count)

    def without_constants(self, batches: Iterable[pa.RecordBatch]) -> RowOrder | None:
        """Return the order by the fields that differ between rows, or None if no field does."""
        firsts: list[pa.Scalar | None] = [None] * len(self.fields)
        differs = [False] * len(self.fields)
        for batch in batches:
            for i, f in enumerate(self.fields):
                if differs[i] or not batch.num_rows:
                    continue
                values = self._sortable(f, batch)
                first = firsts[i] = values[0] if firsts[i] is None else firsts[i]
                if not values.null_count and first is not None and first.is_valid:
                    differs[i] = not pc.all(pc.equal(values, first)).as_py()
                else:
                    differs[i] = values.null_count < len(values) or bool(first and first.is_valid)
        fields = tuple(f for f, has_others in zip(self.fields, differs, strict=True) if has_others)
        return SortedBy(schema=self.schema, fields=fields) if fields else None

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows in order."""
        batch = _one_batch(rows)
        columns: list[pa.Array] = []
        directions: list[str] = []
        for f in self.fields:
            key = self._sortable(f, batch)
            if key.null_count:
                columns.append(key.is_null())
                directions.append("descending" if f.null_order == "nulls-first" else "ascending")
            columns.append(key)
            directions.append("ascending" if f.direction == "asc" else "descending")
        names = [str(i) for i in range(len(columns))]
        keys = pa.Table.from_arrays(columns, names=names)
        order = pc.sort_indices(keys, sort_keys=list(zip(names, directions, strict=True)))
        return pa.Table.from_batches([batch.take(order)])

    def _values(self, field: SortField, batch: pa.RecordBatch) -> pa.Array:
        source = self.schema.field_by_id[field.source_id]
        column = source_column(
            batch, self.schema, field.source_id, f"sort field of column '{source.name}'"
        )
        values = transform_array(field.transform, source.type, column)
        return values.storage if isinstance(values, pa.ExtensionArray) else values

    def _sortable(self, field: SortField, batch: pa.RecordBatch) -> pa.Array:
        values = self._values(field, batch)
        return ordered_floats(values) if pa.types.is_floating(values.type) else values

    def key_bytes(self, batch: pa.RecordBatch, text_bytes: int) -> NDArray[np.bytes_]:
        """Return byte strings in the order of the rows, as far as `order_bytes` tells values apart.

        The first field whose bytes do not determine the value is the last field in the byte
        strings.
        """
        parts = []
        for f in self.fields:
            values = self._values(f, batch)
            parts.append(
                order_bytes(
                    values,
                    is_descending=f.direction == "desc",
                    nulls_first=f.null_order == "nulls-first",
                    text_bytes=text_bytes,
                )
            )
            if not is_whole(values.type, text_bytes):
                break
        return as_texts(np.concatenate(parts, axis=1))


@dataclass(frozen=True)
class _SortKeys:
    order: SortedBy
    text_bytes: int

    def of(self, batch: pa.RecordBatch) -> NDArray[np.bytes_]:
        return self.order.key_bytes(batch, self.text_bytes)


@dataclass(frozen=True, kw_only=True)
class AlongCurve:
    """An order by the position on a curve through the values of several columns.

    The axis of a column is its quantiles in a sample (`fit`), so that columns of any range and
    distribution have the same weight. `marks` are the bounds of the quantiles, by column.
    """

    schema: Schema
    source_ids: tuple[int, ...]
    curve: Curve
    text_bytes: int = _TEXT_BYTES
    marks: tuple[NDArray[np.bytes_], ...] = ()

    def fit(self, sample: pa.RecordBatch) -> RowOrder:
        """Return the order with the sample's quantiles, or this order if it has quantiles."""
        if self.marks:
            return self
        count = 1 << _bits_of_column(len(self.source_ids))
        marks = tuple(_boundaries(self._bytes(i, sample), count)[0] for i in self.source_ids)
        return AlongCurve(
            schema=self.schema, source_ids=self.source_ids, curve=self.curve, marks=marks
        )

    def ranges(self, sample: pa.RecordBatch, count: int, text_bytes: int) -> Ranges:
        """Return at most `count` ranges, each with about as many rows of the sample."""
        return _RangesOfKeys(self, sample, count)

    def without_constants(self, batches: Iterable[pa.RecordBatch]) -> RowOrder | None:
        """Return None: rows at one position on the curve have no order."""
        return None

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows in order."""
        batch = _one_batch(rows)
        order = pa.array(np.argsort(self.of(batch), kind="stable"))
        return pa.Table.from_batches([batch.take(order)])

    def of(self, batch: pa.RecordBatch) -> NDArray[np.uint64]:
        """Return the position of each row on the curve."""
        axes = [
            np.searchsorted(marks, self._bytes(i, batch), side="right").astype(np.uint64)
            for i, marks in zip(self.source_ids, self.marks, strict=True)
        ]
        return CURVES[self.curve](axes, _bits_of_column(len(axes)))

    def _bytes(self, source_id: int, batch: pa.RecordBatch) -> NDArray[np.bytes_]:
        name = self.schema.field_by_id[source_id].name
        column = source_column(batch, self.schema, source_id, f"order of column '{name}'")
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        return as_texts(
            order_bytes(column, is_descending=False, nulls_first=True, text_bytes=self.text_bytes)
        )


class _Keys(Protocol):
    def of(self, batch: pa.RecordBatch) -> Keys: ...


class _RangesOfKeys:
    """Ranges between keys of a sample; a key of many sampled rows has its own range."""

    def __init__(self, keys: _Keys, sample: pa.RecordBatch, count: int) -> None:
        self._keys = keys
        self._boundaries, counts = _boundaries(keys.of(sample), count)
        self._is_frequent = counts > 1

    def of(self, batch: pa.RecordBatch) -> NDArray[np.intp]:
        keys = self._keys.of(batch)
        numbers: NDArray[np.intp] = np.searchsorted(self._boundaries, keys, side="right")
        below = np.maximum(numbers - 1, 0)
        is_one = (numbers > 0) & self._is_frequent[below] & (self._boundaries[below] == keys)
        ranges: NDArray[np.intp] = 2 * numbers - is_one
        return ranges


def _boundaries(keys: Keys, count: int) -> tuple[Keys, NDArray[np.intp]]:
    """Return at most `count - 1` distinct keys that split the sorted keys into parts of equal size.

    The second array tells how often each key is a boundary.
    """
    sorted_keys = np.sort(keys)
    places = np.arange(1, max(count, 2)) * len(sorted_keys) // max(count, 2)
    return np.unique(sorted_keys[places], return_counts=True)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    batches = rows.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)


Places: TypeAlias = NDArray[np.uint64]
Curve: TypeAlias = Literal["zorder", "hilbert"]

_ONE = np.uint64(1)


def _bits_of_column(columns: int) -> int:
    """Return the number of bits per column, so that all columns fit 63 bits; at most 12."""
    return min(12, 63 // columns)


def z_order(columns: Sequence[Places], bits: int) -> Places:
    """Return the rows' positions on the z-order curve; the first column weighs most.

    Each column has numbers of `bits` bits.

    >>> z_order([np.array([0, 1], np.uint64), np.array([1, 0], np.uint64)], 1).tolist()
    [1, 2]
    """
    codes = np.zeros(len(columns[0]), np.uint64)
    for bit in reversed(range(bits)):
        for column in columns:
            codes = (codes << _ONE) | ((column >> np.uint64(bit)) & _ONE)
    return codes


def hilbert(columns: Sequence[Places], bits: int) -> Places:
    """Return the positions of rows on the Hilbert curve from columns of `bits` bits.

    >>> x, y = np.array([0, 1, 1, 0], np.uint64), np.array([0, 0, 1, 1], np.uint64)
    >>> hilbert([x, y], 1).tolist()
    [0, 3, 2, 1]
    """
    axes = [column.copy() for column in columns]
    for bit in reversed(range(1, bits)):
        high, low = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for axis in axes:
            is_set = (axis & high) != 0
            # invert the first axis if the bit is set, else exchange the low bits of both axes
            exchange = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & low)
            axes[0] ^= np.where(is_set, low, exchange)
            if axis is not axes[0]:
                axis ^= exchange
    for i in range(1, len(axes)):
        axes[i] ^= axes[i - 1]
    turn = np.zeros(len(axes[0]), np.uint64)
    for bit in reversed(range(1, bits)):
        turn ^= np.where((axes[-1] >> np.uint64(bit)) & _ONE, np.uint64((1 << bit) - 1), turn & 0)
    return z_order([axis ^ turn for axis in axes], bits)


CURVES: Mapping[Curve, Callable[[Sequence[Places], int], Places]] = {
    "zorder": z_order,
    "hilbert": hilbert,
}
