"""Default values of columns as expressions of Spark SQL.

Spark fills in columns that an INSERT omits, or sets to DEFAULT, from the metadata of columns, with
the keys and texts that Iceberg's own connector sets. Rows that a MERGE inserts use the same
expressions.
"""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.native_read.columns import sql_literal, text_literal
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import WhichDefault, default_of
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.values import value_to_json

_OF_ROWS_TO_COME = "CURRENT_DEFAULT"
_OF_ROWS_THERE = "EXISTS_DEFAULT"


def with_shown_defaults(
    spark_schema: spark_types.StructType, schema: Schema
) -> spark_types.StructType:
    """Return the schema that Spark is shown, with the defaults of its columns."""
    pairs = zip(spark_schema.fields, schema.fields, strict=True)
    return spark_types.StructType([_with_default(column, f) for column, f in pairs])


def _with_default(column: spark_types.StructField, f: types.NestedField) -> spark_types.StructField:
    if f.write_default is None or not _is_shown_as_it_is(column, f):
        return column
    metadata = {
        **column.metadata,
        _OF_ROWS_TO_COME: _default_sql(f, "write"),
        # Spark uses CURRENT_DEFAULT only if it finds both keys.
        _OF_ROWS_THERE: _default_sql(f, "initial"),
    }
    return spark_types.StructField(column.name, column.dataType, column.nullable, metadata)


def _is_shown_as_it_is(column: spark_types.StructField, f: types.NestedField) -> bool:
    """Return whether Spark has a type for the column; others are shown as binary, not written."""
    try:
        return to_spark_schema(Schema(fields=(f,))).fields[0].dataType == column.dataType
    except UnsupportedFeatureError:
        return False


def _default_sql(f: types.NestedField, kind: WhichDefault) -> str:
    text = sql_of(f.type, default_of(f, kind))
    if not isinstance(f.type, types.StructType | types.ListType | types.MapType):
        return text
    # The cast gives nulls and empty lists their types.
    type_ = to_spark_schema(Schema(fields=(f,))).fields[0].dataType
    return f"CAST({text} AS {type_.simpleString()})"


def sql_of(type_: types.Type, value: Any) -> str:
    """Return a value as an SQL expression that means the same in every session."""
    if value is None:
        return "NULL"
    match type_:
        case types.StructType(fields=fields):
            items = [f"{text_literal(f.name)}, {sql_of(f.type, value[f.field_id])}" for f in fields]
            return f"NAMED_STRUCT({', '.join(items)})"
        case types.ListType():
            return f"ARRAY({', '.join(sql_of(type_.element_type, v) for v in value)})"
        case types.MapType():
            key, element = type_.key_type, type_.value_type
            items = [f"{sql_of(key, k)}, {sql_of(element, v)}" for k, v in value]
            return f"MAP({', '.join(items)})"
        case types.UUIDType():
            return text_literal(value_to_json(type_, value))
        case types.BinaryType() | types.FixedType():
            return f"X'{value.hex().upper()}'"
        case types.DecimalType():
            return f"{value:f}BD"
        case types.DoubleType() if math.isfinite(value):
            return f"{float(value)!r}D"
        case types.TimestampType():
            return f"TIMESTAMP_NTZ '{_shortest(value_to_json(type_, value))}'"
        case types.TimeType():
            return f"TIME '{value_to_json(type_, value)}'"
        case _:
            return sql_literal(type_, value)


def _shortest(timestamp: str) -> str:
    """Return a timestamp as Spark writes it, without trailing zeros."""
    text = timestamp.replace("T", " ")
    return text.rstrip("0") if "." in text else text
