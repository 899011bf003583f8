"""Rows as a naive reader of Iceberg sees them: stored values by field id, read under any schema.

Specification, "Column Projection": a column that a file lacks has its initial default, or null.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Mapping
from typing import Any

from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import comparable_of
from tests.support.rows import sorted_pairs

_EPOCH = dt.datetime(1970, 1, 1)


def row_by_name(struct: StructType, stored: Mapping[int, Any]) -> dict[str, Any]:
    """Return a stored row or struct, keyed by field id, as a dict by name, as Arrow takes it."""
    return {f.name: _value_by_name(f.type, stored[f.field_id]) for f in struct.fields}


def _value_by_name(type_: Type, value: Any) -> Any:
    match type_:
        case _ if value is None:
            return None
        case StructType():
            return row_by_name(type_, value)
        case ListType():
            return [_value_by_name(type_.element_type, v) for v in value]
        case MapType():
            return [(k, _value_by_name(type_.value_type, v)) for k, v in value]
    return value


def read(struct: StructType, stored: Mapping[int, Any]) -> dict[str, Any]:
    """Return a stored row or struct as a dict by name under a later schema."""
    return {
        f.name: _read(f.type, stored[f.field_id]) if f.field_id in stored else _default(f)
        for f in struct.fields
    }


def _read(type_: Type, value: Any) -> Any:
    match type_:
        case _ if value is None:
            return None
        case StructType():
            return read(type_, value)
        case ListType():
            return [_read(type_.element_type, v) for v in value]
        case MapType():
            return [(k, _read(type_.value_type, v)) for k, v in value]
        case TimestampType() if not isinstance(value, dt.datetime):
            return dt.datetime.combine(value, dt.time())
    return value


def _default(f: NestedField) -> Any:
    value = f.initial_default
    match f.type:
        case _ if value is None:
            return None
        case DateType():
            return (_EPOCH + dt.timedelta(days=value)).date()
        case TimeType():
            return (_EPOCH + dt.timedelta(microseconds=value)).time()
        case TimestampType():
            return _EPOCH + dt.timedelta(microseconds=value)
        case TimestamptzType():
            return (_EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=dt.timezone.utc)
    return value


def field_of(struct: StructType, stored: Mapping[int, Any], path: tuple[str, ...]) -> Any:
    """Return the value of a field nested in structs, or None if a struct on the path is null."""
    value: Any = read(struct, stored)
    for name in path:
        value = None if value is None else value[name]
    return value


def key_of(value: Any) -> str:
    """Return a text that is equal for values that an equality delete treats as equal."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else repr(value)


def shown(type_: Type, value: Any) -> Any:
    """Return a value that was read in the form of tests.support.rows, as Spark collects it."""
    match type_:
        case _ if value is None:
            return None
        case UnknownType():
            return None
        case StructType(fields=fields):
            return tuple(shown(f.type, value[f.name]) for f in fields)
        case ListType():
            return tuple(shown(type_.element_type, v) for v in value)
        case MapType():
            return sorted_pairs(
                (shown(type_.key_type, k), shown(type_.value_type, v)) for k, v in value
            )
        case VariantType():
            return comparable_of(value["metadata"], value["value"])
        case UUIDType():
            return str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value)
        case TimestamptzType():
            return value.replace(tzinfo=None)
        case DecimalType(scale=scale):
            return decimal_of(int(value.scaleb(scale)), scale)
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
