"""The definition of a table for its scans: schema, size, grouping, filter columns."""

from __future__ import annotations

from iceberg_pyspark.spark.bridge.protocol.table_messages import TableDefinition
from iceberg_pyspark.spark.native_read.filter_conditions import columns_for_skipping
from iceberg_pyspark.spark.native_read.reported_partitioning import spark_grouping
from iceberg_pyspark.spark.rows.spark_types import shown_spark_schema
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata

UNKNOWN_TOTAL = 2**40
"""The value for an unknown size or row count: too large for Spark to broadcast."""


def relation_definition(
    handle: str,
    name: str,
    metadata: TableMetadata,
    *,
    snapshot_id: int | None,
    schema: Schema,
    size_in_bytes: int | None,
) -> TableDefinition:
    """Return the definition of a table for its scans; a `size_in_bytes` of None means unknown."""
    return TableDefinition(
        handle=handle,
        name=name,
        id=metadata.table_uuid,
        version=str(snapshot_id),
        schema=shown_spark_schema(schema).json(),
        size_in_bytes=UNKNOWN_TOTAL if size_in_bytes is None else size_in_bytes,
        grouping=spark_grouping(metadata, schema),
        filter_columns=tuple(f.name for f in columns_for_skipping(metadata)),
    )
