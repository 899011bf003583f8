"""Encoded variants, compared with Spark's own Python implementation."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from decimal import Decimal
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
from iceberg_pyspark.spec.variant_encoding import python_of, variant_of, variant_of_json

TEXTS = st.text(st.characters(codec="utf-8"), max_size=70)
DECIMALS = st.decimals(-(10**20), 10**20, allow_nan=False).filter(
    lambda d: len(d.as_tuple().digits) <= 38 and -38 <= int(d.as_tuple().exponent) <= 0
)
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
    return VariantVal(value, metadata).toPython()


@given(VALUES)
def test_spark_reads_what_is_encoded_and_it_comes_back(value: Any) -> None:
    metadata, encoded = variant_of(value)
    assert in_spark(metadata, encoded) == value
    back = python_of(metadata, encoded)
    assert back == value
    assert repr(back).count("Decimal") == repr(value).count("Decimal") or "int" in repr(type(value))


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


JSON_NUMBERS = ("0", "-7", "300", "1.50", "-0.001", "1e3", "12345678901234567890", "9" * 40, "1.0")


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
    ours = in_spark(metadata, value)
    assert (type(ours), ours) == (type(spark.toPython()), spark.toPython())
    assert python_of(spark.metadata, spark.value) == spark.toPython()


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
