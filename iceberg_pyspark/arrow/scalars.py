"""Converts single values of Iceberg types to Arrow scalars and back.

Used for constants in batches: partition values and defaults. Values are represented as in
`spec/values.py`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from iceberg_pyspark.arrow.arrow_schemas import arrow_type
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import with_child_defaults


def scalar_of(type_: types.Type, value: Any) -> pa.Scalar:
    """Return the Arrow scalar of a value; missing children of a struct get initial defaults."""
    return pa.scalar(
        _to_python(type_, with_child_defaults(type_, value, "initial")), type=arrow_type(type_)
    )


def constant_array(scalar: pa.Scalar, length: int) -> pa.Array:
    """Return an array that repeats one value, of exactly the scalar's type."""
    if not scalar.is_valid or not length:
        return pa.nulls(length, scalar.type)
    if pa.types.is_nested(scalar.type):
        # pyarrow's `repeat` copies nested values one by one; `take` is faster
        return pa.repeat(scalar, 1).take(pa.repeat(pa.scalar(0, pa.int32()), length))
    return pa.repeat(scalar, length)


def _to_python(type_: types.Type, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case types.StructType(fields=fields):
            return {f.name: _to_python(f.type, value[f.field_id]) for f in fields}
        case types.ListType():
            return [_to_python(type_.element_type, v) for v in value]
        case types.MapType():
            return [
                (_to_python(type_.key_type, k), _to_python(type_.value_type, v)) for k, v in value
            ]
        case _:
            return value


def value_of(type_: types.Type, scalar: pa.Scalar) -> Any:
    """Return the Python value of an Arrow scalar of the type `arrow_type(type_)`; None for null."""
    if not scalar.is_valid:
        return None
    match type_:
        case types.StructType(fields=fields):
            return {f.field_id: value_of(f.type, scalar[f.name]) for f in fields}
        case types.ListType():
            return [value_of(type_.element_type, v) for v in scalar]
        case types.MapType():
            entries = scalar.values
            return [
                (value_of(type_.key_type, k), value_of(type_.value_type, v))
                for k, v in zip(entries.field(0), entries.field(1), strict=True)
            ]
        case (
            types.DateType()
            | types.TimeType()
            | types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNsType()
            | types.TimestamptzNsType()
        ):
            return scalar.value
        case _:
            return scalar.as_py()
