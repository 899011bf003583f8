"""Casts values to the types of their columns, by Spark's ANSI store assignment rules.

A cast that would silently lose values is refused with the column's name; a value that does not fit
is an error of the job. Spark casts structs by position, so their fields must have the same names in
the same order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.calls import StoredValue
from iceberg_pyspark.spark.bridge.values import Cast, Side, Value
from iceberg_pyspark.spark.row_level.assignments import ColumnPath

if TYPE_CHECKING:
    from iceberg_pyspark.spark.bridge.jvm import Bridge


@dataclass(frozen=True, kw_only=True)
class StoreAssignment:
    """An assignment of a value to a column or a field in it; `side` is whose columns it names."""

    path: ColumnPath
    value: Value
    type: spark_types.DataType
    """The type of the assigned column or field."""

    side: Side = None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows that values refer to: a frame of a table's rows and perhaps a source's rows."""

    frame: DataFrame
    target: DataFrame
    source: DataFrame | None = None


def cast_for_store(
    bridge: Bridge, rows: Rows, values: Sequence[StoreAssignment], table: str
) -> list[Value]:
    """Return the values cast to the types of the columns and fields that they are assigned to."""
    assignments = [StoredValue(value=v.value, side=v.side, type=v.type.json()) for v in values]
    types = bridge.row_changes.store_types(rows.frame, rows.target, rows.source, assignments)
    return [
        _cast_for_store(value, has, fits, table)
        for value, (has, fits) in zip(values, types, strict=True)
    ]


def _cast_for_store(
    value: StoreAssignment, has: spark_types.DataType, fits: bool, table: str
) -> Value:
    type_ = value.type
    if same_type(has, type_):
        return value.value
    if not (same_names(has, type_) and fits):
        raise InvalidRequestError(
            f"column '{'.'.join(value.path)}' of table {table} is {type_.simpleString()}, the "
            f"value is {has.simpleString()} and cannot be stored in it safely: cast it first"
        )
    return Cast(value.value, type_.json())


def same_type(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Return whether two types are equal apart from nullability and comments."""
    return _alike(one, other, str, operator.eq)


def same_names(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Return whether structs have fields of the same names in the same order, at every level."""
    return _alike(one, other, str.lower, lambda a, b: True)


def _alike(
    one: spark_types.DataType,
    other: spark_types.DataType,
    name: Callable[[str], str],
    leaves: Callable[[spark_types.DataType, spark_types.DataType], bool],
) -> bool:
    """Compare types by the field names in structs, and otherwise by `leaves`."""

    def alike(a: spark_types.DataType, b: spark_types.DataType) -> bool:
        return _alike(a, b, name, leaves)

    match one, other:
        case spark_types.StructType(), spark_types.StructType():
            return [name(f.name) for f in one.fields] == [
                name(f.name) for f in other.fields
            ] and all(
                alike(a.dataType, b.dataType) for a, b in zip(one.fields, other.fields, strict=True)
            )
        case spark_types.ArrayType(), spark_types.ArrayType():
            return alike(one.elementType, other.elementType)
        case spark_types.MapType(), spark_types.MapType():
            return alike(one.keyType, other.keyType) and alike(one.valueType, other.valueType)
    return leaves(one, other)
