"""Expressions by which Spark compares values that it cannot order, or that it treats as equal."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.sql_text.names import quoted

_UNORDERED_TYPES = ("variant", "geometry", "geography")
"""The first words of the types whose values Spark's window functions cannot compare."""


def compared_by(fields: Sequence[StructField]) -> list[Column]:
    """Return columns that are equal exactly if all fields are equal; null equals null.

    Maps are equal whatever the order of their entries; 0.0 and -0.0 differ, and all NaN values are
    equal. Raise `UnsupportedFeatureError` for a type that Spark cannot compare.
    """
    return [key for f in fields for key in _keys(F.col(quoted(f.name)), f.dataType, f.name)]


def _keys(column: Column, type_: DataType, name: str) -> list[Column]:
    if isinstance(type_, FloatType | DoubleType):
        # Spark treats -0.0 as 0.0 when it groups.
        is_negative_zero = F.when(column == 0, column.cast("string").startswith("-"))
        return [column, is_negative_zero]
    return [_key(column, type_, name)]


def _key(column: Column, type_: DataType, name: str) -> Column:
    if _is_plain(type_, name):
        return column
    match type_:
        case StructType():
            keys = [
                key
                for f in type_.fields
                for key in _keys(column.getField(f.name), f.dataType, f"{name}.{f.name}")
            ]
            return F.when(column.isNotNull(), _struct(keys))
        case ArrayType():
            return F.transform(column, lambda e: _element(e, type_.elementType, name))
        case MapType():
            entries = F.transform(
                F.map_entries(column),
                lambda e: _struct(
                    [
                        _element(e.getField("key"), type_.keyType, name),
                        _element(e.getField("value"), type_.valueType, name),
                    ]
                ),
            )
            return F.array_sort(entries)
    raise AssertionError(f"{type_} is plain")


def _element(element: Column, type_: DataType, name: str) -> Column:
    keys = _keys(element, type_, name)
    return keys[0] if len(keys) == 1 else _struct(keys)


def _struct(keys: Sequence[Column]) -> Column:
    return F.struct(*(key.alias(f"_{i}") for i, key in enumerate(keys)))


def _is_plain(type_: DataType, name: str) -> bool:
    """Return whether Spark can compare values of the type directly."""
    match type_:
        case StructType():
            return all(_is_plain(f.dataType, f"{name}.{f.name}") for f in type_.fields)
        case ArrayType():
            return _is_plain(type_.elementType, name)
        case MapType() | FloatType() | DoubleType():
            return False
    if isinstance(type_, NullType) or (
        isinstance(type_, AtomicType) and not type_.simpleString().startswith(_UNORDERED_TYPES)
    ):
        return True
    raise UnsupportedFeatureError(
        f"column {name} is of type {type_.simpleString()}, whose values Spark cannot compare, so "
        "copied rows cannot be told from changed rows; read the metadata table changes, which "
        "shows both"
    )
