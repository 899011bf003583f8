"""Type promotions: to which types a column may change.

Specification, "Schema Evolution".
"""

from __future__ import annotations

from iceberg_pyspark.spec import types

_NEWEST_RULES = 3


def can_promote(old: types.Type, new: types.Type, format_version: int) -> bool:
    """Return whether the specification allows a column to change from one type to the other."""
    match old, new:
        case types.IntegerType(), types.LongType():
            return True
        case types.FloatType(), types.DoubleType():
            return True
        case types.DecimalType(), types.DecimalType():
            return new.scale == old.scale and new.precision >= old.precision
        case types.DateType(), types.TimestampType() | types.TimestampNsType():
            return format_version >= 3
        case types.UnknownType(), types.PrimitiveType():
            return format_version >= 3
        case _:
            return False


def is_readable_as(old: types.Type, new: types.Type, format_version: int = _NEWEST_RULES) -> bool:
    """Return whether rows of the old type can be read as the new type.

    Nested fields do not count: they have types of their own.
    """
    if isinstance(old, types.PrimitiveType):
        return old == new or can_promote(old, new, format_version)
    return type(old) is type(new)
