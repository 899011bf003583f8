"""The rows of a DataFrame as data files of a table: written by Spark's tasks, committed by no one.

Each task gives its complete data files back as its result, so those of failed, lost or speculative
attempts never count. A job that fails removes what its finished tasks have written.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.arrow.write_files import write_data_files
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.file_io import FileIO


def write_frame(frame: DataFrame, context: WriteContext, io: FileIO) -> list[DataFile]:
    """Write all rows; columns are found by name."""

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        files = write_data_files(
            context, batches, io, partition_id=task.partitionId(), task_id=task.taskAttemptId()
        )
        yield pa.RecordBatch.from_pydict({"files": [pickle.dumps(files)]})

    results = frame.mapInArrow(written, "files binary").collect()
    return [f for r in results for f in pickle.loads(r.files)]
