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
    """Assign values in the rows for which the condition is true."""

    assignments: Assignments
    name: ClassVar[OperationName] = "update"

    def change(self) -> Change:
        """See `ChangeWhere`."""
        return Change(op=Op.UPDATE, values=self.assignments)

    def selection(self, target: Target) -> None:
        """See `Operation`: which rows change is for Spark to tell."""
        del target

    def writes_rows(self, mode: Mode) -> bool:
        """See `Operation`."""
        del mode
        return True
