"""Creates the manifest entry of a Parquet file of table rows that another writer has written.

The metrics come from the footer, which does not count NaNs: if the statistics rule NaNs out, the
count is 0, else count and bounds are unknown. The partition tuple is computed from the first row,
not from the name of the folder.
"""

from __future__ import annotations

from contextlib import ExitStack
from io import SEEK_END

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.arrow.arrow_schemas import stored_arrow_schema
from iceberg_pyspark.arrow.metrics.column_metrics import (
    FileMetrics,
    MetricsCollector,
    metric_leaves,
)
from iceberg_pyspark.arrow.write.partition_batches import PartitionTuple, partition_batch
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local, local_path, sync_file

_BUFFER_BYTES = 65_536


def written_file(context: WriteContext, io: FileIO, location: str) -> DataFile:
    """Return the manifest entry of a file; a local file is synced to disk.

    A file without rows gets no partition tuple.
    """
    with ExitStack() as resources:
        if is_local(location):
            size = sync_file(location)
            file = resources.enter_context(
                pq.ParquetFile(local_path(location), buffer_size=_BUFFER_BYTES, pre_buffer=False)
            )
        else:
            stream = resources.enter_context(io.open_input(location))
            size = stream.seek(0, SEEK_END)
            file = resources.enter_context(pq.ParquetFile(stream, pre_buffer=False))
        metrics = written_metrics(context, file.metadata)
        partition: PartitionTuple = ()
        if metrics["record_count"] and context.spec.fields:
            partition = written_partition(context, file)
    return DataFile(
        file_path=location,
        file_format=context.file_format,
        spec_id=context.spec.spec_id,
        partition=partition,
        file_size_in_bytes=size,
        sort_order_id=context.sort_order_id,
        **metrics,
    )


def written_metrics(context: WriteContext, footer: pq.FileMetaData) -> FileMetrics:
    """Return the metrics of a file with the columns of the table's current schema, in its order."""
    leaves = metric_leaves(context.schema, context.properties)
    return MetricsCollector(leaves, sees_rows=False).finish(footer)


def written_partition(context: WriteContext, file: pq.ParquetFile) -> PartitionTuple:
    """Return the partition tuple of a file with rows, all of one partition."""
    names = _source_columns(context)
    if names:
        batch = next(file.iter_batches(batch_size=1, columns=names))
    else:
        # the spec has only void fields
        batch = pa.RecordBatch.from_pydict({"": [None]})
    file_columns = stored_arrow_schema(context.schema)
    rows = pa.RecordBatch.from_arrays(
        [batch.column(name).cast(file_columns.field(name).type) for name in names]
        or [batch.column(0)],
        names or [""],
    )
    [(values, _)] = partition_batch(rows, context.spec, (context.schema, *context.schemas))
    return values


def _source_columns(context: WriteContext) -> list[str]:
    """Return the names of the top-level columns with partition sources."""
    schema = context.schema
    top = {_top(f.source_id, schema) for f in context.spec.fields}
    return [f.name for f in schema.fields if f.field_id in top]


def _top(field_id: int, schema: Schema) -> int:
    while (parent := schema.parent_by_id.get(field_id)) is not None:
        field_id = parent
    return field_id
