"""Converts the DEFAULT of a column in DDL to a value of the column's type.

Spark stores the text of a default and evaluates it in every write; Iceberg stores one value
(specification, "Default Values"), so only literals are supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.expressions.literals import place_literal
from iceberg_pyspark.spark.bridge.protocol.table_change_messages import ColumnDefault
from iceberg_pyspark.spark.bridge.protocol.value_messages import LiteralValue
from iceberg_pyspark.spark.bridge.spark_conditions import literal_value
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import PrimitiveType, StringType, TimestamptzNsType, TimestamptzType


def with_defaults(schema: Schema, defaults: Sequence[ColumnDefault | None]) -> Schema:
    """Return the schema with a default for each column; None in `defaults` means no default."""
    fields = []
    for f, default in zip(schema.fields, defaults, strict=True):
        value = default_value(f.name, f.type, default)
        fields.append(replace(f, initial_default=value, write_default=value))
    return replace(schema, fields=tuple(fields))


def default_value(column: str, type_: object, default: ColumnDefault | None) -> Any:
    """Return a default as a value of the column's type; raise `InvalidRequestError`."""
    if default is None:
        return None
    if default.value is None:
        raise UnsupportedFeatureError(
            f"column '{column}': DEFAULT {default.sql} is not a literal; write a literal, because "
            "Iceberg stores a value, not an expression"
        )
    if not isinstance(type_, PrimitiveType):
        if isinstance(default.value, LiteralValue) and default.value.value is None:
            return None
        raise UnsupportedFeatureError(
            f"column '{column}': DEFAULT {default.sql}: only NULL can be the default of a column "
            f"of type {type_}"
        )
    literal = literal_value(default.value)
    if literal is None:
        return None
    if isinstance(type_, TimestamptzType | TimestamptzNsType) and isinstance(literal, str):
        raise InvalidRequestError(
            f"column '{column}': write DEFAULT TIMESTAMP {default.sql}, so that the session's "
            "time zone is known"
        )
    if isinstance(type_, StringType) and not isinstance(literal, str):
        raise _no_value(column, type_, default)
    try:
        bound = place_literal(type_, literal)
    except (TypeError, ValueError) as e:
        raise _no_value(column, type_, default) from e
    if bound.where != "at":
        raise _no_value(column, type_, default)
    return bound.value


def _no_value(column: str, type_: object, default: ColumnDefault) -> InvalidRequestError:
    return InvalidRequestError(
        f"column '{column}': DEFAULT {default.sql} is not a value of type {type_}"
    )
