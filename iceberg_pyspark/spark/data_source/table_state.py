"""A read of a table's state instead of its rows: what a client without the catalog must know.

The one row has the table's identifier, the location of its metadata file, and the metadata as JSON.
It has no credentials: those stay with the data source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import metadata_to_bytes
from iceberg_pyspark.spec.types import NestedField, StringType
from iceberg_pyspark.table.metadata_tables.rows import KnownRows, MetadataTable, arrow_of_rows
from iceberg_pyspark.table.table_storage import table_io

_SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=name, type=StringType(), required=True)
        for i, name in enumerate(("identifier", "metadata_location", "metadata"), start=1)
    )
)


@dataclass(frozen=True, kw_only=True)
class StateReadJob(MetadataTableReadJob):
    """A read of the state of a table."""

    def _open(self) -> MetadataTable:
        loaded = self.loaded_table
        row = {
            "identifier": json.dumps(loaded.identifier.levels),
            "metadata_location": loaded.metadata_location,
            "metadata": metadata_to_bytes(loaded.metadata).decode(),
        }
        return MetadataTable(
            name=f"{loaded.identifier}.{self.name}",
            schema=_SCHEMA,
            reader=KnownRows(schema=_SCHEMA),
            io=table_io(loaded),
            plan=lambda: [arrow_of_rows(_SCHEMA, [row])],
        )
