"""The state that the steps of one read share, so that all see the same snapshot and schema.

The state that the driver and the tasks of a write job share; `write_job.py` creates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.spark.data_source.read_options import TableOptions
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_bytes
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit_options import CommitOptions

if TYPE_CHECKING:
    from iceberg_pyspark.catalogs.catalog import LoadedTable
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


@dataclass(frozen=True)
class StreamFiles(WriterCommitMessage):
    """The complete data files of one task of a stream's batch.

    `query_id` is the id of the query, `table_uuid` and `schema` those of the table as the task saw
    it.
    """

    data_files: tuple[DataFile, ...]
    query_id: str | None
    table_uuid: str | None
    schema: Schema


@dataclass(frozen=True)
class PinnedTable:
    """The metadata file that a DataFrame saw when it was loaded; later steps need no catalog.

    The exceptions are a scan that only the catalog's server may plan, and reports of scans.
    Metadata that is not a file in the table's store, which only the catalog could read again, is
    itself part of the state, as JSON.
    """

    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    config: dict[str, str] = field(repr=False)
    metadata_table: str | None = None
    """The metadata table that is read; None for the table itself."""
    planned_by_server: bool = False
    """Whether each step that plans must ask the catalog's server to plan."""
    metadata: str | None = field(default=None, repr=False)
    store_location: str | None = None
    reports_scans: bool = False
    """Whether the catalog's server wants a report of each scan."""

    @classmethod
    def of(cls, loaded_table: LoadedTable, metadata_table: str | None = None) -> PinnedTable:
        """Return the state for the next step."""
        return cls(
            loaded_table.identifier.namespace,
            loaded_table.identifier.name,
            loaded_table.metadata_location,
            dict(loaded_table.config),
            metadata_table,
            loaded_table.plan_scan is not None and metadata_table is None,
            None
            if loaded_table.store_location is None
            else metadata_to_bytes(loaded_table.metadata).decode(),
            loaded_table.store_location,
            loaded_table.report_scan is not None and metadata_table is None,
        )

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> PinnedTable:
        """Return the pinned table from the JSON of its `dataclasses.asdict`."""
        return cls(**{**state, "namespace": tuple(state["namespace"])})
