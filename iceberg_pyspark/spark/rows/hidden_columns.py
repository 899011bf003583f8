"""Hidden columns, which `*` does not select, such as the file of a row and its position."""

from __future__ import annotations

from pyspark.sql.types import StructType

from iceberg_pyspark.spark.rows.spark_types import project_like
from iceberg_pyspark.spec.metadata_columns import (
    DELETED,
    FILE,
    PLAIN_METADATA_COLUMNS,
    POS,
    SPEC_ID,
    lineage_columns,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.table.reading.table_scan import partition_of

_OF_EVERY_TABLE = (SPEC_ID, FILE, POS, DELETED)


def hidden_columns(metadata: TableMetadata) -> Schema:
    """Return the hidden columns of a table."""
    lineage = lineage_columns(metadata.format_version)
    partition = partition_of(metadata)
    return Schema(fields=(*_OF_EVERY_TABLE, *lineage, *([] if partition is None else [partition])))


def project_with_hidden_columns(
    schema: Schema, required_schema: StructType, metadata: TableMetadata
) -> Schema:
    """Return the columns that Spark requires, including hidden columns, in Spark's order."""
    partition = partition_of(metadata)
    fields: list[NestedField] = []
    for f in required_schema.fields:
        columns = schema
        if schema.as_struct.field_named(f.name) is None:
            metadata_column = PLAIN_METADATA_COLUMNS.get(f.name)
            if partition is not None and f.name == partition.name:
                metadata_column = partition
            columns = schema if metadata_column is None else Schema(fields=(metadata_column,))
        fields.extend(project_like(columns, StructType([f])).fields)
    return Schema(fields=tuple(fields), schema_id=schema.schema_id)
