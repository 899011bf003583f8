"""The metadata table `changes` as Spark plans.

Spark's readers read files that a snapshot added or removed as a whole; the changes of a snapshot
are constants of these files. Python reads files with deletes, because their rows must be compared
with the rows of the previous snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.native_read.native_scan import NativeScan, Part
from iceberg_pyspark.spark.native_read.relations import row_count
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.python_tasks import python_tasks
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.change_feed.net_changes import NetChangeRows, net_change_rows
from iceberg_pyspark.table.metadata_tables.changes_table import (
    ChangePlan,
    ChangeScanTask,
    ComparedChanges,
)
from iceberg_pyspark.table.reading.table_scan import TableScan

if TYPE_CHECKING:
    # Executors import this module and have no bridge.
    from iceberg_pyspark.spark.bridge.jvm import Bridge


def changes_parts(
    spark: SparkSession,
    bridge: Bridge,
    scan: TableScan,
    plan: ChangePlan,
    storage: Mapping[str, str],
) -> list[Part]:
    """Return the parts of a scan of changes; `scan` has the columns and the table to read."""
    scan_fields = {f.name: getattr(scan, f.name) for f in fields(scan)}
    native = NativeScan(spark, bridge, _ChangesScan(**scan_fields, changes=plan), storage=storage)
    parts = native.parts()
    tasks: list[ChangeScanTask | ComparedChanges] = [*plan.in_part, *plan.compared]
    if tasks:
        projection = scan.context.projection
        rows = _ChangedRows(net_change_rows(scan.context), scan.io, projection)
        frame = python_tasks(bridge, tasks, rows, to_spark_schema(projection))
        count = row_count([one.task for t in tasks for one in t.tasks])
        parts.append(Part(plan=bridge.scans.with_statistics(bridge.analyse(frame), count)))
    return parts


@dataclass(frozen=True, kw_only=True)
class _ChangesScan(TableScan):
    """A scan of the files in which all rows were added or all rows were deleted."""

    changes: ChangePlan = field(repr=False)

    def scan_and_plan(
        self, metrics: Collection[int] = (), *, reads_columns: bool = True
    ) -> tuple[TableScan, ChangePlan]:
        del reads_columns
        self.changes.metrics = metrics
        return self, self.changes


@dataclass(frozen=True)
class _ChangedRows:
    """The function that reads a change's rows on an executor, in Spark's types."""

    reader: NetChangeRows
    io: FileIO
    projection: Schema

    def __call__(self, task: Any) -> Iterator[pa.RecordBatch]:
        assert isinstance(task, ChangeScanTask | ComparedChanges)
        to_spark = compile_to_spark(self.projection)
        for batch in self.reader.read(self.io, task, self.projection):
            yield to_spark(batch)
