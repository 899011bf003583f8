"""DELETE and UPDATE of the rows that a filter selects, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Filter, Predicate
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.isolation import OperationName
from iceberg_pyspark.table.row_level.row_operation import change_batch
from iceberg_pyspark.table.row_level.row_target import Files, RowTarget
from iceberg_pyspark.table.row_level.row_values import assigned_columns


@dataclass(frozen=True, kw_only=True)
class DeletedRows:
    """A `RowOperation` that deletes the rows of a filter."""

    filter: Filter
    name: ClassVar[OperationName] = "delete"
    writes_rows: ClassVar[bool] = False

    def predicate(self, target: RowTarget) -> Predicate:
        """See `RowOperation`."""
        return _bound(self.filter, target)

    def changes(self, target: RowTarget, files: Files) -> Iterator[pa.RecordBatch]:
        """See `RowOperation`: only the columns of the filter are read."""
        for path, batch in target.batches(files.values(), self.predicate(target), ()):
            yield change_batch(Op.DELETE, {"_pos": batch.column("_pos")}, path)


@dataclass(frozen=True, kw_only=True)
class UpdatedRows:
    """A `RowOperation` that assigns values in the rows of a filter; None: in all rows."""

    values: Mapping[str, Any]
    filter: Filter | None
    name: ClassVar[OperationName] = "update"
    writes_rows: ClassVar[bool] = True

    def predicate(self, target: RowTarget) -> Predicate:
        """See `RowOperation`."""
        return AlwaysTrue() if self.filter is None else _bound(self.filter, target)

    def changes(self, target: RowTarget, files: Files) -> Iterator[pa.RecordBatch]:
        """See `RowOperation`."""
        if not self.values:
            raise InvalidRequestError(f"update of {target.name}: name a column to set")
        assign = assigned_columns(self.values, target)
        rows = target.batches(files.values(), self.predicate(target), lineage=target.row_id)
        for path, batch in rows:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield change_batch(Op.UPDATE, columns | assign(batch), path)


def _bound(filter: Filter, target: RowTarget) -> Predicate:
    return bind(as_predicate(filter), target.schema, case_sensitive=target.case_sensitive)
