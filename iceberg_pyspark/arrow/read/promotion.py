"""Casts primitive arrays of a file to the type of a table column.

Specification, "Schema Evolution" (promotions) and Appendix A "Parquet" (physical types). Only exact
widening is allowed: a value that does not fit is an error, and nothing is rounded. As in Java, the
table's type decides whether a timestamp is in UTC, because INT96 and old converted types do not.
"""

from __future__ import annotations

import pyarrow as pa

from iceberg_pyspark.arrow.schemas import arrow_type, is_binary_like, is_text_like
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec import types


def check_readable(physical: pa.DataType, type_: types.PrimitiveType, where: str) -> None:
    """Raise `InvalidMetadataError` unless the column can hold every value of the file's type."""
    if not _is_readable(_plain(physical), type_):
        raise InvalidMetadataError(
            f"{where} is stored as {physical}, which cannot be read as {type_}"
        )


def _plain(physical: pa.DataType) -> pa.DataType:
    if isinstance(physical, pa.BaseExtensionType):
        return _plain(physical.storage_type)
    return _plain(physical.value_type) if pa.types.is_dictionary(physical) else physical


def _is_readable(physical: pa.DataType, type_: types.PrimitiveType) -> bool:
    t = pa.types
    if t.is_null(physical):
        return True
    match type_:
        case types.BooleanType():
            return bool(t.is_boolean(physical))
        case types.IntegerType():
            return bool(t.is_integer(physical) and physical.bit_width <= 32)
        case types.LongType():
            return bool(t.is_integer(physical))
        case types.FloatType():
            return bool(t.is_floating(physical) and physical.bit_width <= 32)
        case types.DoubleType():
            return bool(t.is_floating(physical))
        case types.DecimalType(precision=precision, scale=scale):
            return bool(
                t.is_decimal(physical)
                and physical.precision <= precision
                and physical.scale == scale
            )
        case types.DateType():
            return bool(t.is_date(physical))
        case types.TimeType():
            return bool(t.is_time(physical))
        case types.TimestampType() | types.TimestampNsType():
            return bool(t.is_timestamp(physical) or t.is_date32(physical))
        case types.TimestamptzType() | types.TimestamptzNsType():
            return bool(t.is_timestamp(physical))
        case types.StringType() | types.BinaryType():
            return is_text_like(physical) or is_binary_like(physical)
        case types.FixedType(length=length):
            return is_binary_like(physical) or _is_fixed(physical, length)
        case types.UUIDType():
            return is_binary_like(physical) or _is_fixed(physical, 16)
        case _:
            return isinstance(type_, types.UnknownType)


def _is_fixed(physical: pa.DataType, length: int) -> bool:
    return bool(pa.types.is_fixed_size_binary(physical) and physical.byte_width == length)


def promote(array: pa.Array, type_: types.PrimitiveType) -> pa.Array:
    """Return the array in the column's Arrow type; raise `pa.ArrowInvalid` for an unfit value."""
    target = arrow_type(type_)
    if array.type == target:
        return array
    if isinstance(type_, types.UnknownType):
        return pa.nulls(len(array), target)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
        return promote(array, type_)
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
        # cast the unit first, so that the second cast changes only the time zone
        return array.cast(pa.timestamp(target.unit, array.type.tz)).cast(target)
    return array.cast(target)
