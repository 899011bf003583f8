from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.arrow.arrow_schemas import arrow_type, scalar_of, value_of
from iceberg_pyspark.spec.types import (
    DateType,
    IntegerType,
    ListType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
)
from tests.support.scan_tasks import optional
from tests.support.strategies import PRIMITIVE_TYPES, nullable

POINT = StructType(
    (
        optional(1, "x", IntegerType(), initial_default=7),
        optional(2, "y", ListType(element_id=3, element_type=TimestampType())),
    )
)


@given(st.data())
def test_every_primitive_value_round_trips(data: st.DataObject) -> None:
    type_: PrimitiveType = data.draw(st.sampled_from(PRIMITIVE_TYPES))
    value: Any = data.draw(nullable(type_))
    scalar = scalar_of(type_, value)
    assert scalar.type == arrow_type(type_)
    back = value_of(type_, scalar)
    assert back == value or (value != value and back != back)


def test_nested_values_come_back() -> None:
    type_ = MapType(key_id=4, key_type=StringType(), value_id=5, value_type=POINT)
    value = [("a", {1: 1, 2: [0, None]}), ("b", None)]
    assert value_of(type_, scalar_of(type_, value)) == value


def test_children_missing_in_a_struct_take_their_own_default() -> None:
    """docs/conformance.md 69."""
    assert value_of(POINT, scalar_of(POINT, {})) == {1: 7, 2: None}
    assert value_of(POINT, scalar_of(POINT, {1: None})) == {1: None, 2: None}
    assert not scalar_of(POINT, None).is_valid


def test_dates_are_days() -> None:
    assert str(scalar_of(DateType(), -1)) == "1969-12-31"
