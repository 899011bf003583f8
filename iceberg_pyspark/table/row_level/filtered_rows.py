"""DELETE, UPDATE and replacement of the rows that a filter selects, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from iceberg_pyspark.arrow.row_sources import KeptRows
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Filter, Predicate
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.isolation import OperationName
from iceberg_pyspark.table.row_level.row_operation import PlannedChanges, change_batch, columns_of
from iceberg_pyspark.table.row_level.row_target import Files, RowTarget
from iceberg_pyspark.table.row_level.row_values import TABLE, row_values


@dataclass(frozen=True, kw_only=True)
class DeletedRows:
    """A `RowOperation` that deletes the rows of a filter."""

    filter: Filter
    name: ClassVar[OperationName] = "delete"
    writes_rows: ClassVar[bool] = False

    def plan(self, target: RowTarget) -> PlannedChanges:
        """See `RowOperation`: only the columns of the filter are read."""
        predicate = _bound(self.filter, target)

        def changes(files: Files) -> Iterator[pa.RecordBatch]:
            for path, batch in target.batches(files.values(), predicate, ()):
                yield change_batch(Op.DELETE, columns_of(batch), path)

        return PlannedChanges(predicate=predicate, changes=changes)


@dataclass(frozen=True, kw_only=True)
class ReplacedRows(DeletedRows):
    """A `RowOperation` that deletes the rows of a filter, and adds rows in the same snapshot."""

    rows: KeptRows

    def plan(self, target: RowTarget) -> PlannedChanges:
        """See `RowOperation`."""
        rows = [batch for _, batch in self.rows.batches()]
        return replace(super().plan(target), new_rows=rows)


@dataclass(frozen=True, kw_only=True)
class UpdatedRows:
    """A `RowOperation` that assigns values in the rows of a filter; None: in all rows."""

    values: Mapping[str, Any]
    filter: Filter | None
    name: ClassVar[OperationName] = "update"
    writes_rows: ClassVar[bool] = True

    def plan(self, target: RowTarget) -> PlannedChanges:
        """See `RowOperation`."""
        if not self.values:
            raise InvalidRequestError(f"update of {target.name}: name a column to set")
        predicate = AlwaysTrue() if self.filter is None else _bound(self.filter, target)
        values = row_values(self.values, target, {TABLE: target.column_names})

        def changes(files: Files) -> Iterator[pa.RecordBatch]:
            rows = target.batches(files.values(), predicate, lineage=target.row_id)
            for path, batch in rows:
                assigned = values.columns({TABLE: batch}, batch.num_rows)
                yield change_batch(Op.UPDATE, columns_of(batch) | assigned, path)

        return PlannedChanges(predicate=predicate, changes=changes)


def _bound(filter: Filter, target: RowTarget) -> Predicate:
    return bind(as_predicate(filter), target.schema, case_sensitive=target.case_sensitive)
