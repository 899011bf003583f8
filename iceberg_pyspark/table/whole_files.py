"""Which files a filter selects with all their rows, and which with some: told without reading any.

Specification, "Scan Planning": a file all of whose rows match is one that may hold no row for which
the filter is false or unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import Predicate, UnaryPredicate
from iceberg_pyspark.expressions.rewriting import columns_of, not_, or_
from iceberg_pyspark.planning.entry_filter import matching_metrics
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.table.scan import TableScan

_WHOLE_FILES = 2**62


@dataclass(frozen=True, kw_only=True)
class FileSelection:
    """Files by location, of which a predicate selects every row (`whole`) or may select some."""

    predicate: Predicate
    whole: Mapping[str, ScanTask]
    partial: Mapping[str, ScanTask]


def select_files(scan: TableScan) -> FileSelection:
    """The files of a scan by what its predicate selects of them."""
    predicate = scan.context.predicate
    left_over = _left_over(predicate, scan.context.schemas[0])
    whole: dict[str, ScanTask] = {}
    partial: dict[str, ScanTask] = {}
    for planned in scan.plan().files():
        may_leave = matching_metrics(planned.entries, left_over)
        for task, leaves in zip(tasks_of(planned, _WHOLE_FILES), may_leave, strict=True):
            goes = task.filter_satisfied or not leaves
            (whole if goes else partial)[task.file_path] = task
    return FileSelection(predicate=predicate, whole=whole, partial=partial)


def _left_over(predicate: Predicate, schema: Schema) -> Predicate:
    """What is true for every row for which the predicate is not; a null makes it unknown."""
    nulls = [
        bind(UnaryPredicate("is_null", schema.name_by_id[field_id]), schema)
        for field_id in sorted(columns_of(predicate))
    ]
    return or_(not_(predicate), *nulls)
