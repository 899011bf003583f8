"""Assignments to columns and to fields of structs, by dotted names.

An assignment to a field rebuilds its struct with the other fields unchanged, as Spark's UPDATE
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.values import Field, Sql, Struct, TargetValue, Value
from iceberg_pyspark.sql_text.names import parse_levels

ColumnPath: TypeAlias = tuple[str, ...]
Assignments: TypeAlias = Mapping[ColumnPath, Value]


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


def type_at(schema: spark_types.StructType, path: ColumnPath) -> spark_types.DataType:
    """Return the type of the column or field at a path."""
    type_: spark_types.DataType = schema
    for name in path:
        assert isinstance(type_, spark_types.StructType), "the path was resolved"
        type_ = next(f.dataType for f in type_.fields if f.name == name)
    return type_


def whole_columns(assignments: Assignments, schema: spark_types.StructType) -> dict[str, Value]:
    """Return the assignments as values of whole columns; fields without an assignment are kept."""
    return {
        name: assignments[name,]
        if (name,) in assignments
        else _update(TargetValue(name), type_at(schema, (name,)), (name,), assignments)
        for name in dict.fromkeys(path[0] for path in assignments)
    }


def _update(
    value: Value, type_: spark_types.DataType, path: ColumnPath, assignments: Assignments
) -> Value:
    if path in assignments:
        return assignments[path]
    if not any(p[: len(path)] == path for p in assignments):
        return value
    assert isinstance(type_, spark_types.StructType), "the path was resolved"
    return Struct(
        tuple(
            (f.name, _update(Field(value, f.name), f.dataType, (*path, f.name), assignments))
            for f in type_.fields
        )
    )
