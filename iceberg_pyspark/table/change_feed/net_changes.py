"""Reads changes without the rows that a snapshot only copied, task by task, on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from iceberg_pyspark.planning.scan_tasks import ScanContext
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.change_feed.carried_rows import without_carried_rows
from iceberg_pyspark.table.metadata_tables.changes_table import (
    ChangeRows,
    ChangeScanTask,
    ComparedChanges,
)
from iceberg_pyspark.table.metadata_tables.rows import batch_of


def net_change_rows(context: ScanContext) -> NetChangeRows:
    """Return the reader of the rows of a scan."""
    return NetChangeRows(rows=ChangeRows(context=context), columns=context.schemas[0])


@dataclass(frozen=True, kw_only=True)
class NetChangeRows:
    """A reader of the tasks of a plan that compares."""

    rows: ChangeRows = field(repr=False)

    columns: Schema
    """The table's columns, by whose values rows without lineage are compared."""

    def read(
        self, io: FileIO, task: ComparedChanges | ChangeScanTask, projection: Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows: those that were deleted, and then those that were inserted."""
        if isinstance(task, ChangeScanTask):
            yield from self.rows.read(io, task, projection)
            return
        columns = () if task.has_lineage else self.columns.fields
        at = {f.field_id: i for i, f in enumerate(columns)}
        others = [f for f in projection.fields if f.field_id not in at]
        at |= {f.field_id: i for i, f in enumerate(others, len(columns))}

        def read(
            tasks: Sequence[ChangeScanTask], fields: Sequence[NestedField]
        ) -> Iterator[pa.RecordBatch]:
            schema = Schema(fields=tuple(fields))
            return (batch for t in tasks for batch in self.rows.read(io, t, schema))

        for batch in without_carried_rows(
            read,
            (*columns, *others),
            deletes=task.deletes,
            inserts=task.inserts,
            compared=len(columns),
            sequence_number=task.sequence_number,
        ):
            if batch.num_rows:

                def column(f: NestedField, batch: pa.RecordBatch = batch) -> pa.Array:
                    return batch.column(at[f.field_id])

                yield batch_of(projection, batch.num_rows, column)
