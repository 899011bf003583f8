"""The portable writer: tasks on executors write files, the driver commits them once.

File names contain the attempt of a task, so attempts do not collide. The data source API has no
distribution of rows: each task writes one file per partition, with a bound on open files. Executors
import this module, so the driver's part is elsewhere: `spark/data_source/write_job.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spark.data_source.job_writer import JobWriter, current_task
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.manifests import DataFile


@dataclass(frozen=True)
class TaskFiles(WriterCommitMessage):
    """The complete data files of one task."""

    data_files: tuple[DataFile, ...]


class IcebergWriter(JobWriter[PreparedWrite]):
    """A writer for one write job."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on an executor; a failed task removes its files."""
        task = current_task()
        with worker_step():
            files = write_data_files(
                self._prepared.context,
                iterator,
                self._prepared.io,
                partition_id=task.partitionId(),
                task_id=task.taskAttemptId(),
            )
        return TaskFiles(tuple(files))

    def _commit(self, messages: Sequence[TaskFiles]) -> None:
        from iceberg_pyspark.spark.data_source.write_job import commit_write  # noqa: PLC0415

        commit_write(self._prepared, tuple(self._files_of(messages)))

    def _files_of(self, messages: Sequence[TaskFiles]) -> Iterator[DataFile]:
        for message in messages:
            yield from message.data_files
