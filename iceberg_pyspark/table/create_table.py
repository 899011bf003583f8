"""Create a table in a catalog.

The first metadata is `commits/new_table.py`; which of several racing creators wins, the catalog
decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.commits.new_table import new_table_metadata
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.table.commit import SYSTEM_CLOCK, Clock


def create_table(
    catalog: Catalog,
    identifier: TableIdentifier,
    schema: Schema,
    *,
    spec: PartitionSpec | None = None,
    sort_order: SortOrder | None = None,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LoadedTable:
    """Create a table; raises `TableAlreadyExistsError`.

    `spec` and `sort_order` refer to `schema` by its field ids; the table numbers its columns anew.
    """
    metadata = new_table_metadata(
        schema,
        spec,
        sort_order,
        location or catalog.default_table_location(identifier),
        properties or {},
        table_uuid=str(uuid.uuid4()),
        now_ms=clock.now_ms(),
    )
    return catalog.create_table(identifier, metadata)
