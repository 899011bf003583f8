"""The portable writer: tasks on executors write files, the driver commits them once.

Spark passes only the messages of successful attempts to `commit`, so retried or speculative tasks
never duplicate rows; file names contain the attempt, so attempts do not collide. The data source
API has no distribution of rows: each task writes one file per partition, with a bound on open
files. Executors import this module, so the driver's part is elsewhere:
`spark/data_source/write_job.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.written_files import remove_files


@dataclass(frozen=True)
class TaskFiles(WriterCommitMessage):
    """The complete data files of one task."""

    data_files: tuple[DataFile, ...]


class IcebergWriter(DataSourceArrowWriter):
    """A writer for one write job."""

    def __init__(self, prepared_write: PreparedWrite) -> None:
        self._prepared_write = prepared_write
        self._is_for_tasks = False
        self._tasks_have_it = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the whole state for the commit, and for tasks a state without a catalog's secrets.

        Spark pickles a writer first with the function of its tasks, and then alone for its commit.
        """
        if self._is_for_tasks or self._tasks_have_it:
            return self.__dict__
        self._tasks_have_it = True
        # Not a dictionary with the names of fields: a field that is renamed would stay as it is.
        of_tasks = IcebergWriter(self._prepared_write.for_tasks())
        of_tasks._is_for_tasks = True
        return of_tasks.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on an executor; a failed task removes its files."""
        task = TaskContext.get()
        assert task is not None, "Spark runs write() in a task"
        with worker_step():
            files = write_data_files(
                self._prepared_write.context,
                iterator,
                self._prepared_write.io,
                partition_id=task.partitionId(),
                task_id=task.taskAttemptId(),
            )
        return TaskFiles(tuple(files))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit all files as one snapshot; if the commit is refused, remove the files."""
        with worker_step():
            if self._is_for_tasks:
                raise UnsupportedFeatureError(
                    "this release of Spark calls commit on the tasks' copy of the writer, so "
                    "nothing was committed; write in a session that has Iceberg installed"
                )
            from iceberg_pyspark.spark.data_source.write_job import commit_write  # noqa: PLC0415

            commit_write(self._prepared_write, _files_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose commit never ran.

        Spark also calls this after a failed commit, which may in fact have succeeded. Only a
        missing message proves that a task failed and that commit was not reached. A task that Spark
        kills after it has written everything reports nothing; only orphan removal finds its files.
        """
        if None in messages:
            files = _files_of(messages)
            remove_files(self._prepared_write.io, [f.file_path for f in files], NeverSent())


def _files_of(messages: Sequence[WriterCommitMessage | None]) -> tuple[DataFile, ...]:
    return tuple(f for m in messages if isinstance(m, TaskFiles) for f in m.data_files)
