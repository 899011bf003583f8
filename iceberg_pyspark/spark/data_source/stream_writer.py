"""The portable sink of streams: tasks write files, and each batch is committed once.

A writer is told neither its query nor its checkpoint, but a task's local properties have the ids of
the query and of the batch. Spark makes one writer for the tasks of a batch and another one for its
commit, which gets the messages of the tasks. Executors import this module, so the commit is
elsewhere: `spark/data_source/stream_sink.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.spark.data_source.pinned_table import PreparedWrite, StreamFiles
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.table.commits.written_files import remove_files

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:

    class DataSourceStreamArrowWriter(  # type: ignore[no-redef, misc]
        DataSourceStreamWriter, DataSourceArrowWriter
    ):
        """In Spark 4.0, a writer of streams gets Arrow batches if it is one of batches, too."""


class IcebergStreamWriter(DataSourceStreamArrowWriter):
    """A writer of the batches of one query."""

    def __init__(self, prepared_write: PreparedWrite) -> None:
        self._prepared_write = prepared_write

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles only the writer of tasks, which get no secrets of a catalog.
        return {"_prepared_write": self._prepared_write.for_tasks()}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, on an executor; a failed task removes its files."""
        task = TaskContext.get()
        assert task is not None, "Spark runs write() in a task"
        write = self._prepared_write
        with worker_step():
            files = write_data_files(
                write.context,
                iterator,
                write.io,
                partition_id=task.partitionId(),
                task_id=task.taskAttemptId(),
            )
        query_id = task.getLocalProperty("sql.streaming.queryId")
        return StreamFiles(tuple(files), query_id, write.table_uuid, write.context.schema)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the files of a batch as one snapshot, unless the batch was committed before."""
        with worker_step():
            from iceberg_pyspark.spark.data_source.stream_sink import commit_batch  # noqa: PLC0415

            of_tasks = [m for m in messages if isinstance(m, StreamFiles)]
            commit_batch(self._prepared_write, of_tasks, batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete the files of a batch whose commit never ran, as `IcebergWriter.abort` does."""
        del batchId
        if None in messages:
            files = [f for m in messages if isinstance(m, StreamFiles) for f in m.data_files]
            remove_files(self._prepared_write.io, [f.file_path for f in files], NeverSent())
