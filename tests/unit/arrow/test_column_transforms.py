"""A transform of a column equals the transform of each of its values (Appendix B)."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, value_of
from iceberg_pyspark.arrow.write.partition_batches import transform_array
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    accepts,
    apply_transform,
    result_type,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    Type,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.strategies import PRIMITIVE_TYPES, nullable

TRANSFORMS: tuple[Transform, ...] = (
    IdentityTransform(),
    BucketTransform(1),
    BucketTransform(16),
    BucketTransform(2_000_000_000),
    TruncateTransform(1),
    TruncateTransform(3),
    TruncateTransform(50),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)

PAIRS = [(t, s) for t in TRANSFORMS for s in PRIMITIVE_TYPES if accepts(t, s)]


def column_of(type_: Type, values: list[Any]) -> pa.Array:
    return pa.array(values, type=arrow_type(type_))


def transformed(transform: Transform, source: Type, values: list[Any]) -> list[Any]:
    column = transform_array(transform, source, column_of(source, values))
    result = result_type(transform, source)
    assert column.type == arrow_type(result)
    return [value_of(result, v) for v in column]


def exact(value: Any) -> Any:
    """Return a form of the value that compares floats by bits and treats all NaNs as equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("<d", value)
    return value


def is_representable(type_: Type, value: Any) -> bool:
    """Return whether a result is a value of its type; truncating the smallest int is not."""
    if value is None:
        return True
    if isinstance(type_, DecimalType):
        return len(value.as_tuple().digits) <= type_.precision
    try:
        value_to_bytes(type_, value)
    except struct.error:
        return False
    return True


@given(st.data())
def test_column_equals_value_by_value(data: st.DataObject) -> None:
    transform, source = data.draw(st.sampled_from(PAIRS))
    values = data.draw(st.lists(nullable(source), max_size=8))
    expected = [apply_transform(transform, source, v) for v in values]
    result = result_type(transform, source)
    if not all(is_representable(result, v) for v in expected):
        # docs/conformance.md 53: an overflow must never wrap around.
        with pytest.raises(InvalidRequestError):
            transformed(transform, source, values)
        return
    assert list(map(exact, transformed(transform, source, values))) == list(map(exact, expected))


@given(st.data())
def test_a_slice_of_a_column_is_transformed_alone(data: st.DataObject) -> None:
    transform, source = data.draw(st.sampled_from(PAIRS))
    column = column_of(source, data.draw(st.lists(nullable(source), min_size=3, max_size=6)))
    try:
        whole = transform_array(transform, source, column)
    except InvalidRequestError:
        return
    assert transform_array(transform, source, column[1:-1]).equals(whole[1:-1]) or any(
        isinstance(v, float) and math.isnan(v) for v in column.to_pylist()
    )


@pytest.mark.parametrize(
    ("source", "value", "hashed"),
    [
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DateType(), 17486, -653330422),
        (TimestampType(), 1510871468000000, -2047944441),
        (TimestampType(), 1510871468000001, -1207196810),
        (TimestampNsType(), 1510871468000001001, -1207196810),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), 1488055340),
        (BinaryType(), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_line_51_bucket_of_the_specification_values(
    source: PrimitiveType, value: Any, hashed: int
) -> None:
    n = 2_147_483_647
    assert transformed(BucketTransform(n), source, [value]) == [(hashed & 0x7FFFFFFF) % n]


def test_line_54_text_is_cut_by_code_points_and_binary_by_bytes() -> None:
    assert transformed(TruncateTransform(2), StringType(), ["\U0001f600e\u0301x"]) == [
        "\U0001f600e"
    ]
    assert transformed(TruncateTransform(2), BinaryType(), ["é".encode() + b"x"]) == ["é".encode()]


@pytest.mark.parametrize(
    "transform", [YearTransform(), MonthTransform(), DayTransform(), HourTransform()]
)
def test_line_55_the_last_microsecond_of_1969_is_minus_one(transform: Transform) -> None:
    assert transformed(transform, TimestampType(), [-1, 0, None]) == [-1, 0, None]


def test_line_53_the_least_int_has_no_truncated_value() -> None:
    with pytest.raises(InvalidRequestError, match=r"truncate\[10\] of -2147483648"):
        transformed(TruncateTransform(10), IntegerType(), [5, -(2**31)])


def test_line_64_an_unknown_transform_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="zorder"):
        transform_array(UnknownTransform("zorder"), IntegerType(), pa.array([1]))


def test_a_transform_on_a_type_it_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="hour is not defined for type date"):
        transform_array(HourTransform(), DateType(), column_of(DateType(), [1]))
