"""A Spark job whose tasks write data files, and what becomes of the files when it fails.

Each task gives what it has to say back as its result, so that failed, lost or speculative attempts
never count. A job that fails removes what its finished tasks have written; a task that fails
removes its own, and what killed tasks have left is for orphan removal to find.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.file_io import FileIO

Result = TypeVar("Result")
WritingTask: TypeAlias = Callable[
    [Iterable[pa.RecordBatch], int, int], tuple[Sequence[DataFile], Result]
]
"""From the rows of a task, its partition id and its attempt id to its files and its result."""


class WrittenPaths(AccumulatorParam[list[str]]):
    """Paths of all finished tasks: Spark adds up those of one attempt of each."""

    def zero(self, value: list[str]) -> list[str]:
        """None yet."""
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:
        """Both."""
        value1.extend(value2)
        return value1


@dataclass(frozen=True)
class _Task:
    """The function of `mapInArrow`; one row comes out, the pickled result about the files."""

    write: WritingTask[Any]
    written: Accumulator[list[str]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        with worker_step():
            files, result = self.write(batches, task.partitionId(), task.taskAttemptId())
        self.written.add([f.file_path for f in files])
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(result)], pa.binary())})


def run_writing_job(frame: DataFrame, write: WritingTask[Result], io: FileIO) -> Iterator[Result]:
    """What every task has to say, once all have written; files of a failed job are removed."""
    written = frame.sparkSession.sparkContext.accumulator([], WrittenPaths())
    try:
        results = frame.mapInArrow(_Task(write, written), "files binary").collect()
    except BaseException:
        for path in written.value:
            # the failure that led here is the one to report; what stays is an orphan
            with contextlib.suppress(StorageError):
                io.delete(path)
        raise
    finally:
        # Spark keeps the accumulator for as long as the process lives
        written.value = []
    return (pickle.loads(r.files) for r in results)
