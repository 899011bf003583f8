"""What a query needs of a scan: columns, and rows by conditions and by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from iceberg_pyspark.expressions.predicates import BoundLiteral, BoundSet, BoundUnary, Predicate
from iceberg_pyspark.planning.bound_values import Numbers
from iceberg_pyspark.planning.proven_files import proven_files
from iceberg_pyspark.planning.scan_plan import Plan, PlannedFiles
from iceberg_pyspark.planning.top_rows import TopRows


@dataclass(frozen=True, kw_only=True)
class ScanCondition:
    """One of a query's conditions on the rows of a scan; the query evaluates all of them."""

    predicate: Predicate | None
    """The bound predicate of exactly the rows that fulfil the condition, or None without one."""

    columns: frozenset[str]
    """The columns of the scan that the condition needs."""


@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The conditions of a query, and what it does with the rows."""

    conditions: Sequence[ScanCondition] = ()
    required_columns: frozenset[str] | None = None
    """The columns that are needed for more than conditions; None means all columns."""

    limit: int | None = None
    """The greatest number of rows that the query takes, which may be any rows."""

    top: TopRows | None = None
    """The first rows that the query takes, of those that fulfil all conditions."""

    grouped: bool = False
    """Whether files of equal partition values form one group."""

    def files(self, plan: Plan) -> Iterator[PlannedFiles]:
        """Yield the files of a plan that may have rows that the query takes."""
        if self.limit is not None:
            return _files_for_limit(plan, self.limit)
        conditions = [c.predicate for c in self.conditions if c.predicate is not None]
        if self.top is None or len(conditions) < len(self.conditions):
            return plan.files()
        files = list(plan.files())
        return iter(self.top.files(files, [_sure_rows(f, conditions) for f in files]))


def _files_for_limit(plan: Plan, limit: int) -> Iterator[PlannedFiles]:
    """Yield the files of each manifest, until they have enough rows for the limit."""
    rows = 0.0
    for planned_files in plan.files():
        # Floats, because wrong counts could overflow integers.
        rows_after = rows + np.cumsum(planned_files.min_live_rows(), dtype=float)
        yield planned_files.first(int(np.searchsorted(rows_after, limit)) + 1)
        rows = rows_after[-1] if len(rows_after) else rows
        if rows >= limit:
            return


def _sure_rows(files: PlannedFiles, conditions: Sequence[Predicate]) -> Numbers:
    """Return the least number of rows of each file that fulfil all conditions."""
    rows = files.min_live_rows()
    for condition in conditions:
        rows = np.where(proven_files(files, condition), rows, 0)
    return rows


def proven_conditions(files: Iterable[PlannedFiles], conditions: Sequence[Predicate]) -> set[int]:
    """Return the positions of the conditions that every row of all files fulfils.

    The conditions are bound row predicates; the entries have the metrics of their columns.
    """
    unproven = dict(enumerate(conditions))
    for manifest_files in files:
        for number, condition in list(unproven.items()):
            if not proven_files(manifest_files, condition).all():
                del unproven[number]
        if not unproven:
            break
    return set(unproven)


def never_null(conditions: Iterable[Predicate]) -> frozenset[int]:
    """Return the ids of columns that are never null in a row that fulfils all conditions."""
    return frozenset(
        leaf.column.field_id
        for leaf in conditions
        if isinstance(leaf, BoundLiteral | BoundSet)
        or (isinstance(leaf, BoundUnary) and leaf.op == "not_null")
    )
