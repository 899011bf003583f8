"""The state that the driver and the tasks of a write job share; `write_job.py` creates it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spark.data_source.options import TableOptions
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit_options import CommitOptions

if TYPE_CHECKING:
    # executors import this module, and commit nothing
    from iceberg_pyspark.table.changes.commit_files import OverwriteMode


@dataclass(frozen=True, kw_only=True)
class PreparedWrite:
    """What driver and tasks of one job share; `table_uuid` is that of the table it writes to.

    `new_table` is its metadata if it is still to be created; `overwrite` None is an append. Rows
    are in `sort_order` only where a session distributes and sorts them.
    """

    table: TableOptions
    options: CommitOptions
    context: WriteContext
    io: FileIO
    overwrite: OverwriteMode | None
    table_uuid: str | None
    new_table: TableMetadata | None = field(repr=False)
    sort_order: SortOrder = UNSORTED

    def for_tasks(self) -> PreparedWrite:
        """The same without what the commit alone needs: the catalog, its secrets, the new table."""
        table = replace(self.table, catalog_properties={}, storage_properties={})
        return replace(self, table=table, new_table=None)
