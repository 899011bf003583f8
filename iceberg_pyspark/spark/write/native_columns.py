"""Prepares the columns of a frame for Spark's own Parquet writer.

Field ids are set in the metadata of columns, where Spark's writer reads them; it has no place for
the ids of list elements, map keys and map values. A partitioned table gets one extra column per
partition field, with a distinct value, valid as a folder name, for each partition value. The
partition values themselves are computed from the rows (`spark/write/native_writer.py`).
"""

from __future__ import annotations

import json
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

_FIELD_ID = "parquet.field.id"
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
    if not all(_is_written_alike(f) for f in schema.fields) or not _distinct(schema.as_struct):
        return None
    fields_by_name = _fields_by_name(fields)
    if fields_by_name is None or fields_by_name.keys() != {f.name.lower() for f in schema.fields}:
        return None
    columns = []
    for f, required in zip(schema.fields, to_spark_schema(schema).fields, strict=True):
        has = fields_by_name[f.name.lower()]
        type_ = _stored_type(has.dataType, required.dataType)
        if type_ is None or (f.required and has.nullable):
            # This package's own writer refuses nulls and values that do not fit, in its own words.
            return None
        cast = type_ != has.dataType or isinstance(type_, spark_types.StructType)
        columns.append(
            WrittenColumn(
                source=has.name,
                type=_with_ids(type_, f.type).json() if cast else None,
                optional=f.optional,
                name=f.name,
                metadata=json.dumps({_FIELD_ID: f.field_id}),
            )
        )
    return columns


def _is_written_alike(f: ice.NestedField) -> bool:
    if isinstance(f.type, ice.StructType):
        return all(_is_written_alike(child) for child in f.type.fields)
    own = geo_spark_type(f.type) or nanos_spark_type(f.type)
    return isinstance(f.type, _TYPES_WRITTEN_ALIKE) or own is not None


def _distinct(struct: ice.StructType) -> bool:
    """Return whether names differ by more than case, at every level; Spark refuses other files."""
    names = {f.name.lower() for f in struct.fields}
    inner = [f.type for f in struct.fields if isinstance(f.type, ice.StructType)]
    return len(names) == len(struct.fields) and all(map(_distinct, inner))


def _fields_by_name(
    fields: Sequence[spark_types.StructField],
) -> dict[str, spark_types.StructField] | None:
    by_name = {f.name.lower(): f for f in fields}
    return by_name if len(by_name) == len(fields) else None


def _stored_type(
    has: spark_types.DataType, required: spark_types.DataType
) -> spark_types.DataType | None:
    """Return the type to write values of `has` with, or None if a lossless cast is not enough."""
    if isinstance(has, spark_types.StructType) and isinstance(required, spark_types.StructType):
        if [f.name.lower() for f in has.fields] != [f.name.lower() for f in required.fields]:
            return None
        for field, required_field in zip(has.fields, required.fields, strict=True):
            if field.nullable and not required_field.nullable:
                return None
            if _stored_type(field.dataType, required_field.dataType) is None:
                return None
        return required
    if has == required:
        return required
    match has, required:
        case (
            spark_types.ByteType() | spark_types.ShortType(),
            spark_types.IntegerType() | spark_types.LongType(),
        ):
            return required
        case spark_types.IntegerType(), spark_types.LongType():
            return required
        case spark_types.FloatType(), spark_types.DoubleType():
            return required
        case spark_types.DecimalType(), spark_types.DecimalType():
            whole = required.precision - required.scale
            if has.scale <= required.scale and has.precision - has.scale <= whole:
                return required
    return None


def _with_ids(type_: spark_types.DataType, iceberg_type: ice.Type) -> spark_types.DataType:
    if not isinstance(type_, spark_types.StructType):
        return type_
    assert isinstance(iceberg_type, ice.StructType), "made of it"
    return spark_types.StructType(
        [
            spark_types.StructField(
                f.name, _with_ids(s.dataType, f.type), s.nullable, {_FIELD_ID: f.field_id}
            )
            for s, f in zip(type_.fields, iceberg_type.fields, strict=True)
        ]
    )


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
