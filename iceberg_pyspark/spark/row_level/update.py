"""UPDATE: rows that fulfil a condition get new values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.spark.row_level.assignments import Assignments
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_frame import Change, change_frame
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.key_range import rows_selected
from iceberg_pyspark.spark.row_level.operation import RowChanges
from iceberg_pyspark.spark.row_level.store_assignment import Rows
from iceberg_pyspark.spark.row_level.target import Target


@dataclass(frozen=True, kw_only=True)
class Update:
    """Assign values in the rows for which the condition is true."""

    assignments: Assignments
    condition: Column
    may_run_again: bool = True
    name: ClassVar[OperationName] = "update"
    requires_single_match: ClassVar[bool] = False
    source: ClassVar[None] = None

    def selection(self, target: Target) -> None:
        """See `Operation`: which rows change is for Spark to tell."""
        del target

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        del mode
        return True

    def needs_no_rebalance(self, target: Target) -> bool:
        """See `Operation`: few rows of many files."""
        del target
        return False

    def touched(self, target: Target) -> DataFrame:
        """See `Operation`."""
        return rows_selected(target, target.rows(), self.condition).where(self.condition)

    def changes(self, target: Target, rows: DataFrame, mode: Mode) -> DataFrame:
        """See `Operation`."""
        if mode == "merge-on-read":
            # filtered, not tested: Spark prunes files by it
            rows = rows_selected(target, rows, self.condition).where(self.condition)
            every = Change(op=Op.UPDATE, values=self.assignments)
            return change_frame(target, Rows(frame=rows, target=rows), [every])
        return change_frame(
            target,
            Rows(frame=rows, target=rows),
            [
                Change(condition=self.condition, op=Op.UPDATE, values=self.assignments),
                Change(op=Op.COPY, placed=False),
            ],
        )

    def summary(self, done: RowChanges) -> dict[str, str]:
        """See `Operation`."""
        del done
        return {}
