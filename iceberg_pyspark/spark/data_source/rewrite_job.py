"""A read whose tasks rewrite data files: its rows tell what became of them.

The driver plans groups of files of one metadata file, and each task writes new files for a part of
a group. A call of `rewrite_data_files` with the rows (`table_calls.py`) commits them afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext

from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
from iceberg_pyspark.spark.data_source.table_access import find_table
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import NestedField, StringType
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.maintenance.rewrites.group_writer import GroupWriter
from iceberg_pyspark.table.maintenance.rewrites.written_groups import (
    GroupPart,
    parts_of,
    write_part,
)
from iceberg_pyspark.table.metadata_tables.rows import MetadataTable, arrow_of_rows
from iceberg_pyspark.table.table import Table

_SCHEMA = Schema(fields=(NestedField(field_id=1, name="part", type=StringType(), required=True),))


@dataclass(frozen=True, kw_only=True)
class PartWriter:
    """A reader of parts, which writes them."""

    writer: GroupWriter

    def read(self, io: FileIO, task: GroupPart, projection: Schema) -> Iterator[pa.RecordBatch]:
        """Write the files of a part and yield what became of it."""
        del projection
        context = TaskContext.get()
        assert context is not None, "Spark reads in a task"
        with worker_step():
            written = write_part(self.writer, task, io, attempt=context.taskAttemptId())
        row = {"part": written.text(self.writer.partition_type)}
        yield from arrow_of_rows(_SCHEMA, [row]).to_batches()


@dataclass(frozen=True, kw_only=True)
class RewriteReadJob(MetadataTableReadJob):
    """A read that rewrites; `rewrite` has the id of the write and the arguments, as JSON."""

    rewrite: str

    def _open(self) -> MetadataTable:
        write_id, named = json.loads(self.rewrite)
        catalog, _ = find_table(self.table)
        table = Table(catalog, self.loaded_table)
        rewrite = table.maintenance().planned_rewrite(**named)
        writer = rewrite.writer
        writer = replace(writer, writes=replace(writer.writes, write_id=write_id))
        return MetadataTable(
            name=f"{self.loaded_table.identifier}.{self.name}",
            schema=_SCHEMA,
            reader=PartWriter(writer=writer),
            io=table.io,
            plan=lambda: parts_of(rewrite.plan(), writer),
        )
