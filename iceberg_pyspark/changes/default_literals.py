"""Converts a default value given in Python to a value of the column's type.

Specification, "Default Values". Values that already have the type stay as they are;
`spec/default_values.py` checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.literals import place_literal
from iceberg_pyspark.spec.types import (
    DecimalType,
    DoubleType,
    FloatType,
    ListType,
    MapType,
    StructType,
    Type,
)


def default_from_literal(name: str, type_: Type, literal: Any) -> Any:
    """Return the default value of column `name`; raise `InvalidRequestError` if it does not fit.

    The literal for a list is a list or tuple, for a map a dict or a list of pairs, and for a struct
    a dict by field name or field id.
    """
    try:
        return _value(type_, literal)
    except (TypeError, ValueError) as e:
        raise InvalidRequestError(
            f"column '{name}': {literal!r} cannot be the default of a column of type {type_}: {e}"
        ) from e


def _value(type_: Type, literal: Any) -> Any:
    if literal is None:
        return None
    match type_:
        case ListType():
            if not isinstance(literal, list | tuple):
                raise TypeError("give a list")
            return [_value(type_.element_type, v) for v in literal]
        case MapType():
            return [
                (_value(type_.key_type, k), _value(type_.value_type, v)) for k, v in _pairs(literal)
            ]
        case StructType():
            return _struct(type_, literal)
        case _:
            return _primitive(type_, literal)


def _pairs(literal: Any) -> list[tuple[Any, Any]]:
    if isinstance(literal, Mapping):
        return list(literal.items())
    if not isinstance(literal, list | tuple):
        raise TypeError("give a dict, or a list of keys and values")
    for pair in literal:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(f"{pair!r} is not a pair of a key and a value")
    return [(k, v) for k, v in literal]


def _struct(type_: StructType, literal: Any) -> dict[int, Any]:
    if not isinstance(literal, Mapping):
        raise TypeError("give a dict of values by field name")
    values: dict[int, Any] = {}
    for key, value in literal.items():
        f = type_.field_named(key) if isinstance(key, str) else type_.field(key)
        if f is None:
            raise ValueError(f"the struct has no field {key!r}")
        values[f.field_id] = _value(f.type, value)
    return values


def _primitive(type_: Type, literal: Any) -> Any:
    if not isinstance(literal, str | date | time | Decimal | UUID):
        is_number = isinstance(literal, int) and not isinstance(literal, bool)
        if not (is_number and isinstance(type_, DecimalType | DoubleType | FloatType)):
            return literal
    bound_value = place_literal(type_, literal)
    if bound_value.where != "at":
        raise ValueError(f"{literal!r} is not a value of type {type_}")
    return bound_value.value
