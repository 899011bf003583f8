"""Default values of columns: which values are allowed, and which value a default stands for.

Specification, "Default Values". Serialization of defaults is in `values.py`;
`changes/compatibility.py` decides which columns may have a default in which format version.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Literal

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.types import (
    DecimalType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)
from iceberg_pyspark.spec.values import value_from_json, value_to_bytes, value_to_json

WhichDefault = Literal["initial", "write"]


def default_of(field: NestedField, kind: WhichDefault) -> Any:
    """Return the field's value for rows that lack the field, with the defaults of nested fields."""
    default = field.initial_default if kind == "initial" else field.write_default
    return with_child_defaults(field.type, default, kind)


def with_child_defaults(type_: Type, value: Any, kind: WhichDefault) -> Any:
    """Return the value, with missing fields of structs set to the defaults of these fields."""
    if value is None:
        return None
    match type_:
        case StructType(fields=fields):
            return {
                f.field_id: with_child_defaults(f.type, value[f.field_id], kind)
                if f.field_id in value
                else default_of(f, kind)
                for f in fields
            }
        case ListType():
            return [with_child_defaults(type_.element_type, v, kind) for v in value]
        case MapType():
            return [
                (
                    with_child_defaults(type_.key_type, k, kind),
                    with_child_defaults(type_.value_type, v, kind),
                )
                for k, v in value
            ]
        case _:
            return value


def why_no_default(type_: Type, value: Any) -> str | None:
    """Return why a value cannot be a default of the type, or None for a valid default or no value.

    A default must read back unchanged from JSON, which has neither NaN nor infinity.
    """
    if value is None:
        return None
    if isinstance(type_, StructType) and value != {}:
        return "a struct defaults to null or to {}; set defaults on its fields"
    try:
        if isinstance(type_, DecimalType):
            _check_decimal(type_, value)
        if isinstance(type_, PrimitiveType):
            value_to_bytes(type_, value)
        text = json.dumps(value_to_json(type_, value), allow_nan=False)
        value_read_back = value_from_json(type_, json.loads(text))
    except (
        *(InvalidMetadataError, ValueError, TypeError, AttributeError, LookupError),
        *(ArithmeticError, struct.error),
    ) as e:
        return str(e)
    return None if value_read_back == value else f"{value!r} reads back as {value_read_back!r}"


def _check_decimal(type_: DecimalType, value: Any) -> None:
    digits = value.as_tuple()
    if digits.exponent != -type_.scale or len(digits.digits) > type_.precision:
        raise ValueError(f"{value!r} is not of type {type_}")
