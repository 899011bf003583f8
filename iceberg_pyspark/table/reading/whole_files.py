"""Decides which files a filter selects completely or partly, without reading them.

Specification, "Scan Planning": all rows of a file match if no row can make the filter false or
unknown.

Decides from the bounds in manifests whether files have different ranges of a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def _numbers(entries: pa.Table, metric: MetricMap, column: NestedField) -> pa.Array:
    values = entries[metric_column(metric, column.field_id)].combine_chunks()
    return pc.cast(decode_bounds(values, column.type), pa.float64(), safe=False)


def _least_and_greatest(bounds: Sequence[pa.Array]) -> tuple[float, float] | None:
    values = pa.chunked_array(bounds, pa.float64())
    if not len(values) or values.null_count:
        return None
    ends = pc.min_max(values)
    return ends["min"].as_py(), ends["max"].as_py()
