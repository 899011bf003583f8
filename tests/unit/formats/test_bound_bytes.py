"""Typed bounds have the same bytes as single values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.expressions.evaluation import decode_bound
from iceberg_pyspark.formats.encoding.bound_bytes import bound_bytes, typed_bounds
from iceberg_pyspark.formats.encoding.physical_types import (
    logical_array,
    logical_type,
    physical_type,
    physical_values,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestamptzType,
    TimeType,
    VariantType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.strategies import PRIMITIVE_TYPES, literals, nullable

INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
CASES: dict[str, tuple[PrimitiveType, pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (BooleanType(), pa.bool_(), st.booleans()),
    "int": (IntegerType(), pa.int32(), INT),
    "long": (LongType(), pa.int64(), LONG),
    "float": (FloatType(), pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (DoubleType(), pa.float64(), st.floats(allow_nan=False)),
    "decimal": (
        DecimalType(precision=20, scale=3),
        pa.decimal128(20, 3),
        st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-3)),
    ),
    "date": (DateType(), pa.date32(), INT),
    "time": (TimeType(), pa.time64("us"), st.integers(0, 86_399_999_999)),
    "timestamptz": (TimestamptzType(), pa.timestamp("us", "UTC"), LONG),
    "timestamp_ns": (TimestampNsType(), pa.timestamp("ns"), LONG),
    "string": (StringType(), pa.string(), st.text(st.characters(codec="utf-8"))),
    "binary": (BinaryType(), pa.binary(), st.binary()),
    "fixed": (FixedType(length=3), pa.binary(3), st.binary(min_size=3, max_size=3)),
}


@pytest.mark.parametrize("name", list(CASES))
@given(data=st.data())
def test_bytes_of_bounds_equal_value_to_bytes(name: str, data: st.DataObject) -> None:
    type_, arrow_type, values = CASES[name]
    samples = data.draw(st.lists(st.none() | values, max_size=5))
    if pa.types.is_temporal(arrow_type):
        width = pa.int32() if arrow_type == pa.date32() else pa.int64()
        bounds = pa.array(samples, width).view(arrow_type)
    else:
        bounds = pa.array(samples, arrow_type)
    expected = [None if value is None else value_to_bytes(type_, value) for value in samples]
    assert bound_bytes(bounds).to_pylist() == expected


def test_a_slice_has_its_own_bounds() -> None:
    assert bound_bytes(pa.array([1, 2, None])[1:]).to_pylist() == [b"\x02" + bytes(7), None]


@pytest.mark.parametrize(
    "type_", [pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2)]
)
def test_decimals_of_any_width_and_slices_of_them_have_their_own_bounds(type_: pa.DataType) -> None:
    decimals = pa.array([Decimal("9.99"), Decimal("1.28"), None, Decimal("-1.28")], type_)
    assert bound_bytes(decimals[1:]).to_pylist() == [b"\x00\x80", None, b"\x80"]


def test_decimals_of_more_digits_than_a_type_has_have_no_bytes() -> None:
    with pytest.raises(TypeError, match="decimal256"):
        bound_bytes(pa.array([Decimal(1)], pa.decimal256(39, 0)))


def test_times_of_milliseconds_are_microseconds() -> None:
    noon = pa.array([dt.time(0, 0, 1)], pa.time32("ms"))
    assert bound_bytes(noon).to_pylist() == [(1_000_000).to_bytes(8, "little")]


def test_a_struct_has_no_bytes() -> None:
    with pytest.raises(TypeError, match="struct"):
        bound_bytes(pa.array([{"x": 1}]))


# --- reading --------------------------------------------------------------------------------------


def values_of(bounds: pa.Array, type_: PrimitiveType) -> list[Any]:
    """Return the bounds as values in the form of `spec/values.py`."""
    assert bounds.type == logical_type(type_)
    storage = bounds.storage if isinstance(bounds, pa.ExtensionArray) else bounds
    values: list[Any] = physical_values(storage, type_).to_pylist()
    return values


@pytest.mark.parametrize("type_", PRIMITIVE_TYPES, ids=str)
@given(data=st.data())
def test_bounds_of_a_type_are_back_in_their_bytes(
    type_: PrimitiveType, data: st.DataObject
) -> None:
    samples = data.draw(st.lists(st.none() | literals(type_), max_size=5))
    bounds = [None if value is None else value_to_bytes(type_, value) for value in samples]
    assert bound_bytes(typed_bounds(bounds, type_)).to_pylist() == bounds


@pytest.mark.parametrize("type_", PRIMITIVE_TYPES, ids=str)
@given(data=st.data())
def test_bytes_are_the_values_that_each_of_them_is_alone(
    type_: PrimitiveType, data: st.DataObject
) -> None:
    of_type = literals(type_).map(lambda value: value_to_bytes(type_, value))
    other = st.binary(max_size=9) | st.binary(min_size=15, max_size=18)
    encoded_bounds = data.draw(st.lists(st.one_of(of_type, of_type, st.none(), other), max_size=5))
    if isinstance(type_, FixedType):
        encoded_bounds = [b for b in encoded_bounds if b is None or len(b) == type_.length]
    expected = [decode_bound(type_, bound) for bound in encoded_bounds]
    assert values_of(typed_bounds(encoded_bounds, type_), type_) == expected


@pytest.mark.parametrize("type_", [VariantType(), GeometryType(), GeographyType()], ids=str)
def test_bounds_of_nested_types_raise_type_error(type_: PrimitiveType) -> None:
    with pytest.raises(TypeError, match=str(type_)):
        typed_bounds([b"x"], type_)


@pytest.mark.parametrize("type_", PRIMITIVE_TYPES, ids=str)
@given(data=st.data())
def test_values_in_the_types_of_parquet_are_the_values_that_they_were(
    type_: PrimitiveType, data: st.DataObject
) -> None:
    samples = data.draw(st.lists(nullable(type_), max_size=5))
    expected = pa.array(samples, physical_type(type_)).to_pylist()
    # Compare the text, because NaN does not equal itself.
    assert list(map(repr, values_of(logical_array(samples, type_), type_))) == list(
        map(repr, expected)
    )
