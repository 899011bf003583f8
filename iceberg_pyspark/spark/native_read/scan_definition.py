"""The definition of a table for its scans: schema, size, partitioning, grouping, filter columns.

The names and forms are the same as those of Iceberg's own catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.protocol.table_messages import PartitionTransform, TableDefinition
from iceberg_pyspark.spark.native_read.file_layout import grouping_fields
from iceberg_pyspark.spark.native_read.filter_conditions import columns_for_skipping
from iceberg_pyspark.spark.rows.spark_types import shows_nanos
from iceberg_pyspark.spec.partitioning import PartitionField
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.sql_text.names import quoted_name

UNKNOWN_TOTAL = 2**40
"""The value for an unknown size or row count: too large for Spark to broadcast."""


def relation_definition(
    handle: str,
    name: str,
    metadata: TableMetadata,
    *,
    snapshot_id: int | None,
    schema: Schema,
    shown: Callable[[bool], spark_types.StructType],
    size_in_bytes: int | None,
) -> TableDefinition:
    """Return the definition of a table for its scans.

    `shown` returns the schema that Spark is shown, with or without timestamps in nanoseconds. A
    `size_in_bytes` of None means unknown.
    """
    return TableDefinition(
        handle=handle,
        name=name,
        id=metadata.table_uuid,
        version=str(snapshot_id),
        schema=shown(False).json(),
        nanos_schema=shown(True).json() if shows_nanos(schema) else None,
        size_in_bytes=UNKNOWN_TOTAL if size_in_bytes is None else size_in_bytes,
        grouping=_spark_grouping(metadata, schema),
        filter_columns=tuple(f.name for f in columns_for_skipping(metadata)),
    )


def spark_partitioning(metadata: TableMetadata) -> tuple[PartitionTransform, ...]:
    """Return the transforms of the default partition spec, without void fields."""
    return _transforms_of(metadata.default_spec.fields, metadata.current_schema)


def _spark_grouping(metadata: TableMetadata, schema: Schema) -> tuple[PartitionTransform, ...]:
    """Return the transforms by which Spark may group files; none for an older schema.

    The names in an older schema may mean other columns.
    """
    if schema.schema_id != metadata.current_schema_id:
        return ()
    return _transforms_of(grouping_fields(metadata), schema)


def _transforms_of(
    fields: Iterable[PartitionField], schema: Schema
) -> tuple[PartitionTransform, ...]:
    """Return partition fields as SQL writes them, without void fields."""
    return tuple(
        PartitionTransform(
            transform=_transform_name(f.transform),
            column=_quoted_path(schema, f.source_id),
            number=_transform_argument(f.transform),
        )
        for f in fields
        if f.source_id in schema.field_by_id and not isinstance(f.transform, VoidTransform)
    )


def _transform_name(transform: Transform) -> str:
    match transform:
        case BucketTransform():
            return "bucket"
        case TruncateTransform():
            return "truncate"
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return f"{transform}s"
        case _:
            return str(transform)


def _transform_argument(transform: Transform) -> int | None:
    match transform:
        case BucketTransform(num_buckets=n):
            return n
        case TruncateTransform(width=width):
            return width
        case _:
            return None


def _quoted_path(schema: Schema, field_id: int) -> str:
    """Return a column's path as SQL writes it, with quoted names."""
    levels = []
    at: int | None = field_id
    while at is not None:
        levels.append(schema.field_by_id[at].name)
        at = schema.parent_by_id.get(at)
    return quoted_name(levels[::-1])
