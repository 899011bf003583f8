"""The Arrow types of a shredded variant's typed columns, and how variants encode their values.

Parquet specification, "Variant Shredding", "Shredded Value Types".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from iceberg_pyspark.spec import variant_encoding as encoding

Encode: TypeAlias = Callable[[Any], bytes]

_NUMBERS: tuple[tuple[Callable[[pa.DataType], bool], int], ...] = (
    (pa.types.is_int8, encoding.INT8),
    (pa.types.is_int16, encoding.INT16),
    (pa.types.is_int32, encoding.INT32),
    (pa.types.is_int64, encoding.INT64),
    (pa.types.is_float32, encoding.FLOAT),
    (pa.types.is_float64, encoding.DOUBLE),
    (pa.types.is_date32, encoding.DATE),
)


def value_encoder(type_: pa.DataType) -> Encode | None:
    """Return the encoder of a typed column's values, or None for a type that no variant has.

    It takes numbers, dates in days, timestamps in microseconds, `Decimal`, texts, and bytes, also
    of a UUID.
    """
    for matches, type_id in _NUMBERS:
        if matches(type_):
            return partial(encoding.encode_number, type_id)
    if pa.types.is_timestamp(type_) and type_.unit == "us":
        type_id = encoding.TIMESTAMP if type_.tz is None else encoding.TIMESTAMPTZ
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
