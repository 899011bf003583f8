"""Partition paths of dates and timestamps outside the range of Python's calendar."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    human_value,
)
from iceberg_pyspark.spec.types import DateType, TimestampType, Type

MICROS_PER_DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("transform", "source", "value", "text"),
    [
        (IdentityTransform(), DateType(), 2_932_897, "10000-01-01"),
        (IdentityTransform(), DateType(), -719_163, "0000-12-31"),
        (DayTransform(), DateType(), -719_529, "-001-12-31"),
        (HourTransform(), TimestampType(), 2_932_897 * 24 + 5, "10000-01-01-05"),
        (
            IdentityTransform(),
            TimestampType(),
            2_932_897 * MICROS_PER_DAY + 1,
            "+10000-01-01T00:00:00.000001",
        ),
        (
            IdentityTransform(),
            TimestampType(),
            -719_529 * MICROS_PER_DAY,
            "-0001-12-31T00:00:00",
        ),
    ],
)
def test_years_beyond_the_calendar_have_a_text(
    transform: Transform, source: Type, value: int, text: str
) -> None:
    assert human_value(transform, source, value) == text


@given(st.dates())
def test_dates_within_the_calendar_read_as_python_writes_them(day: date) -> None:
    days = (day - date(1970, 1, 1)).days
    assert human_value(IdentityTransform(), DateType(), days) == day.isoformat()


@given(st.datetimes())
def test_seconds_within_the_calendar_read_as_python_writes_them(moment: datetime) -> None:
    whole = moment.replace(microsecond=0, tzinfo=timezone.utc)
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    micros = (whole - epoch) // timedelta(microseconds=1)
    text = human_value(IdentityTransform(), TimestampType(), micros)
    assert text == whole.replace(tzinfo=None).isoformat()
