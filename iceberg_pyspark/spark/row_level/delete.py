"""DELETE: rows that fulfil a condition go.

Where the condition selects whole files by their partition or metrics no data is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.spark.bridge.filters import exact_predicate_of
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_frame import Change, change_frame
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.key_range import rows_selected
from iceberg_pyspark.spark.row_level.operation import RowChanges
from iceberg_pyspark.spark.row_level.store_assignment import Rows
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.table.reading.whole_files import FileSelection, select_files


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Delete the rows for which the condition is true."""

    condition: Column
    may_run_again: bool = True
    name: ClassVar[OperationName] = "delete"
    requires_single_match: ClassVar[bool] = False
    source: ClassVar[None] = None

    def selection(self, target: Target) -> FileSelection | None:
        """See `Operation`."""
        rows = target.rows()
        described = target.session.bridge.row_changes.condition_of(rows.where(self.condition))
        if described is None:
            return None
        try:
            predicate = bind(exact_predicate_of(described, target.schema), target.schema)
        except InvalidRequestError:
            # more than columns and literals
            return None
        return select_files(target.scan().pruned_by(predicate))

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        return mode == "copy-on-write"

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
            selected = rows_selected(target, rows, self.condition).where(self.condition)
            every = Change(op=Op.DELETE)
            return change_frame(target, Rows(frame=selected, target=selected), [every])
        return change_frame(
            target,
            Rows(frame=rows, target=rows),
            [
                Change(condition=self.condition, op=Op.DELETE),
                Change(op=Op.COPY, placed=False),
            ],
        )

    def summary(self, done: RowChanges) -> dict[str, str]:
        """See `Operation`."""
        del done
        return {}
