"""Chooses the files that may have the first rows of an order: `ORDER BY column LIMIT n`.

Bounds need not be values of rows, and deleted rows may be counted in metrics, because a file only
counts for rows that it is known to have. Files without metrics are kept and count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.predicates import BoundColumn
from iceberg_pyspark.planning.bound_values import Numbers
from iceberg_pyspark.planning.entry_filter import ColumnRanges, Mask, is_true
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.partitioning import identity_source_ids


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
        usable = [i for i, g in enumerate(groups) if not self._is_constant(g)]
        if not usable:
            return list(groups)
        ranges = [ColumnRanges(groups[i].entries, self.column) for i in usable]
        counts = [self._early(row_counts[i], r) for i, r in zip(usable, ranges, strict=True)]
        last = self._last_value(ranges, np.concatenate(counts))
        if last is None:
            return list(groups)
        kept = list(groups)
        for i, r in zip(usable, ranges, strict=True):
            kept[i] = groups[i].only(self._may_come_before(r, last))
        return [g for g in kept if g.entries.num_rows]

    def _is_constant(self, files: PlannedFiles) -> bool:
        """Return whether the rows have the partition's value, whatever the metrics say."""
        return self.column.field_id in identity_source_ids(files.spec)

    def _early(self, rows: Numbers, ranges: ColumnRanges) -> Numbers:
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

    def _last_value(self, ranges: Sequence[ColumnRanges], counts: Numbers) -> pa.Scalar | None:
        """Return a value that at least `limit` rows do not come after; None if none is known."""
        far = pa.concat_arrays([r.lower if self.descending else r.upper for r in ranges])
        by_value = pc.array_sort_indices(far, "descending" if self.descending else "ascending")
        # as floats, because wrong counts must not overflow
        rows = np.cumsum(counts[by_value.to_numpy()], dtype=float)
        position = int(np.searchsorted(rows, self.limit))
        return far[by_value[position].as_py()] if position < len(rows) else None

    def _may_come_before(self, ranges: ColumnRanges, last: pa.Scalar) -> Mask:
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
