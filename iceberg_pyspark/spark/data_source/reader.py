"""The portable reader: one process plans the tasks, other processes read the rows.

Spark pickles the reader before it calls `partitions()`, so the reader has everything that tasks
need from the start. `pushFilters` is not implemented: Spark keeps pushed filters in the relation,
and later queries on the same DataFrame would miss rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from iceberg_pyspark.arrow.read.read_task import read_group
from iceberg_pyspark.planning.scan_tasks import ScanTaskGroup
from iceberg_pyspark.spark.rows.batches import compile_to_spark
from iceberg_pyspark.spark.rows.nanoseconds import NanosAs, compile_shown_nanos, with_shown_nanos
from iceberg_pyspark.spark.rows.worker_steps import worker_step

if TYPE_CHECKING:
    # Executors import this module to run `read` and do not plan scans.
    from iceberg_pyspark.planning.scan_plan import Plan
    from iceberg_pyspark.table.reading.table_scan import TableScan


@dataclass(frozen=True)
class TaskGroupPartition(InputPartition):
    """A Spark partition: a group of scan tasks."""

    group: ScanTaskGroup


class IcebergReader(DataSourceReader):
    """A reader of one pinned snapshot of a table."""

    def __init__(self, scan: TableScan, nanos_as: NanosAs = "refused") -> None:
        self._plan: Plan | None = None
        if scan.planner is not None:
            # The server's answer may contain the credentials that tasks read with.
            scan, self._plan = scan.scan_and_plan()
        self._scan: TableScan | None = scan
        self._context = scan.context
        self._io = scan.io
        self._nanos_as = nanos_as

    def __getstate__(self) -> dict[str, Any]:
        # Executors need the scan context, but not the table's metadata.
        return {**self.__dict__, "_scan": None, "_plan": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the task groups, on the driver; for an empty list Spark calls `read(None)` once."""
        assert self._scan is not None, "partitions() runs where the reader was made"
        with worker_step():
            return [TaskGroupPartition(group) for group in self._scan.plan_groups(self._plan)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, on an executor."""
        if not isinstance(partition, TaskGroupPartition):
            return
        with worker_step():
            projection = self._context.projection
            show_nanos = compile_shown_nanos(projection, self._nanos_as)
            to_spark = compile_to_spark(with_shown_nanos(projection, self._nanos_as))
            for batch in read_group(self._context, partition.group, self._io):
                yield to_spark(show_nanos(batch))
