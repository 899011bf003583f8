"""A table's state instead of its rows: what a client without the catalog must know.

The schema of such a read tells it, as metadata of its one column, so that Spark runs no job. The
state has no credentials: those stay with the data source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spark.data_source.read_options import TableOptions
from iceberg_pyspark.spark.row_changes.change_request import STATE
from iceberg_pyspark.spec.table_metadata import metadata_from_bytes, metadata_to_bytes

_COLUMN = "state"


@dataclass(frozen=True, kw_only=True)
class StateReadJob:
    """A read whose schema has the state of a table, and which has no rows."""

    table: TableOptions
    loaded_table: LoadedTable
    name: str = _COLUMN

    @property
    def pinned_table(self) -> PinnedTable:
        """The table's state for the next step of the read."""
        return PinnedTable.of(self.loaded_table, _COLUMN)

    def schema(self) -> StructType:
        """Return a schema with the state."""
        loaded = self.loaded_table
        state = {
            "identifier": list(loaded.identifier.levels),
            "metadata-location": loaded.metadata_location,
            "metadata": metadata_to_bytes(loaded.metadata).decode(),
        }
        return StructType().add(_COLUMN, "string", metadata=state)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Refuse to read rows."""
        del schema
        raise InvalidRequestError(f"option {STATE} is for the schema of a read, which has no rows")


def state_in(schema: StructType) -> LoadedTable:
    """Return the table, without its credentials, whose state a schema has."""
    state: Mapping[str, Any] = schema[_COLUMN].metadata
    *namespace, name = state["identifier"]
    location = state["metadata-location"]
    return LoadedTable(
        identifier=TableIdentifier(namespace=tuple(namespace), name=name),
        metadata=metadata_from_bytes(state["metadata"].encode(), location),
        metadata_location=location,
    )
