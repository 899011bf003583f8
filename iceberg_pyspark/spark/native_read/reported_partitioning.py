"""A table's partitioning, and the grouping of its files, as Spark transforms.

The names and forms are the same as those of Iceberg's own catalog.
"""

from __future__ import annotations

from collections.abc import Iterable

from iceberg_pyspark.spark.bridge.protocol.table_messages import PartitionTransform
from iceberg_pyspark.spark.native_read.grouping import grouping_fields
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


def spark_partitioning(metadata: TableMetadata) -> tuple[PartitionTransform, ...]:
    """Return the transforms of the default partition spec, without void fields."""
    return _transforms_of(metadata.default_spec.fields, metadata.current_schema)


def spark_grouping(metadata: TableMetadata, schema: Schema) -> tuple[PartitionTransform, ...]:
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
