"""Prepares the columns of a frame for Spark's own Parquet writer.

A partitioned table gets one extra column per partition field, with a distinct value, valid as a
folder name, for each partition value. The partition values themselves are computed from the rows
(`spark/write/native_writer.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark_types

from iceberg_pyspark.spark.bridge.call_arguments import WrittenColumn
from iceberg_pyspark.spark.bridge.jvm import Bridge
from iceberg_pyspark.spark.rows.geo_types import geo_spark_type
from iceberg_pyspark.spark.rows.nanosecond_types import nanos_spark_type
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spark.write.distribution import column_of, transform_of_field
from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

_TYPES_WRITTEN_ALIKE = (
    ice.BooleanType,
    ice.IntegerType,
    ice.LongType,
    ice.FloatType,
    ice.DoubleType,
    ice.DecimalType,
    ice.DateType,
    ice.TimestampType,
    ice.TimestamptzType,
    ice.StringType,
    ice.BinaryType,
    ice.VariantType,
)
_TRANSFORMS = (
    IdentityTransform,
    BucketTransform,
    TruncateTransform,
    YearTransform,
    MonthTransform,
    DayTransform,
    HourTransform,
    VoidTransform,
)
_LONGEST_TEXT = 64
"""The most bytes of a text that go into a folder name unhashed; a name may have 255 bytes."""


def columns_to_write(
    fields: Sequence[spark_types.StructField], schema: Schema
) -> list[WrittenColumn] | None:
    """Return a frame's columns for Spark's writer, or None if it would write other files."""
    if not (_is_written_alike(schema.as_struct) and _distinct(schema.as_struct)):
        return None
    fields_by_name = _fields_by_name(fields)
    if fields_by_name is None or fields_by_name.keys() != {f.name.lower() for f in schema.fields}:
        return None
    columns = []
    for f, required in zip(schema.fields, to_spark_schema(schema).fields, strict=True):
        has = fields_by_name[f.name.lower()]
        if not _fits(has, required):
            # This package's own writer refuses nulls and values that do not fit, in its own words.
            return None
        columns.append(
            WrittenColumn(
                source=has.name,
                type=required.dataType.json() if _needs_cast(has, required) else None,
                name=f.name,
            )
        )
    return columns


def field_ids(schema: Schema) -> str:
    """Return each field's id and the number of its children, in the order of the columns; a field's
    children follow it. Spark's writer stores them (`IcebergPyFieldIds`).
    """
    return " ".join(
        f"{f.field_id} {len(ice.children_of(f.type))}" for f in ice.walk_fields(schema.as_struct)
    )


def _is_written_alike(type_: ice.Type) -> bool:
    if children := ice.children_of(type_):
        return all(_is_written_alike(f.type) for f in children)
    own = geo_spark_type(type_) or nanos_spark_type(type_)
    return isinstance(type_, _TYPES_WRITTEN_ALIKE) or own is not None


def _distinct(type_: ice.Type) -> bool:
    """Return whether names differ by more than case, at every level; Spark refuses other files."""
    children = ice.children_of(type_)
    names = {f.name.lower() for f in children}
    return len(names) == len(children) and all(_distinct(f.type) for f in children)


def _fields_by_name(
    fields: Sequence[spark_types.StructField],
) -> dict[str, spark_types.StructField] | None:
    by_name = {f.name.lower(): f for f in fields}
    return by_name if len(by_name) == len(fields) else None


def _fits(has: spark_types.StructField, required: spark_types.StructField) -> bool:
    """Return whether a lossless cast makes each value of a field one of the table's field."""
    if has.nullable and not required.nullable:
        return False
    if below := _fields_below(required.dataType):
        fields = _fields_below(has.dataType)
        return (
            type(has.dataType) is type(required.dataType)
            and [f.name.lower() for f in fields] == [f.name.lower() for f in below]
            and all(map(_fits, fields, below))
        )
    match has.dataType, required.dataType:
        case (
            spark_types.ByteType() | spark_types.ShortType(),
            spark_types.IntegerType() | spark_types.LongType(),
        ):
            return True
        case spark_types.IntegerType(), spark_types.LongType():
            return True
        case spark_types.FloatType(), spark_types.DoubleType():
            return True
        case spark_types.DecimalType() as small, spark_types.DecimalType() as large:
            whole = large.precision - large.scale
            return small.scale <= large.scale and small.precision - small.scale <= whole
    return has.dataType == required.dataType


def _needs_cast(has: spark_types.StructField, required: spark_types.StructField) -> bool:
    """Return whether values change, of fields that fit; names and nullability change no value."""
    if below := _fields_below(required.dataType):
        return any(map(_needs_cast, _fields_below(has.dataType), below))
    return has.dataType != required.dataType


def _fields_below(type_: spark_types.DataType) -> list[spark_types.StructField]:
    match type_:
        case spark_types.StructType(fields=fields):
            return fields
        case spark_types.ArrayType():
            return [spark_types.StructField("element", type_.elementType, type_.containsNull)]
        case spark_types.MapType():
            value = spark_types.StructField("value", type_.valueType, type_.valueContainsNull)
            return [spark_types.StructField("key", type_.keyType, nullable=False), value]
    return []


def are_numeric_transforms(spec: PartitionSpec) -> bool:
    """Return whether all `partition_columns` are small numbers, whatever the source columns are."""
    return all(
        not isinstance(f.transform, IdentityTransform | TruncateTransform) for f in spec.fields
    )


def partition_columns(
    bridge: Bridge, schema: Schema, spec: PartitionSpec
) -> dict[str, Column] | None:
    """Return the columns by which Spark's writer partitions rows, by name, or None if it cannot."""
    columns: dict[str, Column] = {}
    for f in spec.fields:
        if isinstance(f.transform, VoidTransform):
            continue
        source = schema.field_by_id.get(f.source_id)
        if source is None or len(f.source_ids) > 1 or not isinstance(f.transform, _TRANSFORMS):
            return None
        if isinstance(f.transform, IdentityTransform) and nanos_spark_type(source.type) is not None:
            return None
        part = transform_of_field(bridge, f.source_id, f.transform, schema)
        value = _folder_name(part, column_of(f.source_id, schema), f.transform, source.type)
        name = _free_name(len(columns), schema)
        columns[name] = value.alias(name)
    return columns


def _folder_name(part: Column, source: Column, transform: Any, type_: ice.Type) -> Column:
    """Return a transform's result as a number or text: distinct for distinct results, null for
    null.
    """
    match transform:
        case BucketTransform() | YearTransform() | MonthTransform() | HourTransform():
            return part
        case DayTransform():
            return F.unix_date(part)
    match type_:
        case ice.StringType() | ice.BinaryType():
            # Hexadecimal digits are distinct in every file system, whatever its encoding.
            short = F.concat(F.lit("x"), F.hex(part))
            long = F.concat(F.lit("h"), F.sha2(part.cast("binary"), 256))
            name = F.when(F.octet_length(part) > _LONGEST_TEXT, long).otherwise(short)
            return F.when(part.isNotNull(), name)
        case ice.DateType():
            return F.unix_date(part)
        case ice.TimestamptzType():
            return F.unix_micros(part)
    text = part.cast("string")
    if isinstance(transform, TruncateTransform):
        # The truncated value overflows only for the lowest values, and they share one result.
        return F.when(source.isNotNull(), F.coalesce(text, F.lit("least")))
    return text


def _free_name(index: int, schema: Schema) -> str:
    names = {f.name.lower() for f in schema.fields}
    name = f"p{index}"
    while name in names:
        name = f"_{name}"
    return name
