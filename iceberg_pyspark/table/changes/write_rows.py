"""Arrow rows into data files of a table, by one process; Spark's tasks each do it themselves."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.new_data import write_context_of

if TYPE_CHECKING:
    # Spark's executors import this module, and meet no catalog
    from iceberg_pyspark.catalogs.catalog import TableIdentifier

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader


def write_rows(
    identifier: TableIdentifier, metadata: TableMetadata, io: FileIO, rows: Rows
) -> tuple[str, list[DataFile]]:
    """Write rows by the table's current schema and spec; returns the write id and the files."""
    write_id = str(uuid.uuid4())
    context = write_context_of(str(identifier), metadata, write_id=write_id)
    return write_id, write_data_files(context, _batches(rows), io, partition_id=0, task_id=0)


def _batches(rows: Rows) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.Table):
        return rows.to_batches()  # type: ignore[no-any-return]
    return [rows] if isinstance(rows, pa.RecordBatch) else rows
