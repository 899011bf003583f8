"""Values brought to the types of the columns they are stored in, as Spark's ANSI store assignment.

What would lose values silently is refused by the column's name; what may not fit is an error of the
job. Structs go by position in Spark's casts, so theirs must have the same names in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.row_level.assignments import Assignments, ColumnPath


def stored_values(
    bridge: Any,
    frame: DataFrame,
    values: Assignments,
    types: Mapping[ColumnPath, spark_types.DataType],
    table: str,
) -> dict[ColumnPath, Column]:
    """The values, which are of the frame's rows, in the types of what they are assigned to."""
    if not values:
        return {}
    stored = {}
    found = bridge.types(frame, list(values.values()))
    for (path, value), type_ in zip(values.items(), found, strict=True):
        wanted = types[path]
        if same_type(type_, wanted):
            stored[path] = value
            continue
        if not (same_names(type_, wanted) and bridge.can_store(type_, wanted)):
            raise InvalidRequestError(
                f"column '{'.'.join(path)}' of table {table} is {wanted.simpleString()}, the "
                f"value is {type_.simpleString()} and cannot be stored in it safely: cast it "
                "first"
            )
        stored[path] = bridge.stored(value, wanted)
    return stored


def same_type(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Whether two types are equal but for nulls and comments."""
    match one, other:
        case spark_types.StructType(), spark_types.StructType():
            return [f.name for f in one.fields] == [f.name for f in other.fields] and all(
                same_type(a.dataType, b.dataType)
                for a, b in zip(one.fields, other.fields, strict=True)
            )
        case spark_types.ArrayType(), spark_types.ArrayType():
            return same_type(one.elementType, other.elementType)
        case spark_types.MapType(), spark_types.MapType():
            return same_type(one.keyType, other.keyType) and same_type(
                one.valueType, other.valueType
            )
    return one == other


def same_names(one: spark_types.DataType, other: spark_types.DataType) -> bool:
    """Whether structs have fields of the same names in the same order, at every level."""
    match one, other:
        case spark_types.StructType(), spark_types.StructType():
            return [f.name.lower() for f in one.fields] == [
                f.name.lower() for f in other.fields
            ] and all(
                same_names(a.dataType, b.dataType)
                for a, b in zip(one.fields, other.fields, strict=True)
            )
        case spark_types.ArrayType(), spark_types.ArrayType():
            return same_names(one.elementType, other.elementType)
        case spark_types.MapType(), spark_types.MapType():
            return same_names(one.keyType, other.keyType) and same_names(
                one.valueType, other.valueType
            )
    return True
