"""The row-level methods of a table of the format: what `SparkTable` does without the bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.portable.portable_operations import (
    ChangeRowsWhere,
    PortableMerge,
    PortableOperation,
)
from iceberg_pyspark.spark.portable.portable_run import PortableRequest, cached, run_portably
from iceberg_pyspark.spark.portable.portable_target import PortableTarget
from iceberg_pyspark.spark.portable.skipped_files import (
    ConditionFilter,
    filter_of_condition,
    filter_of_merge,
)
from iceberg_pyspark.spark.row_changes.batch_changes import change_of_batch
from iceberg_pyspark.spark.row_level.change_frame import as_column, parse_assignments
from iceberg_pyspark.spark.row_level.merge import Merge
from iceberg_pyspark.table.commits.stream_epochs import refuse_own_entries
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.isolation import OperationName
from iceberg_pyspark.table.row_level.touched_rows import RowChanges


@dataclass(frozen=True, kw_only=True)
class PortableRows:
    """The rows of a table of the format, to be changed in one snapshot of these properties."""

    table: FormatTable
    loaded: LoadedTable
    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    transaction: tuple[str, int] | None = None

    def delete(self, condition: str | Column) -> tuple[LoadedTable, RowChanges]:
        """Delete the rows that fulfil the condition."""
        return self._where("delete", Op.DELETE, condition, {})

    def update(
        self, set: Mapping[str, str | Column], condition: str | Column
    ) -> tuple[LoadedTable, RowChanges]:
        """Assign values in the rows that fulfil the condition."""
        return self._where("update", Op.UPDATE, condition, set)

    def _where(
        self,
        name: OperationName,
        op: Op,
        condition: str | Column,
        set: Mapping[str, str | Column],
    ) -> tuple[LoadedTable, RowChanges]:
        text = condition if isinstance(condition, str) else None
        operation = ChangeRowsWhere(
            name=name,
            condition=as_column(condition),
            condition_text=text,
            op=op,
            values=parse_assignments(set),
        )
        return self._run(operation, lambda target: filter_of_condition(target, condition))

    def merge(self, merge: Merge) -> tuple[LoadedTable, RowChanges]:
        """Carry out a merge, whose source is cached if the session can do that."""
        with cached(merge.source) as is_cached:

            def filter_of(target: PortableTarget) -> ConditionFilter:
                text = merge.condition_text
                condition = merge.condition if text is None else text
                return filter_of_merge(target, condition, merge.source, evaluates=is_cached)

            operation = PortableMerge(merge=merge, reads_once=not is_cached)
            return self._run(operation, filter_of)

    def _run(
        self, operation: PortableOperation, filter_of: Callable[[PortableTarget], ConditionFilter]
    ) -> tuple[LoadedTable, RowChanges]:
        table = self.table
        with change_of_batch(
            table.spark, self.loaded.metadata, self.branch, operation.name, self.transaction
        ) as epoch:
            if epoch is not None:
                refuse_own_entries(self.snapshot_properties)
            request = PortableRequest(
                table=table,
                branch=self.branch,
                snapshot_properties=self.snapshot_properties,
                transaction=self.transaction,
                epoch=epoch,
            )
            return run_portably(request, operation, filter_of, self.loaded)
