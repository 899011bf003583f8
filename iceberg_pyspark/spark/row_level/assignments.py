"""Assignments to columns and to fields of structs, by dotted names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.row_values import Sql, Value
from iceberg_pyspark.sql_text.names import parse_levels

ColumnPath: TypeAlias = tuple[str, ...]
Assignments: TypeAlias = Mapping[ColumnPath, Value]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows that values refer to: a frame of a table's rows and perhaps a source's rows."""

    frame: DataFrame
    target: DataFrame
    source: DataFrame | None = None


def as_column(condition: str | Column) -> Column:
    """Return a condition, given as a Spark SQL expression or a column, as a column."""
    return sql.expr(condition) if isinstance(condition, str) else condition


def as_value(value: str | Column) -> Value:
    """Return a value that is given as a Spark SQL expression or a column."""
    return Sql(value) if isinstance(value, str) else value


def parse_assignments(assignments: Mapping[str, str | Column]) -> dict[ColumnPath, Value]:
    """Return the assignments keyed by the paths of the assigned columns and fields."""
    return {tuple(parse_levels(name)): as_value(value) for name, value in assignments.items()}


def resolve_paths(
    assignments: Assignments, schema: spark_types.StructType, table: str, *, case_sensitive: bool
) -> dict[ColumnPath, Value]:
    """Return the assignments with the names as in the table's schema.

    Raise `InvalidRequestError` for an unknown name, and if two assignments overlap.
    """
    value_by_path: dict[ColumnPath, Value] = {}
    for path, value in assignments.items():
        resolved_path = _resolve_path(path, schema, table, case_sensitive=case_sensitive)
        for other in value_by_path:
            if other[: len(resolved_path)] == resolved_path or resolved_path[: len(other)] == other:
                raise InvalidRequestError(
                    f"column '{'.'.join(resolved_path)}' of table {table} is assigned twice; leave "
                    "one assignment out"
                )
        value_by_path[resolved_path] = value
    return value_by_path


def _resolve_path(
    path: ColumnPath, schema: spark_types.StructType, table: str, *, case_sensitive: bool
) -> ColumnPath:
    resolved_path: list[str] = []
    type_: spark_types.DataType = schema
    for name in path:
        fields = type_.fields if isinstance(type_, spark_types.StructType) else []
        matches = [f for f in fields if f.name == name]
        if not matches and not case_sensitive:
            matches = [f for f in fields if f.name.lower() == name.lower()]
        if len(matches) != 1:
            names = ", ".join(f.name for f in fields) or "no fields"
            raise InvalidRequestError(
                f"table {table} has no column '{'.'.join(path)}' to assign to; "
                f"{'.'.join(resolved_path) or 'it'} has {names}"
            )
        resolved_path.append(matches[0].name)
        type_ = matches[0].dataType
    return tuple(resolved_path)
