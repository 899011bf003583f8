"""DELETE: removes the rows that a condition selects.

If the condition selects whole files by their partition or metrics, no data is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.filters import exact_predicate_of
from iceberg_pyspark.spark.row_level.change_columns import Op
from iceberg_pyspark.spark.row_level.change_frame import Change
from iceberg_pyspark.spark.row_level.change_where import ChangeWhere
from iceberg_pyspark.spark.row_level.isolation import Mode, OperationName
from iceberg_pyspark.spark.row_level.target import Target
from iceberg_pyspark.table.reading.whole_files import FileSelection, select_files


@dataclass(frozen=True, kw_only=True)
class Delete(ChangeWhere):
    """A `DELETE` of the rows that fulfil the condition."""

    name: ClassVar[OperationName] = "delete"

    def change(self) -> Change:
        """See `ChangeWhere`."""
        return Change(op=Op.DELETE)

    def selection(self, target: Target) -> FileSelection | None:
        """See `Operation`."""
        rows = target.rows()
        condition = target.session.bridge.row_changes.condition_of(rows.where(self.condition))
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
