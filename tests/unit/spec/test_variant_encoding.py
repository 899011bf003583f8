"""Encoded variants, compared with Spark's own Python implementation."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from decimal import Context, Decimal, Rounded, localcontext
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.values import decimal_of
from iceberg_pyspark.spec.variant_encoding import (
    FieldNames,
    comparable_of,
    encode_decimal,
    encode_number,
    encode_object,
    python_of,
    variant_of,
    variant_of_json,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=70)
DECIMALS = st.builds(decimal_of, st.integers(1 - 10**38, 10**38 - 1), st.integers(0, 38))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | DECIMALS
    | TEXTS
    | st.binary(max_size=70)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(dt.timezone.utc))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def in_spark(metadata: bytes, value: bytes) -> Any:
    # Spark multiplies decimals, which rounds to the digits of the context: 28 by default
    with localcontext(Context(prec=38)):
        return VariantVal(value, metadata).toPython()


@given(VALUES)
def test_spark_reads_what_is_encoded_and_it_comes_back(value: Any) -> None:
    with localcontext(Context(prec=1, traps=[Rounded])):
        metadata, encoded = variant_of(value)
        back = python_of(metadata, encoded)
    assert in_spark(metadata, encoded) == value
    assert back == value
    assert repr(back).count("Decimal") == _decimals(value)


@pytest.mark.parametrize(
    "value",
    [
        dt.time(23, 59, 59, 999999),
        UUID(int=5),
        {str(i): i for i in range(300)},
        [*range(300)],
        {"a" * 70_000: "b" * 70_000},
        Decimal("1E+5"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_wide_and_rare_values_come_back(value: Any) -> None:
    assert python_of(*variant_of(value)) == value


JSON_NUMBERS = (
    "0",
    "-7",
    "300",
    "1.50",
    "-0.001",
    "1e3",
    "12345678901234567890",
    "9" * 38,
    "9" * 40,
    "1.0",
)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**66), 2**66) | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    )
)
def test_json_is_encoded_as_spark_does(value: Any) -> None:
    check_json(json.dumps(value))


@pytest.mark.parametrize("text", JSON_NUMBERS)
def test_numbers_of_json_have_the_type_that_spark_gives_them(text: str) -> None:
    check_json(text)


def check_json(text: str) -> None:
    spark = VariantVal.parseJson(text)
    metadata, value = variant_of_json(text)
    ours, theirs = in_spark(metadata, value), in_spark(spark.metadata, spark.value)
    assert (type(ours), ours) == (type(theirs), theirs)
    assert python_of(spark.metadata, spark.value) == theirs


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "not a JSON text"), ('{"a": 1, "a": 2}', "a name twice"), ("NaN", "not a number")],
)
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        variant_of_json(text)


@pytest.mark.parametrize(
    ("value", "why"),
    [({1: 2}, "names"), ({1, 2}, "type set"), (Decimal("9" * 39), "38 digits"), (10**39, "38")],
    ids=str,
)
def test_other_objects_are_refused(value: Any, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why):
        variant_of(value)


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_damaged_bytes_never_raise_anything_else(metadata: bytes, value: bytes) -> None:
    with suppress(InvalidMetadataError, UnsupportedFeatureError):
        python_of(metadata, value)


def test_a_cut_value_is_damaged() -> None:
    metadata, value = variant_of({"a": "text"})
    with pytest.raises(InvalidMetadataError, match="damaged"):
        python_of(metadata, value[:-1])


def _decimals(value: Any) -> int:
    """Return how many numbers are stored as decimals, which integers beyond 64 bits are too."""
    if isinstance(value, dict):
        return sum(map(_decimals, value.values()))
    if isinstance(value, list):
        return sum(map(_decimals, value))
    return isinstance(value, Decimal) or (isinstance(value, int) and not -(2**63) <= value < 2**63)


def _typed(value: Any) -> Any:
    """Return the value in a form in which equality is that of variants, also of their types."""
    match value:
        case dict():
            return {n: _typed(v) for n, v in value.items()}
        case list():
            return [_typed(v) for v in value]
        case bool() | None | str() | bytes():
            return (type(value), value)
        case int() | Decimal():
            return ("number", Decimal(value))
        case float():
            return (float, str(value))
        case dt.datetime():
            return (value.tzinfo is None, value)
    return (type(value), value)


@given(VALUES, VALUES)
def test_comparable_bytes_are_equal_exactly_for_equal_variants(one: Any, other: Any) -> None:
    same = comparable_of(*variant_of(one)) == comparable_of(*variant_of(other))
    assert same == (_typed(one) == _typed(other))


def test_numbers_are_compared_whatever_their_widths_and_objects_whatever_their_order() -> None:
    empty = b"\x11\x00\x00"
    numbers = [
        *(encode_number(width, 20) for width in range(3, 7)),
        *(encode_decimal(Decimal("20.00"), 2, p) for p in (9, 18, 38)),
    ]
    assert len({comparable_of(empty, n) for n in numbers}) == 1
    assert comparable_of(empty, encode_decimal(Decimal("2.01"), 2, 9)) != comparable_of(
        empty, encode_number(4, 201)
    )
    parts = {b"a": numbers[0], b"b": numbers[1]}
    objects = []
    for order in (parts, dict(reversed(parts.items()))):
        names = FieldNames.sorted([*order])
        objects.append(comparable_of(names.encoded(), encode_object(order, names)))
    assert objects[0] == objects[1] != comparable_of(empty, numbers[0])
