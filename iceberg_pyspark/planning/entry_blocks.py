"""Rules out whole blocks of a manifest's entries by the ranges of each column's values.

Specification, "Scan Planning". The ranges are computed once for entries that stay in memory, so
that a later filter looks only at the entries of blocks that may have a matching file. A block is
ruled out only if `entry_filter.MetricsFilter` would drop each of its entries: a range of a block
holds all values of its files, and a file without bounds makes the range unlimited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.planning.entry_filter import ColumnRanges, Mask, RangesFilter, mask_of
from iceberg_pyspark.spec.entry_columns import FILTER_METRICS, metric_column
from iceberg_pyspark.spec.types import UUIDType

_T = TypeVar("_T")

_FEW = 500
"""To look at fewer entries takes no longer than to compute and look at their ranges."""


class BlocksOfEntries(Protocol):
    """The entries of a manifest in blocks: `formats/known_manifests.KnownEntries`."""

    @property
    def num_rows(self) -> int:
        """The number of entries."""

    @property
    def block_starts(self) -> Sequence[int]:
        """The position of the first entry of each block."""

    def table(self, columns: Collection[str] | None = None, blocks: Mask | None = None) -> pa.Table:
        """Return the entries of the blocks in a mask, None for all.

        Columns that are not among `columns` may be missing.
        """

    def computed(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return a value that is computed once for each key, maybe of entries that are gone."""


def matching_blocks(
    entries: BlocksOfEntries, predicate: predicates.Predicate, constant_ids: Collection[int]
) -> Mask:
    """Return for each block whether a row of its files may make the bound row predicate true.

    The entries must have been read with the metrics of the predicate's columns, of the types that
    the predicate has. `constant_ids` are columns whose metrics say nothing.
    """
    if entries.num_rows < _FEW:
        return np.ones(len(entries.block_starts), np.bool_)
    return _BlocksFilter(entries, constant_ids).matching(predicate)


class _BlocksFilter(RangesFilter):
    def __init__(self, entries: BlocksOfEntries, constant_ids: Collection[int]) -> None:
        self._constant_ids = constant_ids

        def ranges(column: predicates.BoundColumn) -> _BlockRanges:
            key = (_BlockRanges, column.field_id, column.type)
            return entries.computed(key, lambda: _block_ranges(entries, column))

        super().__init__(len(entries.block_starts), ranges)

    def _leaf(self, leaf: predicates.BoundLeaf) -> Mask:
        column = leaf.column
        if (
            column.field_id in self._constant_ids
            or isinstance(column, predicates.ExtractedColumn)
            or (isinstance(leaf, predicates.BoundLiteral) and "intersects" in leaf.op)
        ):
            return np.ones(self._rows, np.bool_)
        return super()._leaf(leaf)


def _block_ranges(entries: BlocksOfEntries, column: predicates.BoundColumn) -> _BlockRanges:
    metrics = (metric_column(metric, column.field_id) for metric in FILTER_METRICS)
    table = entries.table({"record_count", *metrics})
    return _BlockRanges(ColumnRanges(table, column), column, entries.block_starts)


class _BlockRanges:
    """The ranges of a column's values in blocks of entries, in the form of `ColumnRanges`."""

    def __init__(
        self, of_entries: ColumnRanges, column: predicates.BoundColumn, starts: Sequence[int]
    ) -> None:
        ends = [*starts, len(of_entries.may_be_value)][1:]
        blocks = list(map(slice, starts, ends))

        def any_of(mask: Mask) -> Mask:
            return np.array([mask[block].any() for block in blocks], np.bool_)

        def bound(bounds: pa.Array, limit: Callable[[pa.Array], pa.Scalar]) -> pa.Array:
            of_values = pc.if_else(pa.array(of_entries.may_be_value), bounds, None)
            limits = [limit(of_values[block]).as_py() for block in blocks]
            is_unlimited = any_of(of_entries.may_be_value & mask_of(pc.is_null(bounds)))
            return pc.if_else(pa.array(is_unlimited), None, pa.array(limits, bounds.type))

        self.may_be_null = any_of(of_entries.may_be_null)
        self.may_be_nan = any_of(of_entries.may_be_nan)
        self.may_be_value = any_of(of_entries.may_be_value)
        lower, upper = of_entries.lower, of_entries.upper
        if isinstance(column.type, UUIDType):
            # the bounds of uuids have two possible orders
            lower = upper = pa.nulls(len(lower), lower.type)
        self.lower, self.upper = bound(lower, pc.min), bound(upper, pc.max)
