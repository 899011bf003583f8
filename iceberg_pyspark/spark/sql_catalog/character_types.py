"""VARCHAR(n) of string columns, which Iceberg has no type for.

A table property by the column's id keeps the type (`CHARACTER_TYPE`): a renamed column keeps its
type, and the id of a dropped one is never used again. Spark gets the type in the table's schema,
and then checks what it writes as it does for its own tables.

CHAR(n) is a plain string: Spark pads it by a projection between a statement and its table, behind
which DELETE, UPDATE and MERGE would not find the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyspark.sql import types as spark_types

from iceberg_pyspark.spec import types as ice
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import CHARACTER_TYPE

_TYPE = re.compile(r"varchar\((\d+)\)")


def character_properties(struct: spark_types.StructType, schema: Schema) -> dict[str, str]:
    """Return the properties of the columns of such types; `schema` was made of `struct`."""
    return {
        f"{CHARACTER_TYPE}{field_id}": type_.simpleString()
        for field_id, type_ in _character_types(struct, schema.as_struct)
    }


def _character_types(
    type_: spark_types.DataType, iceberg_type: ice.Type
) -> Iterator[tuple[int, spark_types.DataType]]:
    for child, f in zip(_children(type_), ice.children_of(iceberg_type), strict=True):
        if isinstance(child, spark_types.VarcharType):
            yield f.field_id, child
        yield from _character_types(child, f.type)


def _children(type_: spark_types.DataType) -> list[spark_types.DataType]:
    match type_:
        case spark_types.StructType():
            return [f.dataType for f in type_.fields]
        case spark_types.ArrayType():
            return [type_.elementType]
        case spark_types.MapType():
            return [type_.keyType, type_.valueType]
    return []


def with_character_types(
    struct: spark_types.StructType, schema: Schema, properties: Mapping[str, str]
) -> spark_types.StructType:
    """Return the Spark schema of an Iceberg schema with the types that properties keep."""
    if not any(key.startswith(CHARACTER_TYPE) for key in properties):
        return struct
    result = _with_types(struct, schema.as_struct, properties)
    assert isinstance(result, spark_types.StructType)
    return result


def _with_types(
    type_: spark_types.DataType, iceberg_type: ice.Type, properties: Mapping[str, str]
) -> spark_types.DataType:
    fields = ice.children_of(iceberg_type)
    new = [
        _kept_type(f, properties) or _with_types(child, f.type, properties)
        for child, f in zip(_children(type_), fields, strict=True)
    ]
    match type_:
        case spark_types.StructType():
            return spark_types.StructType(
                [
                    spark_types.StructField(f.name, child, f.nullable, f.metadata)
                    for f, child in zip(type_.fields, new, strict=True)
                ]
            )
        case spark_types.ArrayType():
            return spark_types.ArrayType(new[0], type_.containsNull)
        case spark_types.MapType():
            return spark_types.MapType(new[0], new[1], type_.valueContainsNull)
    return type_


def _kept_type(f: ice.NestedField, properties: Mapping[str, str]) -> spark_types.DataType | None:
    m = _TYPE.fullmatch(properties.get(f"{CHARACTER_TYPE}{f.field_id}", ""))
    if m is None or not isinstance(f.type, ice.StringType):
        return None
    return spark_types.VarcharType(int(m[1]))
