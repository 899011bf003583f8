"""Bounds in their own types have the bytes of single values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestamptzType,
    TimeType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.storage.bound_bytes import bound_bytes

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
def test_they_are_those_of_the_value(name: str, data: st.DataObject) -> None:
    type_, arrow_type, values = CASES[name]
    drawn = data.draw(st.lists(st.none() | values, max_size=5))
    if pa.types.is_temporal(arrow_type):
        width = pa.int32() if arrow_type == pa.date32() else pa.int64()
        bounds = pa.array(drawn, width).view(arrow_type)
    else:
        bounds = pa.array(drawn, arrow_type)
    expected = [None if value is None else value_to_bytes(type_, value) for value in drawn]
    assert bound_bytes(bounds).to_pylist() == expected


def test_a_slice_has_its_own_bounds() -> None:
    assert bound_bytes(pa.array([1, 2, None])[1:]).to_pylist() == [b"\x02" + bytes(7), None]


def test_times_of_milliseconds_are_microseconds() -> None:
    noon = pa.array([dt.time(0, 0, 1)], pa.time32("ms"))
    assert bound_bytes(noon).to_pylist() == [(1_000_000).to_bytes(8, "little")]


def test_a_struct_has_no_bytes() -> None:
    with pytest.raises(TypeError, match="struct"):
        bound_bytes(pa.array([{"x": 1}]))
