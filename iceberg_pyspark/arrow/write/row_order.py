"""Orders the rows of new files by sort columns, or along a space-filling curve.

Specification, "Sorting". Ordering has two steps, so that more rows than fit into memory can be
ordered: `Ranges` assigns each row to a range of the order, and `sort` orders the rows of one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iceberg_pyspark.arrow.write.column_transforms import transform_array
from iceberg_pyspark.arrow.write.order_bytes import as_texts, is_whole, order_bytes, ordered_floats
from iceberg_pyspark.arrow.write.partition_batches import source_column
from iceberg_pyspark.arrow.write.space_filling_curves import CURVES, Curve, bits_of_column
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortField

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
        count = 1 << bits_of_column(len(self.source_ids))
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
        return CURVES[self.curve](axes, bits_of_column(len(axes)))

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
