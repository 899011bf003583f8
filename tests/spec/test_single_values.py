"""Appendix D: single values as bytes and as JSON (docs/conformance.md 41, 45, 76)."""

import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from iceberg_pyspark.spec.values import (
    decimal_of,
    unscaled_value,
    value_from_bytes,
    value_from_json,
    value_to_bytes,
    value_to_json,
)

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("type_", "value", "hex_bytes"),
    [
        (BooleanType(), False, "00"),
        (BooleanType(), True, "01"),
        (IntegerType(), 34, "22000000"),
        (LongType(), -1, "ffffffffffffffff"),
        (FloatType(), 1.0, "0000803f"),
        (DoubleType(), 1.0, "000000000000f03f"),
        (DecimalType(9, 2), Decimal("0.00"), "00"),
        (DecimalType(9, 2), Decimal("1.27"), "7f"),
        (DecimalType(9, 2), Decimal("1.28"), "0080"),
        (DecimalType(9, 2), Decimal("-1.28"), "80"),
        (DecimalType(9, 2), Decimal("-1.29"), "ff7f"),
        (DateType(), 17_486, "4e440000"),
        (StringType(), "é", "c3a9"),
        (UUIDType(), UUID.bytes, UUID.hex),
        (FixedType(2), b"\x01\x02", "0102"),
        (BinaryType(), b"", ""),
    ],
)
def test_binary_form(type_: Type, value: Any, hex_bytes: str) -> None:
    """docs/conformance.md 45."""
    assert value_to_bytes(type_, value).hex() == hex_bytes
    assert value_from_bytes(type_, bytes.fromhex(hex_bytes)) == value


@pytest.mark.parametrize(
    ("type_", "hex_bytes", "expected"),
    [
        (LongType(), "ffffffff", -1),
        (DoubleType(), "0000803f", 1.0),
        (TimestampType(), "01000000", 86_400_000_000),
        (TimestampNsType(), "ffffffff", -86_400_000_000_000),
        (DecimalType(38, 2), "0000000080", Decimal("1.28")),
        (DecimalType(38, 2), "ffff80", Decimal("-1.28")),
    ],
)
def test_widths_from_before_a_promotion_are_read(
    type_: Type, hex_bytes: str, expected: Any
) -> None:
    """docs/conformance.md 41."""
    assert value_from_bytes(type_, bytes.fromhex(hex_bytes)) == expected


@pytest.mark.parametrize("type_", [IntegerType(), LongType(), DoubleType(), TimestamptzType()])
def test_a_wrong_width_is_refused(type_: Type) -> None:
    with pytest.raises(InvalidMetadataError, match="is not a binary"):
        value_from_bytes(type_, b"\x01\x02\x03")


@pytest.mark.parametrize("type_", [IntegerType(), LongType(), DoubleType(), DecimalType(9, 2)])
def test_empty_bytes_are_not_a_number(type_: Type) -> None:
    with pytest.raises(InvalidMetadataError, match="is not a binary"):
        value_from_bytes(type_, b"")


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (BooleanType(), True, True),
        (LongType(), 2**60, 2**60),
        (DecimalType(9, 2), Decimal("14.20"), "14.20"),
        (DecimalType(9, 0), Decimal("2"), "2"),
        (DateType(), 17_486, "2017-11-16"),
        (TimeType(), 81_068_123_456, "22:31:08.123456"),
        (TimestampType(), 1_510_871_468_123_456, "2017-11-16T22:31:08.123456"),
        (TimestamptzType(), 1_510_871_468_123_456, "2017-11-16T22:31:08.123456+00:00"),
        (TimestampNsType(), 1_510_871_468_123_456_789, "2017-11-16T22:31:08.123456789"),
        (TimestamptzNsType(), 1_510_871_468_000_000_001, "2017-11-16T22:31:08.000000001+00:00"),
        (UUIDType(), UUID.bytes, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (FixedType(2), b"\x00\xff", "00ff"),
        (BinaryType(), b"\x00\xff", "00ff"),
    ],
)
def test_json_form(type_: Type, value: Any, text: Any) -> None:
    """docs/conformance.md 76."""
    assert value_to_json(type_, value) == text
    assert value_from_json(type_, text) == value


def test_json_form_of_nested_values() -> None:
    """docs/conformance.md 76."""
    struct = StructType(
        (
            NestedField(field_id=1, name="a", type=IntegerType()),
            NestedField(field_id=2, name="b", type=StringType()),
        )
    )
    assert value_to_json(struct, {1: 1, 2: "bar"}) == {"1": 1, "2": "bar"}
    assert value_from_json(struct, {"1": 1}) == {1: 1}
    list_type = ListType(element_id=3, element_type=DateType())
    assert value_to_json(list_type, [0, None]) == ["1970-01-01", None]
    mapped = MapType(key_id=4, key_type=StringType(), value_id=5, value_type=LongType())
    assert value_to_json(mapped, [("a", 1)]) == {"keys": ["a"], "values": [1]}
    assert value_from_json(mapped, {"keys": ["a"], "values": [1]}) == [("a", 1)]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (TimestampType(), "2017-11-16T22:31:08+00:00"),
        (TimestamptzType(), "2017-11-16T22:31:08"),
        (FixedType(2), "00"),
        (IntegerType(), True),
        (DecimalType(9, 2), "1.234"),
    ],
)
def test_json_of_another_shape_is_refused(type_: Type, text: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        value_from_json(type_, text)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_survive_both_forms_beyond_the_context_precision(
    unscaled: int, scale: int
) -> None:
    value = decimal_of(unscaled, scale)
    assert unscaled_value(value) == unscaled
    type_ = DecimalType(38, scale)
    assert value_from_bytes(type_, value_to_bytes(type_, value)) == value
    assert value_from_json(type_, value_to_json(type_, value)) == value
