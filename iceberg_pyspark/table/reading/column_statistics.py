"""Computes column statistics of a snapshot: distinct values, nulls, minimum and maximum.

Distinct values are counted by the writer of a statistics file; table metadata repeats the counts of
its theta sketches (Puffin specification, `apache-datasketches-theta-v1`), so the file itself is not
opened. The other values come from manifests. All are only good for estimates: deleted rows are
counted, and bounds may be wider than the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.formats.puffin.theta_sketches import DISTINCT_COUNT, THETA_SKETCH
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.property_types import count_in
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.reading.table_scan import TableScan

_log = get_logger(__name__)

_UNBOUNDED_TYPES = (types.StringType, types.BinaryType, types.FixedType, types.UUIDType)
"""Types whose minimum and maximum no estimate uses."""

_BOUNDED_TYPES = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimestamptzType,
    types.BooleanType,
)

_MAX_FILES = 100_000
"""The manifests of a table with more data files are not read for an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """The statistics of one column; `least` and `greatest` are physical values (`spec/values.py`).

    They are None if all values are null, and for types whose order no estimate uses.
    """

    distinct_count: int
    null_count: int
    least: Any = None
    greatest: Any = None


def distinct_counts(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, int]:
    """Return the distinct counts in the snapshot's statistics files, by column id."""
    counts: dict[int, int] = {}
    for file in metadata.statistics:
        if snapshot is None or file.snapshot_id != snapshot.snapshot_id:
            continue
        for blob in file.blob_metadata:
            if blob.type != THETA_SKETCH or len(blob.fields) != 1:
                continue
            text = blob.properties.get(DISTINCT_COUNT, "")
            count = count_in(text)
            if count is None:
                _log.info(
                    "%s does not say how many values column %d has (%s=%.40r): it is left out of "
                    "estimates; compute the statistics again",
                    file.statistics_path,
                    blob.fields[0],
                    DISTINCT_COUNT,
                    text,
                )
            else:
                counts[blob.fields[0]] = count
    return counts


def column_statistics(
    scan: TableScan, columns: Iterable[types.NestedField]
) -> Mapping[int, ColumnStatistics]:
    """Return complete statistics of columns by id, for the whole snapshot, ignoring the filter.

    Columns without null counts or bounds are left out: if Spark 4.1 has only a distinct count, it
    assumes that a column has nulls only.
    """
    # the distinct counts are those of the whole snapshot
    counts = distinct_counts(scan.metadata, scan.snapshot) if scan.appends is None else {}
    totals = {
        c.field_id: _Totals(c)
        for c in columns
        if c.field_id in counts and isinstance(c.type, _BOUNDED_TYPES + _UNBOUNDED_TYPES)
    }
    files = 0 if scan.snapshot is None else scan.snapshot.number("total-data-files")
    if not totals or files is None or files > _MAX_FILES:
        return {}
    for planned_files in scan.plan(list(totals), reads_columns=False).files():
        for total in totals.values():
            total.add(planned_files)
    return {
        i: ColumnStatistics(
            distinct_count=counts[i],
            null_count=total.nulls,
            least=total.least,
            greatest=total.greatest,
        )
        for i, total in totals.items()
        if total.complete
    }


class _Totals:
    """The null count and bounds of one column in the manifests read so far."""

    def __init__(self, column: types.NestedField) -> None:
        self._column = column
        self.complete = True
        self.nulls = 0
        self.least: Any = None
        self.greatest: Any = None

    def add(self, planned_files: PlannedFiles) -> None:
        rows = planned_files.entries["record_count"].combine_chunks()
        nulls = self._metric(planned_files, "null_value_counts")
        if self._column.required:
            nulls = pc.fill_null(nulls, 0)
        # a negative count is unknown, and more nulls than rows are wrong
        is_right = pc.and_(pc.greater_equal(nulls, 0), pc.less_equal(nulls, rows))
        if not pc.all(pc.fill_null(is_right, False)).as_py():
            self.complete = False
            return
        self.nulls += pc.sum(nulls).as_py() or 0
        if isinstance(self._column.type, _UNBOUNDED_TYPES):
            return
        has_values = pc.less(nulls, rows)
        least = self._bounds(planned_files, "lower_bounds")
        greatest = self._bounds(planned_files, "upper_bounds")
        has_bounds = pc.and_(pc.is_valid(least), pc.is_valid(greatest))
        if pc.any(pc.and_not(has_values, has_bounds)).as_py():
            self.complete = False
            return
        bounds = [self.least, pc.min(least).as_py()]
        self.least = min((v for v in bounds if v is not None), default=None)
        bounds = [self.greatest, pc.max(greatest).as_py()]
        self.greatest = max((v for v in bounds if v is not None), default=None)

    def _bounds(self, planned_files: PlannedFiles, metric: MetricMap) -> pa.Array:
        return decode_bounds(self._metric(planned_files, metric), self._column.type)

    def _metric(self, planned_files: PlannedFiles, metric: MetricMap) -> pa.Array:
        return planned_files.entries[metric_column(metric, self._column.field_id)].combine_chunks()
