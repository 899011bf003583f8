"""The common part of DELETE and UPDATE: a condition selects the rows to change.

DELETE: removes the rows that a condition selects.

If the condition selects whole files by their partition or metrics, no data is read.

UPDATE: changes the rows that a condition selects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.spark_conditions import exact_predicate_of
from iceberg_pyspark.spark.row_level.change_frame import Assignments, Change, Rows, change_frame
from iceberg_pyspark.spark.row_level.key_range import (
    Source,
    prune_by_key_range,
    subqueries_of,
)
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.table.reading.whole_files import FileSelection, select_files
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.isolation import Mode, OperationName
from iceberg_pyspark.table.row_level.touched_rows import RowChanges


@dataclass(frozen=True, kw_only=True)
class ChangeWhere(ABC):
    """An `Operation` on the rows that fulfil a condition."""

    condition: Column
    may_run_again: bool = True
    requires_single_match: ClassVar[bool] = False
    source: ClassVar[None] = None

    @abstractmethod
    def change(self) -> Change:
        """Return the change of each selected row."""

    def needs_no_rebalance(self, target: Target) -> bool:
        """See `Operation`: one task reads few rows, and else they are of many files."""
        return target.is_read_by_one_task

    def sources(self, target: Target, rows: DataFrame) -> list[Source]:
        """See `Operation`."""
        return subqueries_of(target, rows, self.condition)

    def touched_files(self, target: Target) -> DataFrame:
        """See `Operation`."""
        return self._select(target, target.rows())

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `Operation`."""
        if mode == "merge-on-read":
            # A filter instead of a case expression, so that Spark prunes files by the condition.
            rows = self._select(target, rows)
            return change_frame(target, Rows(frame=rows, target=rows), [self.change()])
        # No positions are needed of files that are replaced.
        changed = replace(self.change(), condition=self.condition, has_position=False)
        changes = [changed, _COPY]
        return change_frame(target, Rows(frame=rows, target=rows), changes)

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """See `Operation`."""
        del row_changes
        return {}

    def _select(self, target: Target, rows: DataFrame) -> DataFrame:
        for source, keys in self.sources(target, rows):
            rows = prune_by_key_range(target, rows, source, keys)
        selected: DataFrame = target.session.bridge.row_changes.where(rows, self.condition)
        return selected


_COPY = Change(op=Op.COPY, has_position=False)


@dataclass(frozen=True, kw_only=True)
class Delete(ChangeWhere):
    """A `DELETE` of the rows that fulfil the condition."""

    name: ClassVar[OperationName] = "delete"

    def change(self) -> Change:
        """See `ChangeWhere`."""
        return Change(op=Op.DELETE)

    def selection(self, target: Target) -> FileSelection | None:
        """See `Operation`."""
        row_changes = target.session.bridge.row_changes
        condition = row_changes.condition_of(row_changes.where(target.rows(), self.condition))
        if condition is None:
            return None
        try:
            predicate = exact_predicate_of(condition, target.schema)
        except InvalidRequestError:
            # The condition has more than columns and literals.
            return None
        return select_files(target.scan().pruned_by(predicate))

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        return mode == "copy-on-write"


@dataclass(frozen=True, kw_only=True)
class Update(ChangeWhere):
    """An `UPDATE` of the rows that fulfil the condition."""

    assignments: Assignments
    name: ClassVar[OperationName] = "update"

    def change(self) -> Change:
        """See `ChangeWhere`."""
        return Change(op=Op.UPDATE, values=self.assignments)

    def selection(self, target: Target) -> None:
        """See `Operation`: only a Spark job can determine the changed rows."""
        del target

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        del mode
        return True
