"""The rows of a DataFrame as data files of a table: written by Spark's tasks, committed by no one.

Each task gives its complete data files back as its result, so those of failed, lost or speculative
attempts never count. A job that fails removes what its finished tasks have written; what tasks
that were killed have left there is for orphan removal to find.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.write_context import WriteContext
from iceberg_pyspark.arrow.write_files import write_data_files
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.file_io import FileIO


class WrittenPaths(AccumulatorParam[list[str]]):
    """Paths of all finished tasks: Spark adds up those of one attempt of each."""

    def zero(self, value: list[str]) -> list[str]:
        """None yet."""
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:
        """Both."""
        value1.extend(value2)
        return value1


def write_frame(frame: DataFrame, context: WriteContext, io: FileIO) -> list[DataFile]:
    """Write all rows as they lie (`write_layout.py`); columns are found by name."""
    written = frame.sparkSession.sparkContext.accumulator([], WrittenPaths())

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        files = write_data_files(
            context, batches, io, partition_id=task.partitionId(), task_id=task.taskAttemptId()
        )
        written.add([f.file_path for f in files])
        if files:
            yield pa.RecordBatch.from_pydict({"files": [pickle.dumps(files)]})

    try:
        results: list[Any] = frame.mapInArrow(write, "files binary").collect()
    except BaseException:
        for path in written.value:
            # the failure that led here is the one to report; what stays is an orphan
            with contextlib.suppress(StorageError):
                io.delete(path)
        raise
    finally:
        # Spark keeps the accumulator for as long as the process lives
        written.value = []
    return [f for r in results for f in pickle.loads(r.files)]
