"""The state that the driver and the tasks of a write job share; `write_job.py` creates it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spark.data_source.options import TableOptions
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit_options import CommitOptions

if TYPE_CHECKING:
    # Executors import this module and commit nothing.
    from iceberg_pyspark.table.commits.commit_files import OverwriteMode


@dataclass(frozen=True, kw_only=True)
class PreparedWrite:
    """The state that the driver and the tasks of one write job share.

    `table_uuid` is the UUID of the table to write to. `new_table` is the table's metadata if the
    table is still to be created. `overwrite` is None for an append. Rows are in `sort_order` only
    if a session distributes and sorts them.
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
        """Return a copy without what only the commit needs: catalog, its secrets, and new table."""
        table = replace(self.table, catalog_properties={}, storage_properties={})
        return replace(self, table=table, new_table=None)
