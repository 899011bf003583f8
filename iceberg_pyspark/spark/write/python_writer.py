"""The rows of a DataFrame as data files of a table: written by tasks, committed by no one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spark.write.job import run_writing_job
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.file_io import FileIO


@dataclass(frozen=True)
class _WriteRows:
    """What a task does with its rows: its data files, and again as what it has to say."""

    context: WriteContext
    io: FileIO

    def __call__(
        self, batches: Iterable[pa.RecordBatch], partition_id: int, task_id: int
    ) -> tuple[list[DataFile], list[DataFile]]:
        files = write_data_files(
            self.context, batches, self.io, partition_id=partition_id, task_id=task_id
        )
        return files, files


def write_frame(frame: DataFrame, context: WriteContext, io: FileIO) -> list[DataFile]:
    """Write all rows as they lie (`spark/write/distribution.py`); columns are found by name."""
    results = run_writing_job(frame, _WriteRows(context, io), io)
    return [f for files in results for f in files]
