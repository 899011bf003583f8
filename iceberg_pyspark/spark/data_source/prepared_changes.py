"""The state that the tasks and the commit of a write of changed rows share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spark.data_source.read_options import TableOptions
from iceberg_pyspark.spark.row_changes.change_request import ChangeRequest
from iceberg_pyspark.spark.write.write_options import WriteOptions
from iceberg_pyspark.storage.files.file_io import FileIO


@dataclass(frozen=True, kw_only=True)
class PreparedChanges:
    """What the tasks and the commit of a job share; `context` is None if no rows are written."""

    table: TableOptions
    options: WriteOptions
    request: ChangeRequest
    context: WriteContext | None
    io: FileIO

    def for_tasks(self) -> PreparedChanges:
        """Return a copy without the secrets of a catalog."""
        table = replace(self.table, catalog_properties={}, storage_properties={})
        request = replace(self.request, rewritten_files=None, filter=None)
        return replace(self, table=table, request=request)
