"""The sessions that send requests, and the objects behind their handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.row_level.target import RowLevelSession
from iceberg_pyspark.spark.sql_catalog.catalog_requests import CatalogCallbacks
from iceberg_pyspark.spark.storage.location_settings import with_location_settings
from iceberg_pyspark.spark.table_states import TableState, catalog_of_handle
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.table_storage import table_io


@dataclass(frozen=True, kw_only=True)
class BridgeSession:
    """A session in which Iceberg is installed; only such sessions send requests."""

    spark: SparkSession
    bridge: Bridge
    catalogs: CatalogCallbacks

    def open_catalog(self, name: str) -> Catalog:
        """Return one of this package's catalogs by its name in the session; raise
        `InvalidRequestError`.
        """
        self.bridge.open_catalog(name)
        return self.catalogs.catalog(f"{self.bridge.session_handle}/{name}")

    def row_level(self, state_of: Callable[[str], TableState]) -> RowLevelSession:
        """Return the session's objects for row-level operations."""
        states = self.catalogs.states
        return RowLevelSession(
            spark=self.spark, bridge=self.bridge, states=states, state_of=state_of
        )

    def io_of(self, state: TableState, locations: Mapping[str, str]) -> FileIO:
        """Return the store of a table's files, as the session may read it.

        `locations` are the session's settings that restrict where tables may be read; they come
        with each request.
        """
        return state.io or table_io(with_location_settings(state.loaded_table, locations))


class BridgeSessions:
    """The sessions by their handles in requests; a table's handle begins with its session's
    handle.
    """

    def __init__(
        self,
        of_handle: Callable[[str], BridgeSession],
        opened_by: Callable[[str], CatalogCallbacks],
    ) -> None:
        """`of_handle` returns the session of a handle, and `opened_by` what that session has
        opened.

        `opened_by` is also called after the session has ended. Both raise `InvalidRequestError`.
        """
        self.of_handle = of_handle
        self.opened_by = opened_by

    def of_catalog(self, handle: str) -> CatalogCallbacks:
        """Return what the session that opened a catalog has opened."""
        return self.opened_by(handle.partition("/")[0])

    def of_table(self, handle: str) -> CatalogCallbacks:
        """Return what the session that loaded a table has opened; its clone may be the session that
        sends the request.
        """
        return self.of_catalog(catalog_of_handle(handle))

    def state(self, handle: str) -> TableState:
        """Return the state of a table that a query refers to."""
        return self.of_table(handle).state(handle)

    def catalog_of(self, state: TableState) -> Catalog:
        """Return the catalog that a table was loaded from."""
        return self.of_catalog(state.catalog).catalog(state.catalog)
