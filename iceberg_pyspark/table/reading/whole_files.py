"""Decides which files a filter selects completely or partly, without reading them.

Specification, "Scan Planning": all rows of a file match if no row can make the filter false or
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from iceberg_pyspark.expressions.predicates import (
    And,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.rewriting import and_, not_, or_, push_not
from iceberg_pyspark.planning.entry_filter import matching_metrics
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.partitioning import identity_source_ids
from iceberg_pyspark.table.reading.scan import TableScan


@dataclass(frozen=True, kw_only=True)
class FileSelection:
    """Files by location: a predicate selects all rows of `whole` and maybe some of `partial`."""

    predicate: Predicate
    whole: Mapping[str, ScanTask]
    partial: Mapping[str, ScanTask]


def select_files(scan: TableScan) -> FileSelection:
    """Return the scan's files that its predicate selects completely and those it selects partly."""
    predicate = scan.context.predicate
    complement = _complement(push_not(predicate))
    whole: dict[str, ScanTask] = {}
    partial: dict[str, ScanTask] = {}
    for planned_files in scan.plan().files():
        constant_ids = identity_source_ids(planned_files.spec)
        may_leave = matching_metrics(planned_files.entries, complement, constant_ids)
        for task, leaves in zip(tasks_of(planned_files), may_leave, strict=True):
            goes = task.filter_satisfied or not leaves
            (whole if goes else partial)[task.file_path] = task
    return FileSelection(predicate=predicate, whole=whole, partial=partial)


def _complement(predicate: Predicate) -> Predicate:
    """Return a predicate for all rows for which a predicate without `Not` is false or unknown."""
    match predicate:
        case And(left, right):
            return or_(_complement(left), _complement(right))
        case Or(left, right):
            return and_(_complement(left), _complement(right))
        case BoundLiteral(op="eq", column=column):
            # Bounds can show smaller and greater values, but never that a value differs.
            others = (replace(predicate, op="lt"), replace(predicate, op="gt"))
            return or_(*others, BoundUnary("is_null", column))
        case BoundUnary(op="is_null" | "not_null"):
            return push_not(not_(predicate))
        case BoundUnary(column=column) | BoundLiteral(column=column) | BoundSet(column=column):
            return or_(push_not(not_(predicate)), BoundUnary("is_null", column))
        case _:
            return push_not(not_(predicate))
