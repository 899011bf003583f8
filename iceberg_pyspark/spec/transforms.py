"""Partition transforms: parsing, result types, values and their readable form.

Specification, "Partition Transforms" and Appendix B. `arrow/write/partition_batches.py` applies
transforms to columns of rows; `expressions/projection.py` projects predicates through transforms.
"""

from __future__ import annotations

import base64
import math
import re
import struct
import uuid
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.json_fields import MAX_INT32, JsonObject
from iceberg_pyspark.spec.murmur3 import murmur3_32
from iceberg_pyspark.spec.values import decimal_of, twos_complement, unscaled_value

_MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class IdentityTransform:
    """The source value itself."""

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True, slots=True)
class BucketTransform:
    """The hash of the value modulo `num_buckets`."""

    num_buckets: int

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"


@dataclass(frozen=True, slots=True)
class TruncateTransform:
    """The value cut to `width`: numbers round down to a multiple, text and bytes keep a prefix."""

    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class YearTransform:
    """Years from 1970."""

    def __str__(self) -> str:
        return "year"


@dataclass(frozen=True, slots=True)
class MonthTransform:
    """Months from 1970-01."""

    def __str__(self) -> str:
        return "month"


@dataclass(frozen=True, slots=True)
class DayTransform:
    """Days from 1970-01-01."""

    def __str__(self) -> str:
        return "day"


@dataclass(frozen=True, slots=True)
class HourTransform:
    """Hours from 1970-01-01 00:00."""

    def __str__(self) -> str:
        return "hour"


@dataclass(frozen=True, slots=True)
class VoidTransform:
    """The transform whose result is always null."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class UnknownTransform:
    """A transform of a newer specification: tables with it can be read, but not written."""

    text: str

    def __str__(self) -> str:
        return self.text


TimeTransform: TypeAlias = YearTransform | MonthTransform | DayTransform | HourTransform
Transform: TypeAlias = (
    IdentityTransform
    | BucketTransform
    | TruncateTransform
    | TimeTransform
    | VoidTransform
    | UnknownTransform
)

GivenTransform: TypeAlias = Annotated[Transform | str, "a transform such as 'bucket[16]'"]
"""A transform as users give it."""

_PLAIN: dict[str, Transform] = {
    "identity": IdentityTransform(),
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
    "void": VoidTransform(),
}
_WITH_ARGUMENT = re.compile(r"(bucket|truncate)\[([0-9]+)\]")


def parse_transform(text: str) -> Transform:
    """Parse a transform of metadata JSON; an unknown transform becomes `UnknownTransform`.

    >>> parse_transform("bucket[16]")
    BucketTransform(num_buckets=16)
    """
    if plain := _PLAIN.get(text.lower()):
        return plain
    if m := _WITH_ARGUMENT.fullmatch(text.lower()):
        # check the length first: Python refuses to parse thousands of digits
        argument = int(m[2]) if len(m[2]) <= _INT32_DIGITS else MAX_INT32 + 1
        if not 1 <= argument <= MAX_INT32:
            raise InvalidMetadataError(
                f"transform '{text[:80]}': the argument must be 1 to {MAX_INT32}"
            )
        return BucketTransform(argument) if m[1] == "bucket" else TruncateTransform(argument)
    return UnknownTransform(text)


def transform_of(text: str, source_count: int) -> Transform:
    """Return the transform of a field with the given number of source columns.

    The specification defines no transform with several arguments yet, except `void`, so a name that
    is known for one column has no known meaning for several.

    >>> transform_of("bucket[16]", 2)
    UnknownTransform(text='bucket[16]')
    """
    transform = parse_transform(text)
    if source_count == 1 or isinstance(transform, VoidTransform):
        return transform
    return UnknownTransform(text)


_INT32_DIGITS = len(str(MAX_INT32))


def transform_from_json(data: JsonObject) -> Transform:
    """Parse the transform of a partition or sort field; errors name the JSON path."""
    text = data.string("transform")
    try:
        return transform_of(text, len(source_ids_from_json(data)))
    except InvalidMetadataError as e:
        raise InvalidMetadataError(f"{data.path}: {e}") from e


def source_ids_to_json(source_ids: tuple[int, ...]) -> dict[str, Any]:
    """Return the source column ids as keys of a field's JSON; only several are `source-ids`."""
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": [*source_ids]}


def source_ids_from_json(data: JsonObject) -> tuple[int, ...]:
    """Return the source column ids of a partition or sort field: `source-ids`, else `source-id`."""
    return data.int32s("source-ids") or (data.int32("source-id"),)


def result_type(transform: Transform, source: types.Type) -> types.Type:
    """Return the type of the transform's values; `unknown` for an unknown transform."""
    match transform:
        case BucketTransform() | YearTransform() | MonthTransform() | HourTransform():
            return types.IntegerType()
        case DayTransform():
            # the specification says int; Java and its Avro files use date, whose values are the
            # same
            return types.DateType()
        case UnknownTransform():
            return types.UnknownType()
        case _:
            return source


