"""The portable writer of changed rows: tasks write files and collect positions, one commit follows.

Executors import this module, so the driver's part is elsewhere: `spark/data_source/change_job.py`.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from iceberg_pyspark.spark.data_source.job_writer import JobWriter, current_task
from iceberg_pyspark.spark.data_source.prepared_changes import PreparedChanges
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.row_level.change_task import TaskChanges, carry_out


@dataclass(frozen=True)
class ChangesOfTask(WriterCommitMessage):
    """The result of one task.

    It is compressed: the driver holds those of all tasks, and after a shuffle each task may name
    each file of the table for a few positions.
    """

    packed: bytes

    @classmethod
    def of(cls, changes: TaskChanges) -> ChangesOfTask:
        """Return the message of a result."""
        return cls(zlib.compress(pickle.dumps(changes), 1))

    @property
    def changes(self) -> TaskChanges:
        """The result."""
        changes: TaskChanges = pickle.loads(zlib.decompress(self.packed))
        return changes


class ChangeWriter(JobWriter[PreparedChanges]):
    """A writer of the changed rows of one operation."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Carry out the changes of one task; a failed task removes its files."""
        task = current_task()
        with worker_step():
            return ChangesOfTask.of(
                carry_out(
                    self._prepared.context,
                    iterator,
                    self._prepared.io,
                    partition_id=task.partitionId(),
                    task_id=task.taskAttemptId(),
                )
            )

    def _commit(self, messages: Sequence[ChangesOfTask]) -> None:
        from iceberg_pyspark.spark.data_source.change_job import commit_changes  # noqa: PLC0415

        commit_changes(self._prepared, (m.changes for m in messages))

    def _files_of(self, messages: Sequence[ChangesOfTask]) -> Iterator[DataFile]:
        for message in messages:
            yield from message.changes.data_files
