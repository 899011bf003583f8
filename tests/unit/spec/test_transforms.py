"""Transforms of single values: floors, truncation, text forms."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_path
from iceberg_pyspark.spec.schema import Schema
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
    apply_transform,
    civil_from_days,
    human_value,
    parse_transform,
    result_type,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
)

DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("source", "width", "value", "expected"),
    [
        (IntegerType(), 10, 1, 0),
        (IntegerType(), 10, -1, -10),
        (LongType(), 10, 11, 10),
        (IntegerType(), 10, -(2**31), -2147483650),
        (DecimalType(9, 2), 50, Decimal("10.65"), Decimal("10.50")),
        (DecimalType(9, 2), 50, Decimal("-10.65"), Decimal("-11.00")),
        (StringType(), 3, "iceberg", "ice"),
        (StringType(), 2, "\U0001f9ca\U0001f427\U0001f43b", "\U0001f9ca\U0001f427"),
        (BinaryType(), 3, b"\x01\x02\x03\x04", b"\x01\x02\x03"),
    ],
)
def test_truncate(source: Type, width: int, value: Any, expected: Any) -> None:
    # docs/conformance.md 53, 54: the smallest int must not wrap around.
    assert apply_transform(TruncateTransform(width), source, value) == expected


@pytest.mark.parametrize("source", [TimestampType(), TimestamptzType()])
def test_time_transforms_floor_before_1970(source: Type) -> None:
    # docs/conformance.md 55: 1969-12-31T23:59:59.999999
    for transform in (YearTransform(), MonthTransform(), DayTransform(), HourTransform()):
        assert apply_transform(transform, source, -1) == -1
        assert apply_transform(transform, source, 0) == 0


def test_nanoseconds_and_dates_agree_with_microseconds() -> None:
    for days in (-719_162, -1, 0, 59, 17_486, 2_932_896):
        for transform in (YearTransform(), MonthTransform(), DayTransform()):
            expected = apply_transform(transform, DateType(), days)
            assert apply_transform(transform, TimestampType(), days * DAY_US) == expected
            assert apply_transform(transform, TimestampNsType(), days * DAY_US * 1000) == expected


@given(st.dates())
def test_civil_calendar_equals_datetime(day: Any) -> None:
    days = day.toordinal() - 719_163
    assert civil_from_days(days) == (day.year, day.month)


def test_hour_of_a_date_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="hour is not defined for date"):
        apply_transform(HourTransform(), DateType(), 1)


@pytest.mark.parametrize(
    ("transform", "source", "value", "expected"),
    [
        (YearTransform(), DateType(), 47, "2017"),
        (MonthTransform(), DateType(), -1, "1969-12"),
        (DayTransform(), TimestampType(), 17_486, "2017-11-16"),
        (HourTransform(), TimestampType(), 17_486 * 24 + 22, "2017-11-16-22"),
        (HourTransform(), TimestampType(), -1, "1969-12-31-23"),
        (BucketTransform(8), LongType(), 3, "3"),
        (IdentityTransform(), StringType(), None, "null"),
        (IdentityTransform(), BinaryType(), b"\x00\x01\x02", "AAEC"),
        (IdentityTransform(), DecimalType(4, 2), Decimal("1.20"), "1.20"),
        (IdentityTransform(), TimestampType(), 1_510_871_468_001_001, "2017-11-16T22:31:08.001001"),
        (
            IdentityTransform(),
            TimestamptzType(),
            1_510_871_468_000_000,
            "2017-11-16T22:31:08+00:00",
        ),
        (IdentityTransform(), TimestampType(), 60_120_000, "1970-01-01T00:01:00.12"),
        (IdentityTransform(), TimestampNsType(), 100, "1970-01-01T00:00:00.0000001"),
        (IdentityTransform(), TimestamptzNsType(), 0, "1970-01-01T00:00:00+00:00"),
        (IdentityTransform(), TimeType(), 36_775_038_194, "10:12:55.038194"),
        (IdentityTransform(), TimeType(), 120_000, "00:00:00.120"),
        (IdentityTransform(), TimeType(), 60_000_000, "00:01"),
        (IdentityTransform(), DecimalType(9, 7), Decimal("1E-7"), "1E-7"),
        (IdentityTransform(), DecimalType(9, 7), Decimal("0E-7"), "0E-7"),
        (IdentityTransform(), DecimalType(9, 7), Decimal("0.0000012"), "0.0000012"),
        (VoidTransform(), LongType(), None, "null"),
    ],
)
def test_human_values(transform: Transform, source: Type, value: Any, expected: str) -> None:
    assert human_value(transform, source, value) == expected


def test_parse_and_print_round_trip() -> None:
    for text in ("identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void"):
        assert str(parse_transform(text)) == text
    assert parse_transform("zorder[3]") == UnknownTransform("zorder[3]")
    with pytest.raises(InvalidMetadataError, match="must be 1 to"):
        parse_transform("bucket[0]")


def test_result_types() -> None:
    assert result_type(BucketTransform(4), StringType()) == IntegerType()
    assert result_type(DayTransform(), TimestampType()) == DateType()
    assert result_type(TruncateTransform(4), DecimalType(9, 2)) == DecimalType(9, 2)


def test_partition_path_is_encoded_as_java_does() -> None:
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="s p", type=StringType()),
            NestedField(field_id=2, name="ts", type=TimestampType()),
        )
    )
    spec = PartitionSpec(
        spec_id=1,
        fields=(
            PartitionField(
                source_ids=(1,), field_id=1000, name="s p", transform=IdentityTransform()
            ),
            PartitionField(source_ids=(2,), field_id=1001, name="ts_day", transform=DayTransform()),
        ),
    )
    assert partition_path(spec, [schema], ("a/b ~*é", 1)) == (
        "s+p=a%2Fb+%7E*%C3%A9/ts_day=1970-01-02"
    )
    assert partition_path(spec, [schema], (None, None)) == "s+p=null/ts_day=null"


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (DoubleType(), float("nan"), "NaN"),
        (DoubleType(), float("-inf"), "-Infinity"),
        (DoubleType(), -0.0, "-0.0"),
        (DoubleType(), 0.001, "0.001"),
        (DoubleType(), 0.00099, "9.9E-4"),
        (DoubleType(), 9999999.0, "9999999.0"),
        (DoubleType(), 1e7, "1.0E7"),
        (DoubleType(), -1.5e300, "-1.5E300"),
        (DoubleType(), 5e-324, "4.9E-324"),
        (DoubleType(), 1.7976931348623157e308, "1.7976931348623157E308"),
        (DoubleType(), 123.456, "123.456"),
        (FloatType(), 0.10000000149011612, "0.1"),
        (FloatType(), 3.4028234663852886e38, "3.4028235E38"),
        (FloatType(), 1.401298464324817e-45, "1.4E-45"),
    ],
)
def test_floats_are_shown_as_java_shows_them(type_: Type, value: float, text: str) -> None:
    assert human_value(IdentityTransform(), type_, value) == text
