"""Appendix B: 32-bit hash requirements (docs/conformance.md 51) and bucket numbers (52)."""

import uuid
from decimal import Decimal
from typing import Any

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.spec.murmur3 import murmur3_32
from iceberg_pyspark.spec.transforms import BucketTransform, apply_transform, bucket_hash
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)

MOMENT = 1_510_871_468_000_000  # 2017-11-16T22:31:08


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (BooleanType(), True, 1392991556),
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (FloatType(), 1.0, -142385009),
        (DoubleType(), 1.0, -142385009),
        (FloatType(), 0.0, 1669671676),
        (FloatType(), -0.0, 1669671676),
        (DoubleType(), -0.0, 1669671676),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DateType(), 17486, -653330422),
        (TimeType(), 81_068_000_000, -662762989),
        (TimestampType(), MOMENT, -2047944441),
        (TimestampType(), MOMENT + 1, -1207196810),
        (TimestamptzType(), MOMENT, -2047944441),
        (TimestamptzType(), MOMENT + 1, -1207196810),
        (TimestampNsType(), MOMENT * 1000, -2047944441),
        (TimestampNsType(), MOMENT * 1000 + 1, -2047944441),
        (TimestampNsType(), MOMENT * 1000 + 1000, -1207196810),
        (TimestamptzNsType(), MOMENT * 1000 + 1001, -1207196810),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
        (BinaryType(), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_hash_of_the_specification(type_: Type, value: Any, expected: int) -> None:
    """docs/conformance.md 51."""
    assert bucket_hash(type_, value) == expected


@given(st.binary(max_size=64))
def test_murmur3_equals_the_reference_library(data: bytes) -> None:
    assert murmur3_32(data) == mmh3.hash(data)


def test_a_negative_hash_gives_a_bucket_from_zero_up() -> None:
    """docs/conformance.md 52."""
    assert bucket_hash(DateType(), 17486) < 0
    assert apply_transform(BucketTransform(16), DateType(), 17486) == (-653330422 & 0x7FFFFFFF) % 16


def test_null_has_no_bucket_and_zero_is_a_value() -> None:
    """docs/conformance.md 52."""
    assert apply_transform(BucketTransform(16), LongType(), None) is None
    assert apply_transform(BucketTransform(1), LongType(), 0) == 0