_TIMESTAMPS = (
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNsType,
    types.TimestamptzNsType,
)
_BUCKETABLE = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimeType,
    *_TIMESTAMPS,
    types.StringType,
    types.UUIDType,
    types.FixedType,
    types.BinaryType,
)
_TRUNCATABLE = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.StringType,
    types.BinaryType,
)


def accepts(transform: Transform, source: types.Type) -> bool:
    """Return whether the specification allows the transform on the source type."""
    match transform:
        case IdentityTransform():
            return isinstance(source, types.PrimitiveType) and not isinstance(
                source,
                types.VariantType | types.GeometryType | types.GeographyType | types.UnknownType,
            )
        case BucketTransform():
            return isinstance(source, _BUCKETABLE)
        case TruncateTransform():
            return isinstance(source, _TRUNCATABLE)
        case YearTransform() | MonthTransform() | DayTransform():
            return isinstance(source, (types.DateType, *_TIMESTAMPS))
        case HourTransform():
            return isinstance(source, _TIMESTAMPS)
        case VoidTransform():
            return True
        case UnknownTransform():
            return False


def apply_transform(transform: Transform, source: types.Type, value: Any) -> Any:
    """Apply the transform to one value of the source type; null gives null."""
    if value is None:
        return None
    match transform:
        case IdentityTransform():
            return value
        case BucketTransform(num_buckets=n):
            return (bucket_hash(source, value) & 0x7FFFFFFF) % n
        case TruncateTransform(width=width):
            return _truncate(source, width, value)
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return _time_value(transform, source, value)
        case VoidTransform():
            return None
        case UnknownTransform(text=text):
            raise InvalidRequestError(f"cannot compute unknown transform '{text}'")


