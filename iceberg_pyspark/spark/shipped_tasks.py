"""Tasks of ours in a plan of Spark's: shipped pickled, read on executors as Arrow."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from iceberg_pyspark.spark.worker_imports import worker_step


def shipped_tasks(
    spark: SparkSession,
    tasks: Sequence[Any],
    rows: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType,
    *,
    most_partitions: int | None = None,
) -> DataFrame:
    """What `rows` gives for each task, of that schema; a partition per task unless bounded."""
    if not tasks:
        return spark.createDataFrame([], schema)
    pickled = [(pickle.dumps(task),) for task in tasks]
    shipped = spark.sparkContext.parallelize(
        pickled, min(len(pickled), most_partitions or len(pickled))
    )
    return spark.createDataFrame(shipped, "task binary").mapInArrow(_ReadShipped(rows), schema)


@dataclass(frozen=True)
class _ReadShipped:
    rows: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker_step():
            for batch in batches:
                for data in batch.column(0).to_pylist():
                    yield from self.rows(pickle.loads(data))
