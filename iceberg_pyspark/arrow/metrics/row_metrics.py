"""Computes the metrics of a data file from its rows, for formats without metrics in the footer.

The metrics and rules are those of `arrow/metrics/column_metrics.py` for Parquet footers, except
that column sizes and split offsets are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.arrow.metrics.column_metrics import (
    FileMetrics,
    Leaf,
    leaf_column,
    metric_leaves,
    serialized_bounds,
)
from iceberg_pyspark.arrow.scalars import value_of
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import BinaryType, DoubleType, FloatType, StringType


class RowMetrics:
    """A collector of one file's metrics from its rows."""

    def __init__(self, schema: Schema, properties: Mapping[str, str]) -> None:
        self._leaves = [leaf for leaf in metric_leaves(schema, properties) if leaf.counts]
        self._record_count = 0
        self._nulls = {leaf.field_id: 0 for leaf in self._leaves}
        self._nans = {leaf.field_id: 0 for leaf in self._leaves if _is_float(leaf)}
        self._bounds: dict[int, tuple[Any, Any]] = {}

    def observe(self, rows: pa.Table) -> None:
        """Add rows of the file to the metrics."""
        self._record_count += rows.num_rows
        for leaf in self._leaves:
            column = leaf_column(rows, leaf)
            self._nulls[leaf.field_id] += column.null_count
            if _is_float(leaf):
                nan = pc.is_nan(column)
                nans = pc.sum(nan).as_py() or 0
                self._nans[leaf.field_id] += nans
                if nans:
                    column = column.filter(pc.invert(nan))
            if leaf.bounds and (bounds := _least_and_greatest(leaf, column)) is not None:
                low, high = self._bounds.get(leaf.field_id, bounds)
                self._bounds[leaf.field_id] = (min(low, bounds[0]), max(high, bounds[1]))

    def finish(self) -> FileMetrics:
        """Return the metrics of the file; call this method after all rows were observed."""
        lower, upper = serialized_bounds(
            (leaf, self._bounds[leaf.field_id])
            for leaf in self._leaves
            if leaf.field_id in self._bounds
        )
        return FileMetrics(
            record_count=self._record_count,
            column_sizes={},
            value_counts={leaf.field_id: self._record_count for leaf in self._leaves},
            null_value_counts=self._nulls,
            nan_value_counts=self._nans,
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=(),
        )


def _is_float(leaf: Leaf) -> bool:
    return isinstance(leaf.type, FloatType | DoubleType)


def _least_and_greatest(leaf: Leaf, column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    if isinstance(leaf.type, StringType | BinaryType):
        # the texts of a column may together exceed 32-bit offsets
        column = column.cast(pa.large_binary())
    extremes = pc.min_max(column)
    if not extremes["min"].is_valid:
        return None
    low, high = (
        value_of(leaf.type, extremes["min"]),
        value_of(leaf.type, extremes["max"]),
    )
    if isinstance(leaf.type, StringType):
        return low.decode(), high.decode()
    if _is_float(leaf):
        # the bounds of a zero cover zeros of both signs
        return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return low, high
