"""Tasks of ours in a plan of Spark's: shipped pickled, read on executors as Arrow."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from iceberg_pyspark.spark.worker_steps import worker_step


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
    partitions = min(len(tasks), most_partitions or len(tasks))
    shipped = _in_the_jvm(spark, [(pickle.dumps(task),) for task in tasks], partitions)
    return shipped.mapInArrow(_ReadShipped(rows), schema)


def _in_the_jvm(spark: SparkSession, shipped: Sequence[tuple[bytes]], partitions: int) -> DataFrame:
    """A DataFrame of one binary column, whose rows the JVM unpickles.

    What `createDataFrame` does with an RDD, but for its step in Python workers, which looks at each
    row and takes as long as ours.
    """
    context = spark.sparkContext
    jvm: Any = context._jvm
    pickled = context.parallelize(shipped, partitions)._jrdd
    rows = jvm.SerDeUtil.toJavaArray(jvm.SerDeUtil.pythonToJava(pickled, True)).rdd()
    schema = StructType().add("task", BinaryType(), nullable=False)
    made = spark._jsparkSession.applySchemaToPythonRDD(rows, schema.json())
    return DataFrame(made, spark)


@dataclass(frozen=True)
class _ReadShipped:
    rows: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with worker_step():
            for batch in batches:
                for data in batch.column(0).to_pylist():
                    yield from self.rows(pickle.loads(data))
