"""Masks over Arrow columns equal the evaluation of the predicate on each row."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.arrow.read.row_filter import compile_row_mask
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Predicate,
)
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
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from tests.amounts import FULL_WORK
from tests.support.strategies import PRIMITIVE_TYPES, columns, predicates, rows

ARROW_TYPES: dict[type[Type], list[pa.DataType]] = {
    BooleanType: [pa.bool_()],
    IntegerType: [pa.int32()],
    LongType: [pa.int64()],
    FloatType: [pa.float32()],
    DoubleType: [pa.float64()],
    DateType: [pa.date32()],
    TimeType: [pa.time64("us")],
    TimestampType: [pa.timestamp("us"), pa.int64()],
    TimestamptzType: [pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")],
    TimestampNsType: [pa.timestamp("ns")],
    TimestamptzNsType: [pa.timestamp("ns", "UTC")],
    StringType: [pa.string(), pa.large_string(), pa.string_view()],
    UUIDType: [pa.binary(16), pa.uuid()],
    FixedType: [pa.binary(2)],
    BinaryType: [pa.binary(), pa.large_binary(), pa.binary_view()],
}


def to_arrow(values: list[Any], arrow_type: pa.DataType) -> pa.Array:
    if isinstance(arrow_type, pa.UuidType):
        return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, pa.binary(16)))
    if pa.types.is_temporal(arrow_type):
        plain = pa.int32() if arrow_type == pa.date32() else pa.int64()
        return pa.array(values, plain).cast(arrow_type)
    return pa.array(values, arrow_type)


@st.composite
def cases(
    draw: DrawFn,
) -> tuple[Predicate, list[Mapping[int, Any]], dict[int, pa.Array]]:
    bound = columns(*draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=2)))
    table = draw(st.lists(rows(bound), max_size=5))
    arrays = {}
    for c in bound:
        assert not isinstance(c.type, StructType)
        if isinstance(c.type, DecimalType):
            choices = [pa.decimal128(c.type.precision, c.type.scale)]
        else:
            choices = ARROW_TYPES[type(c.type)]
        arrays[c.field_id] = to_arrow(
            [r[c.field_id] for r in table], draw(st.sampled_from(choices))
        )
    return draw(predicates(bound)), table, arrays


@given(cases())
@settings(max_examples=settings().max_examples * (4 if FULL_WORK else 2))
def test_the_mask_equals_evaluation_on_every_row(
    case: tuple[Predicate, list[Mapping[int, Any]], dict[int, pa.Array]],
) -> None:
    predicate, table, arrays = case
    mask = compile_row_mask(predicate)(len(table), arrays.__getitem__)
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [evaluate(predicate, row) for row in table]


def masked(predicate: Predicate, array: pa.Array) -> list[bool | None]:
    mask: list[bool | None] = compile_row_mask(predicate)(len(array), lambda _: array).to_pylist()
    return mask


def test_nan_is_above_every_value_and_equal_to_none() -> None:
    [column] = columns(DoubleType())
    array = pa.array([float("nan"), 6.0, 1.0, None])
    assert masked(BoundLiteral("gt", column, 5.0), array) == [True, True, False, None]
    assert masked(BoundLiteral("lt_eq", column, float("inf")), array) == [False, True, True, None]
    assert masked(BoundLiteral("not_eq", column, 6.0), array) == [True, False, True, None]
    assert masked(BoundUnary("not_nan", column), array) == [False, True, True, True]


def test_zero_in_a_set_finds_negative_zero() -> None:
    [column] = columns(FloatType())
    array = pa.array([0.0, -0.0, 1.0], pa.float32())
    for members in (frozenset((0.0, 2.0)), frozenset((-0.0, 2.0))):
        assert masked(BoundSet("in", column, members), array) == [True, True, False]
        assert masked(BoundSet("not_in", column, members), array) == [False, False, True]


def test_columns_of_files_written_before_a_promotion_are_compared_as_the_new_type() -> None:
    [long, double] = columns(LongType(), DoubleType())
    assert masked(BoundLiteral("lt", long, 2**40), pa.array([1, None], pa.int32())) == [True, None]
    assert masked(BoundSet("in", long, frozenset((1, 2**40))), pa.array([1], pa.int32())) == [True]
    assert masked(BoundLiteral("lt", double, 0.1), pa.array([0.1], pa.float32())) == [False]


def test_milliseconds_are_compared_as_microseconds() -> None:
    [column] = columns(TimestampType())
    array = pa.array([1], pa.int64()).cast(pa.timestamp("ms"))
    assert masked(BoundLiteral("eq", column, 1000), array) == [True]


def test_uuids_compare_unsigned_and_dictionaries_are_decoded() -> None:
    [column, text] = columns(UUIDType(), StringType())
    values = [uuid.UUID(int=1).bytes, uuid.UUID(int=2**127).bytes]
    array = pa.array(values, pa.binary(16))
    assert masked(BoundLiteral("gt", column, b"\x7f" * 16), array) == [False, True]
    encoded = pa.array(["a", "b", None]).dictionary_encode()
    assert masked(BoundLiteral("eq", text, "a"), encoded) == [True, False, None]


def test_structs_can_be_tested_for_null() -> None:
    struct = BoundColumn(field_id=1, name="s", type=StructType(()), required=False)
    array = pa.array([{"x": None}, None])
    assert masked(BoundUnary("is_null", struct), array) == [False, True]


def test_constants_need_no_column() -> None:
    assert masked(AlwaysTrue(), pa.array([1, 2])) == [True, True]
    assert masked(AlwaysFalse(), pa.array([1, 2])) == [False, False]


def test_an_unbound_predicate_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'x' is not bound"):
        compile_row_mask(LiteralPredicate("eq", "x", 1))
