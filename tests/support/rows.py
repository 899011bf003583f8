"""Rows from Spark and from Arrow as plain tuples in one form, so that tests compare them.

Structs and lists become tuples, maps sorted tuples of pairs; NaN, which does not equal itself,
becomes the string "NaN"; an instant becomes the naive UTC datetime that Spark collects in a UTC
process. Rows are sorted with nulls first, whatever their types, because tables have no row order.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import VARIANT
from iceberg_pyspark.spec.variant_encoding import comparable_of

PlainRow = tuple[Any, ...]


def spark_rows(rows: Iterable[Any]) -> list[PlainRow]:
    """Return collected Spark rows in the common form, sorted."""
    return sorted_rows(plain_value(row) for row in rows)


def arrow_rows(table: pa.Table) -> list[PlainRow]:
    """Return the rows of an Arrow table in the common form, sorted."""
    columns = [
        [arrow_value(value, field.type) for value in column.to_pylist()]
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return sorted_rows(zip(*columns, strict=True))


def sorted_rows(rows: Iterable[PlainRow]) -> list[PlainRow]:
    """Sort rows in the common form: nulls first, then by value; a column has one type."""
    return sorted(rows, key=sort_key)


def sort_key(value: Any) -> tuple[Any, ...]:
    """Return a sort key that orders a value among the values of its column."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(sort_key(item) for item in value))
    if isinstance(value, str | bytes | dt.date | dt.time | dt.timedelta):
        return (2, type(value).__name__, value)
    return (1, value)


def plain_value(value: Any) -> Any:
    """Turn one value collected by Spark into the common form."""
    match value:
        case tuple() | list():  # pyspark's Row is a tuple
            return tuple(plain_value(item) for item in value)
        case dict():
            return sorted_pairs((plain_value(k), plain_value(v)) for k, v in value.items())
        case bytearray():
            return bytes(value)
        case _ if type(value).__name__ == "VariantVal":
            return comparable_of(bytes(value.metadata), bytes(value.value))
        case _ if type(value).__name__ in ("Geometry", "Geography"):  # since Spark 4.1
            return value.getBytes()
        case float() if math.isnan(value):
            return "NaN"
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        case _:
            return value


def arrow_value(value: Any, data_type: pa.DataType) -> Any:
    """Turn one value of `to_pylist` into the common form; the type tells structs from maps."""
    if value is None:
        return None
    if data_type == VARIANT:
        return comparable_of(value["metadata"], value["value"])
    if pa.types.is_struct(data_type):
        return tuple(arrow_value(value[field.name], field.type) for field in data_type)
    if pa.types.is_map(data_type):
        return sorted_pairs(
            (arrow_value(k, data_type.key_type), arrow_value(v, data_type.item_type))
            for k, v in value
        )
    if pa.types.is_nested(data_type):
        return tuple(arrow_value(item, data_type.value_type) for item in value)
    return plain_value(value)


def sorted_pairs(pairs: Iterable[tuple[Any, Any]]) -> PlainRow:
    """Return a map's entries sorted, because a map has no order."""
    return tuple(sorted(pairs, key=sort_key))
