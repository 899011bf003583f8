"""UPDATE: changes the rows that a condition selects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iceberg_pyspark.spark.row_level.assignments import Assignments
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_frame import Change
from iceberg_pyspark.spark.row_level.change_where import ChangeWhere
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.target import Target


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
