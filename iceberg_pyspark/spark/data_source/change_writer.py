"""The portable writer of changed rows: tasks write files and collect positions, one commit follows.

Executors import this module, so the driver's part is elsewhere: `spark/data_source/change_job.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.data_source.prepared_changes import PreparedChanges
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.table.commits.written_files import remove_files
from iceberg_pyspark.table.row_level.change_task import TaskChanges, carry_out


@dataclass(frozen=True)
class ChangesOfTask(WriterCommitMessage):
    """The result of one task."""

    changes: TaskChanges


class ChangeWriter(DataSourceArrowWriter):
    """A writer of the changed rows of one operation."""

    def __init__(self, prepared: PreparedChanges) -> None:
        self._prepared = prepared
        self._is_for_tasks = False
        self._tasks_have_it = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the whole state for the commit, and for tasks a state without secrets.

        As in `IcebergWriter`, Spark pickles a writer first with the function of its tasks.
        """
        if self._is_for_tasks or self._tasks_have_it:
            return self.__dict__
        self._tasks_have_it = True
        of_tasks = ChangeWriter(self._prepared.for_tasks())
        of_tasks._is_for_tasks = True
        return of_tasks.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Carry out the changes of one task; a failed task removes its files."""
        task = TaskContext.get()
        assert task is not None, "Spark runs write() in a task"
        with worker_step():
            return ChangesOfTask(
                carry_out(
                    self._prepared.context,
                    iterator,
                    self._prepared.io,
                    partition_id=task.partitionId(),
                    task_id=task.taskAttemptId(),
                )
            )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the changes as one snapshot; if the commit is refused, remove the files."""
        with worker_step():
            if self._is_for_tasks:
                raise UnsupportedFeatureError(
                    "this release of Spark calls commit on the tasks' copy of the writer, so "
                    "nothing was committed; change rows in a session that has Iceberg installed"
                )
            from iceberg_pyspark.spark.data_source.change_job import commit_changes  # noqa: PLC0415

            commit_changes(self._prepared, _changes_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of a job whose commit never ran, as `IcebergWriter.abort` does."""
        if None in messages:
            files = [f.file_path for c in _changes_of(messages) for f in c.data_files]
            remove_files(self._prepared.io, files, NeverSent())


def _changes_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskChanges]:
    return [m.changes for m in messages if isinstance(m, ChangesOfTask)]
