"""The common part of DELETE and UPDATE: a condition selects the rows to change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.spark.row_level.assignments import Rows
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_frame import Change, change_frame
from iceberg_pyspark.spark.row_level.isolation import Mode
from iceberg_pyspark.spark.row_level.key_range import (
    Source,
    prune_by_key_range,
    subqueries_of,
)
from iceberg_pyspark.spark.row_level.operation import RowChanges
from iceberg_pyspark.spark.row_level.target import Target


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
        """See `Operation`: the changed rows are few and come from many files."""
        del target
        return False

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
        changes = [replace(self.change(), condition=self.condition), _COPY]
        return change_frame(target, Rows(frame=rows, target=rows), changes)

    def summary(self, row_changes: RowChanges) -> dict[str, str]:
        """See `Operation`."""
        del row_changes
        return {}

    def _select(self, target: Target, rows: DataFrame) -> DataFrame:
        for source, keys in self.sources(target, rows):
            rows = prune_by_key_range(target, rows, source, keys)
        return rows.where(self.condition)


_COPY = Change(op=Op.COPY, has_position=False)
