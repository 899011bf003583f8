"""The table that a procedure of the maintenance works on."""

from __future__ import annotations

from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, newest_version
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.progress import Progress, no_progress


@dataclass(frozen=True, kw_only=True)
class MaintainedTable:
    """A table as it was loaded, with its catalog and storage; `progress` hears of the steps.

    `case_sensitive` is as in `Table`.
    """

    catalog: Catalog
    loaded: LoadedTable
    io: FileIO
    clock: Clock
    progress: Progress = no_progress
    case_sensitive: bool | None = None

    @property
    def name(self) -> str:
        """The table's identifier as text."""
        return str(self.loaded.identifier)

    def newest(self) -> LoadedTable:
        """Return the newest version of the table; raise `TableRecreatedError` for another table."""
        return newest_version(self.catalog, self.loaded)
