"""Hive type names for the columns of a table, which other tools show in Glue and Hive.

Iceberg does not read the type names: its schema is in the metadata file. Java writes the same
names.
"""

from __future__ import annotations

from iceberg_pyspark.spec import types as t

_PRIMITIVES: dict[type[object], str] = {
    t.BooleanType: "boolean",
    t.IntegerType: "int",
    t.LongType: "bigint",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.DateType: "date",
    t.TimeType: "string",
    t.TimestampType: "timestamp",
    t.TimestamptzType: "timestamp",
    t.TimestampNsType: "timestamp",
    t.TimestamptzNsType: "timestamp",
    t.StringType: "string",
    t.UUIDType: "string",
    t.FixedType: "binary",
    t.BinaryType: "binary",
}


def hive_type(type_: t.Type) -> str:
    """Return Hive's name of a type, or `string` if Hive has no such type.

    >>> hive_type(t.ListType(element_id=1, element_type=t.DecimalType(9, 2)))
    'array<decimal(9,2)>'
    """
    match type_:
        case t.DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case t.StructType():
            fields = ",".join(f"{f.name}:{hive_type(f.type)}" for f in type_.fields)
            return f"struct<{fields}>"
        case t.ListType():
            return f"array<{hive_type(type_.element_type)}>"
        case t.MapType():
            return f"map<{hive_type(type_.key_type)},{hive_type(type_.value_type)}>"
        case _:
            return _PRIMITIVES.get(type(type_), "string")
