"""Counts in text form may have any content, because other writers may write anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.spec.property_types import count_in

MAX_COUNT = 2**63 - 1


@given(st.integers(0, MAX_COUNT))
def test_every_count_of_64_bits_is_read(count: int) -> None:
    assert count_in(str(count)) == count


@given(st.one_of(st.integers(max_value=-1), st.integers(min_value=MAX_COUNT + 1)))
def test_number_out_of_range_is_not_a_count(number: int) -> None:
    assert count_in(str(number)) is None


@given(st.text(st.characters(categories=["Nd", "No"]) | st.sampled_from("0123456789+-_. ")))
def test_only_plain_digits_are_a_count(text: str) -> None:
    count = count_in(text)
    assert count is None or (set(text) <= set("0123456789") and count == int(text))


@pytest.mark.parametrize(
    "text", ["9" * 5000, "9223372036854775808", "٣", "²", "1_0", "+1", " 1", ""]
)
def test_text_that_is_not_a_java_number_is_not_a_count(text: str) -> None:
    assert count_in(text) is None
