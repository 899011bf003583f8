"""Decides which files a filter selects completely or partly, without reading them.

Specification, "Scan Planning": all rows of a file match if no row can make the filter false or
unknown.

Decides from the bounds in manifests whether files have different ranges of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.planning.bound_values import decode_bounds
from iceberg_pyspark.planning.proven_files import proven_files
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanTask, by_path
from iceberg_pyspark.spec.entry_columns import MetricMap, metric_column
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    TimestampType,
    TimestamptzType,
)
from iceberg_pyspark.table.reading.table_scan import TableScan


@dataclass(frozen=True, kw_only=True)
class FileSelection:
    """Files by location: a predicate selects all rows of `whole` and maybe some of `partial`."""

    predicate: Predicate
    whole: Mapping[str, ScanTask]
    partial: Mapping[str, ScanTask]


def select_files(scan: TableScan) -> FileSelection:
    """Return the scan's files that its predicate selects completely and those it selects partly."""
    predicate = scan.context.predicate
    whole: list[ScanTask] = []
    partial: list[ScanTask] = []
    for planned_files in scan.plan().files():
        is_whole = proven_files(planned_files, predicate)
        for task, goes in zip(tasks_of(planned_files), is_whole.tolist(), strict=True):
            (whole if goes else partial).append(task)
    return FileSelection(predicate=predicate, whole=by_path(whole), partial=by_path(partial))


_MEASURED_TYPES = (IntegerType, LongType, DecimalType, DateType, TimestampType, TimestamptzType)
_COMMON_PART = 0.5


def files_are_alike(scan: TableScan, column: NestedField) -> bool:
    """Return whether all files have the same half, or more, of the column's range in common.

    A filter by range then skips hardly any file. Returns False if bounds are missing.
    """
    if not isinstance(column.type, _MEASURED_TYPES):
        return False
    lower, upper = [], []
    for planned_files in scan.plan([column.field_id], reads_columns=False).files():
        lower.append(_numbers(planned_files.entries, "lower_bounds", column))
        upper.append(_numbers(planned_files.entries, "upper_bounds", column))
    least, greatest = _least_and_greatest(lower), _least_and_greatest(upper)
    if least is None or greatest is None:
        return False
    common = greatest[0] - least[1]
    return common > _COMMON_PART * (greatest[1] - least[0])


_PART_OF_A_FILE = 0.25
MIN_CLUSTERED_FILES = 4
"""Fewer files that have all values of a range have more than this part of it each."""


def has_known_range(column: NestedField) -> bool:
    """Return whether the bounds of a column of this type tell how much of a range a file has."""
    return isinstance(column.type, _MEASURED_TYPES)


def clustered_columns(scan: TableScan, columns: Iterable[NestedField]) -> list[NestedField]:
    """Return the columns of which a file has, on average, a quarter of the range or less.

    A filter by a few values then skips most files. A file without bounds counts as one with the
    whole range.
    """
    columns = [c for c in columns if has_known_range(c)]
    entries = [
        planned_files.entries
        for planned_files in scan.plan([c.field_id for c in columns], reads_columns=False).files()
    ]
    return [c for c in columns if _part_of_a_file(entries, c) <= _PART_OF_A_FILE]


def _part_of_a_file(entries: Sequence[pa.Table], column: NestedField) -> float:
    """Return the average part of the column's range that a file has."""
    lower, upper = (
        pa.chunked_array([_numbers(e, name, column) for e in entries], pa.float64())
        for name in ("lower_bounds", "upper_bounds")
    )
    least, greatest = pc.min(lower).as_py(), pc.max(upper).as_py()
    if least is None or greatest is None or least >= greatest:
        return 1.0
    parts = pc.divide(pc.subtract(upper, lower), greatest - least)
    part: float = pc.mean(pc.fill_null(parts, 1.0)).as_py()
    return part


def _numbers(entries: pa.Table, metric: MetricMap, column: NestedField) -> pa.Array:
    values = entries[metric_column(metric, column.field_id)].combine_chunks()
    return pc.cast(decode_bounds(values, column.type), pa.float64(), safe=False)


def _least_and_greatest(bounds: Sequence[pa.Array]) -> tuple[float, float] | None:
    values = pa.chunked_array(bounds, pa.float64())
    if not len(values) or values.null_count:
        return None
    ends = pc.min_max(values)
    return ends["min"].as_py(), ends["max"].as_py()
