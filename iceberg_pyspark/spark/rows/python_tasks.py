"""Python tasks in a Spark plan: sent pickled to executors, which return Arrow data."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from iceberg_pyspark.spark.rows.worker_steps import worker_step

if TYPE_CHECKING:
    # Executors import this module and have no bridge.
    from iceberg_pyspark.spark.bridge.jvm import Bridge


def python_tasks(
    bridge: Bridge,
    tasks: Sequence[Any],
    rows: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType,
    *,
    max_partitions: int | None = None,
) -> DataFrame:
    """Return the rows that `rows` yields for each task; one partition per task unless bounded."""
    if not tasks:
        return bridge.spark.createDataFrame([], schema)
    partitions = min(len(tasks), max_partitions or len(tasks))
    task_rows = bridge.binary_rows([(pickle.dumps(task),) for task in tasks], "task", partitions)
    return task_rows.mapInArrow(_ReadPythonTasks(rows), schema)


@dataclass(frozen=True)
class _ReadPythonTasks:
    rows: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker_step():
            for batch in batches:
                for data in batch.column(0).to_pylist():
                    yield from self.rows(pickle.loads(data))
