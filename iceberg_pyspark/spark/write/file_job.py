"""A Spark job whose tasks write data files, and the clean-up after a failure.

Each task returns its result as a row, so failed, lost or speculative attempts never count. A failed
job removes the files of its finished tasks; a failed task removes its own files. The files of
killed tasks are left to the removal of orphan files.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.arrays import binary_array
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.written_files import remove_files

if TYPE_CHECKING:
    from pyspark import SparkContext

Result = TypeVar("Result")
WritingTask: TypeAlias = Callable[
    [Iterable[pa.RecordBatch], int, int], tuple[Sequence[DataFile], Result]
]
"""A function of a task's rows, partition id and attempt id; it returns its files and a result."""


class WrittenPaths(AccumulatorParam[list[str]]):
    """An accumulator of the file paths of all finished tasks; Spark counts one attempt of each
    task.
    """

    def zero(self, value: list[str]) -> list[str]:
        """Return the empty list."""
        return []

    def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:
        """Add the second list to the first and return it."""
        value1.extend(value2)
        return value1


@contextmanager
def paths_of_finished_tasks(context: SparkContext, io: FileIO) -> Iterator[Accumulator[list[str]]]:
    """Yield an accumulator to which each task adds the paths of its files; if the block fails,
    remove the files.
    """
    written_paths = context.accumulator([], WrittenPaths())
    try:
        yield written_paths
    except BaseException:
        remove_files(io, written_paths.value, NeverSent())
        raise
    finally:
        # Spark keeps the accumulator until the process ends, so its list is emptied.
        written_paths.value = []


@dataclass(frozen=True)
class _Task:
    """The function of `mapInArrow`; it yields one row, which has the pickled result of the task."""

    write: WritingTask[Any]
    written_paths: Accumulator[list[str]]
    columns: list[str]
    """The names of the columns, whatever names the batches have."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "Spark runs this in a task"
        with worker_step():
            rows = (batch.rename_columns(self.columns) for batch in batches)
            files, result = self.write(rows, task.partitionId(), task.taskAttemptId())
        self.written_paths.add([f.file_path for f in files])
        yield pa.RecordBatch.from_arrays([binary_array(pickle.dumps(result))], ["files"])


def write_frame(frame: DataFrame, context: WriteContext, io: FileIO) -> list[DataFile]:
    """Write all rows in their tasks and in their order; columns are matched by name."""
    results = run_writing_job(frame, _WriteRows(context, io), io)
    return [f for files in results for f in files]


@dataclass(frozen=True)
class _WriteRows:
    """A `WritingTask` whose result is the list of its data files."""

    context: WriteContext
    io: FileIO

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition_id: int, task_id: int
    ) -> tuple[list[DataFile], list[DataFile]]:
        files = write_data_files(
            self.context, batches, self.io, partition_id=partition_id, task_id=task_id
        )
        return files, files


def run_writing_job(frame: DataFrame, write: WritingTask[Result], io: FileIO) -> Iterator[Result]:
    """Return the results of all tasks, after all have written; remove the files of a failed job."""
    with paths_of_finished_tasks(frame.sparkSession.sparkContext, io) as written_paths:
        task = _Task(write, written_paths, frame.columns)
        results = _plainly_named(frame).mapInArrow(task, "files binary").collect()
    return (pickle.loads(r.files) for r in results)


def _plainly_named(frame: DataFrame) -> DataFrame:
    """Return a frame for `mapInArrow`, which reads dots and backticks in names as syntax."""
    if not set(".`").intersection("".join(frame.columns)):
        return frame
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
