"""The Arrow types of a shredded variant's typed columns, and how variants encode their values.

Parquet specification, "Variant Shredding", "Shredded Value Types".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from iceberg_pyspark.spec import variant_encoding as encoding
from iceberg_pyspark.spec.variant_shredding import TypedValue

Encode: TypeAlias = Callable[[Any], bytes]

_NUMBERS: Mapping[int, pa.DataType] = {
    encoding.INT8: pa.int8(),
    encoding.INT16: pa.int16(),
    encoding.INT32: pa.int32(),
    encoding.INT64: pa.int64(),
    encoding.FLOAT: pa.float32(),
    encoding.DOUBLE: pa.float64(),
    encoding.DATE: pa.date32(),
    encoding.TIME: pa.time64("us"),
    encoding.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    encoding.TIMESTAMP: pa.timestamp("us"),
    encoding.TIMESTAMPTZ_NS: pa.timestamp("ns", "UTC"),
    encoding.TIMESTAMP_NS: pa.timestamp("ns"),
}
_TYPES: Mapping[int, pa.DataType] = {
    **_NUMBERS,
    encoding.BOOLEAN: pa.bool_(),
    encoding.BINARY: pa.binary(),
    encoding.TEXT: pa.string(),
    encoding.UUID_: pa.uuid(),
}
_NUMBER_BY_TYPE = {type_: type_id for type_id, type_ in _NUMBERS.items()}


def typed_column_type(shredding: TypedValue) -> pa.DataType:
    """Return the type of a typed column."""
    if shredding.precision:
        return pa.decimal128(shredding.precision, shredding.scale)
    return _TYPES[shredding.type_id]


def value_encoder(type_: pa.DataType) -> Encode | None:
    """Return the encoder of a typed column's values, or None for a type that no variant has.

    It takes numbers, dates in days, times in the unit of the column, `Decimal`, texts, and bytes,
    also of a UUID.
    """
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        type_ = pa.timestamp(type_.unit, "UTC")
    if (type_id := _NUMBER_BY_TYPE.get(type_)) is not None:
        return partial(encoding.encode_number, type_id)
    if pa.types.is_decimal(type_):
        return partial(encoding.encode_decimal, scale=type_.scale, precision=type_.precision)
    if pa.types.is_boolean(type_):
        return encoding.encode_boolean
    if pa.types.is_string(type_):
        return encoding.encode_text
    if isinstance(type_, pa.UuidType):
        return encoding.encode_uuid
    return encoding.encode_bytes if pa.types.is_binary(type_) else None
