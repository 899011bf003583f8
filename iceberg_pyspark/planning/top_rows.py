"""Chooses the files that may have the first rows of an order: `ORDER BY column LIMIT n`.

Bounds need not be values of rows, and deleted rows may be counted in metrics, because a file only
counts for rows that it is known to have. Files without metrics are kept and count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.predicates import BoundColumn
from iceberg_pyspark.planning.bound_values import Numbers, comparable_values
from iceberg_pyspark.planning.entry_filter import ColumnRanges, Mask, is_true, mask_of
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.partitioning import identity_source_ids


class ConstantRanges:
    """The values of a column with one value per file, in the form of `ColumnRanges`."""

    def __init__(self, values: pa.Array, entries: pa.Table) -> None:
        is_null = mask_of(pc.is_null(values))
        is_nan = mask_of(pc.is_null(values, nan_is_null=True)) & ~is_null
        rows = entries["record_count"].to_numpy()
        self.lower = self.upper = pc.if_else(pa.array(is_nan), None, values)
        self.may_be_null, self.may_be_nan = is_null, is_nan
        self.may_be_value = ~is_null & ~is_nan
        self.most_nulls, self.most_nans = rows * is_null, rows * is_nan


AnyRanges: TypeAlias = ColumnRanges | ConstantRanges


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRows:
    """The first `limit` rows by a column, in Spark's order, where NaN is the greatest value.

    Rows of equal values may come in any order, so an order by further columns has the same files.
    """

    column: BoundColumn
    limit: int
    descending: bool
    nulls_first: bool

    def files(
        self, groups: Sequence[PlannedFiles], row_counts: Sequence[Numbers]
    ) -> list[PlannedFiles]:
        """Return the files without those whose rows all come after `limit` other rows.

        `row_counts` has the least number of rows that the query takes from each file. The entries
        must have the column's metrics.
        """
        usable = [i for i, g in enumerate(groups) if self.column.field_id not in g.retyped_ids]
        if not usable:
            return list(groups)
        ranges = [self._ranges(groups[i]) for i in usable]
        counts = [self._early(row_counts[i], r) for i, r in zip(usable, ranges, strict=True)]
        last = self._last_value(ranges, np.concatenate(counts))
        if last is None:
            return list(groups)
        kept = list(groups)
        for i, r in zip(usable, ranges, strict=True):
            kept[i] = groups[i].only(self._may_come_before(r, last))
        return [g for g in kept if g.entries.num_rows]

    def _ranges(self, files: PlannedFiles) -> AnyRanges:
        """Return what is known of the column: its rows have the value of an identity partition,
        whatever the metrics say.
        """
        position = identity_source_ids(files.spec).get(self.column.field_id)
        if position is None:
            return ColumnRanges(files.entries, self.column)
        values = files.entries["partition"].combine_chunks().field(position)
        return ConstantRanges(comparable_values(values, self.column.type), files.entries)

    def _early(self, rows: Numbers, ranges: AnyRanges) -> Numbers:
        """Return the least number of rows of each file that come at its farther bound or before."""
        far = ranges.lower if self.descending else ranges.upper
        late = np.zeros_like(rows)
        if not self.nulls_first:
            late = late + ranges.most_nulls
        if not self.descending:
            late = late + ranges.most_nans
        known = far.is_valid().to_numpy(zero_copy_only=False)
        early: Numbers = np.where(known, np.maximum(rows - late, 0), 0)
        return early

    def _last_value(self, ranges: Sequence[AnyRanges], counts: Numbers) -> pa.Scalar | None:
        """Return a value that at least `limit` rows do not come after; None if none is known."""
        far = pa.concat_arrays([r.lower if self.descending else r.upper for r in ranges])
        by_value = pc.array_sort_indices(far, "descending" if self.descending else "ascending")
        # as floats, because wrong counts must not overflow
        rows = np.cumsum(counts[by_value.to_numpy()], dtype=float)
        position = int(np.searchsorted(rows, self.limit))
        return far[by_value[position].as_py()] if position < len(rows) else None

    def _may_come_before(self, ranges: AnyRanges, last: pa.Scalar) -> Mask:
        """Return for each file whether a row may come at or before a value."""
        if self.descending:
            is_after = is_true(pc.less(ranges.upper, last))
        else:
            is_after = is_true(pc.greater(ranges.lower, last))
        may_come: Mask = ranges.may_be_value & ~is_after
        if self.nulls_first:
            may_come = may_come | ranges.may_be_null
        if self.descending:
            may_come = may_come | ranges.may_be_nan
        return may_come