def bucket_hash(source: types.Type, value: Any) -> int:
    """Return the signed 32-bit hash of a value (Appendix B).

    >>> bucket_hash(IntegerType(), 34), bucket_hash(DecimalType(9, 2), Decimal("14.20"))
    (2017239379, -500754589)
    """
    match source:
        case (
            types.IntegerType()
            | types.LongType()
            | types.DateType()
            | types.TimeType()
            | types.BooleanType()
        ):
            data = struct.pack("<q", int(value))
        case types.TimestampType() | types.TimestamptzType():
            data = struct.pack("<q", value)
        case types.TimestampNsType() | types.TimestamptzNsType():
            data = struct.pack("<q", value // 1000)
        case types.FloatType() | types.DoubleType():
            data = struct.pack("<d", 0.0 if value == 0 else value)
        case types.DecimalType():
            data = twos_complement(unscaled_value(value))
        case types.StringType():
            data = value.encode("utf-8")
        case types.UUIDType() | types.FixedType() | types.BinaryType():
            data = bytes(value)
        case _:
            raise InvalidRequestError(f"bucket is not defined for {source}")
    return murmur3_32(data)


def _truncate(source: types.Type, width: int, value: Any) -> Any:
    match source:
        case types.IntegerType() | types.LongType():
            return value - value % width
        case types.DecimalType(scale=scale):
            unscaled = unscaled_value(value)
            return decimal_of(unscaled - unscaled % width, scale)
        case types.StringType() | types.BinaryType():
            return value[:width]
        case _:
            raise InvalidRequestError(f"truncate is not defined for {source}")


def _time_value(transform: TimeTransform, source: types.Type, value: int) -> int:
    match source:
        case types.DateType():
            if isinstance(transform, HourTransform):
                raise InvalidRequestError("hour is not defined for date")
            days, hours = value, 0
        case types.TimestampType() | types.TimestamptzType():
            days, hours = value // _MICROS_PER_DAY, value // 3_600_000_000
        case types.TimestampNsType() | types.TimestamptzNsType():
            days, hours = value // (_MICROS_PER_DAY * 1000), value // 3_600_000_000_000
        case _:
            raise InvalidRequestError(f"{transform} is not defined for {source}")
    match transform:
        case HourTransform():
            return hours
        case DayTransform():
            return days
        case YearTransform():
            return civil_from_days(days)[0] - 1970
        case MonthTransform():
            year, month = civil_from_days(days)
            return (year - 1970) * 12 + month - 1


def civil_from_days(days: int) -> tuple[int, int]:
    """Return year and month of a day count from 1970-01-01, in the proleptic Gregorian calendar.

    `datetime` supports only the years 1 to 9999; timestamps have a larger range.
    """
    z = days + 719_468
    era, day_of_era = divmod(z, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (1 if month <= 2 else 0), month


def human_value(transform: Transform, source: types.Type, value: Any) -> str:
    """Return a partition value for partition paths: `null`, `2017-11`, `2017-11-16-22`, base64.

    >>> human_value(MonthTransform(), DateType(), 574)
    '2017-11'
    """
    if value is None:
        return "null"
    match transform:
        case YearTransform():
            return f"{1970 + value:04d}"
        case MonthTransform():
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case DayTransform():
            return _date_text(value)
        case HourTransform():
            return f"{_date_text(value // 24)}-{value % 24:02d}"
        case UnknownTransform():
            return untyped_text(value)
        case _:
            return _human_plain(result_type(transform, source), value)


_DAYS_OF_400_YEARS = 146_097


def _year_and_day(days: int) -> tuple[int, str]:
    """Return the year and `-MM-DD` of a day count, also beyond the years of `date` (1 to 9999)."""
    cycles, rest_of_days = divmod(days, _DAYS_OF_400_YEARS)
    day = date(1970, 1, 1) + timedelta(days=rest_of_days)
    return day.year + 400 * cycles, f"-{day.month:02d}-{day.day:02d}"


def _date_text(days: int) -> str:
    year, day = _year_and_day(days)
    return f"{year:04d}{day}"


def _human_plain(type_: types.Type, value: Any) -> str:
    match type_:
        case types.BooleanType():
            return "true" if value else "false"
        case types.DateType():
            return _date_text(value)
        case types.TimeType():
            return _java_time(value * 1000)
        case types.TimestampType() | types.TimestamptzType():
            zone = "+00:00" if isinstance(type_, types.TimestamptzType) else ""
            return _java_timestamp(value * 1000) + zone
        case types.TimestampNsType() | types.TimestamptzNsType():
            zone = "+00:00" if isinstance(type_, types.TimestamptzNsType) else ""
            return _java_timestamp(value) + zone
        case types.UUIDType():
            return str(uuid.UUID(bytes=value))
        case types.FixedType() | types.BinaryType():
            return base64.b64encode(value).decode("ascii")
        case types.FloatType() | types.DoubleType():
            return _java_float(type_, value)
        case _:
            # this includes decimals: Java and Python use the same plain and exponent forms
            return untyped_text(value)


def untyped_text(value: Any) -> str:
    """Return the text of a value of unknown type, from its Python type alone.

    >>> untyped_text(b"ab"), untyped_text(True), untyped_text(7)
    ('YWI=', 'true', '7')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            return str(value)


def _java_float(type_: types.Type, value: float) -> str:
    """Return Java's text of a float or double: the fewest digits that identify it, at least two.

    >>> _java_float(FloatType(), 1e-45), _java_float(DoubleType(), 1e7)
    ('1.4E-45', '1.0E7')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    code = "f" if isinstance(type_, types.FloatType) else "d"
    exact: float = struct.unpack(code, struct.pack(code, value))[0]
    for digits in range(1, 17):
        text = f"{exact:.{digits}e}"
        if _round(code, float(text)) == exact:
            break
    mantissa, exponent = text.split("e")
    if exact == 0 or 1e-3 <= abs(exact) < 1e7:
        whole, _, fraction = f"{Decimal(text):f}".partition(".")
        return f"{whole}.{fraction.rstrip('0') or '0'}"
    return f"{mantissa}E{int(exponent)}"


def _round(code: str, value: float) -> float:
    """Round a value to the width of the struct code; a value that overflows becomes infinity."""
    try:
        result: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.inf
    return result


def _java_time(nanos: int) -> str:
    """Return Java's LocalTime text: no zero seconds, the fraction in groups of three digits."""
    text, fraction = _clock(nanos)
    if not fraction:
        return text.removesuffix(":00")
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}"


def _clock(nanos: int) -> tuple[str, str]:
    """Return HH:MM:SS and the nine digits of the fraction, or "" if the fraction is zero."""
    seconds, fraction = divmod(nanos, 1_000_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text, f"{fraction:09d}" if fraction else ""


def _java_timestamp(nanos: int) -> str:
    """Return Java's ISO text of a timestamp in nanoseconds.

    Years after 9999 begin with a plus, negative years have four digits after the minus, and the
    fraction has no trailing zeros.
    """
    days, of_day = divmod(nanos, 86_400_000_000_000)
    year, day = _year_and_day(days)
    year_text = f"+{year}" if year > 9999 else f"{year:05d}" if year < 0 else f"{year:04d}"
    text, fraction = _clock(of_day)
    return f"{year_text}{day}T{text}{'.' if fraction else ''}{fraction.rstrip('0')}"


def transform_text(transform: Transform, column: str) -> str:
    """Return a transform of a column in the syntax of Iceberg's Spark catalog: `bucket(16, id)`."""
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform(num_buckets=n):
            return f"bucket({n}, {column})"
        case TruncateTransform(width=width):
            return f"truncate({column}, {width})"
        case YearTransform() | MonthTransform() | DayTransform() | HourTransform():
            return f"{transform}s({column})"
        case _:
            return f"{transform}({column})"
