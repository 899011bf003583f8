"""Literals of any kind are compared exactly with columns of any type, or are refused."""

from __future__ import annotations

import math
import operator
import uuid
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind, bind_column
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Not,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from tests.support.strategies import columns, nullable, predicates, rows, schema_of, values

NAN = float("nan")
CET = timezone(timedelta(hours=1))


def bound(type_: Type, op: Any, literal: Any, *, required: bool = False) -> Any:
    """Bind a comparison of one column; return (op, literal), or the constant or test it becomes."""
    schema = Schema(
        fields=(NestedField(field_id=1, name="c", type=type_, required=required),),
    )
    predicate: Predicate
    if op in ("in", "not_in"):
        predicate = SetPredicate(op, "c", literal)
    else:
        predicate = LiteralPredicate(op, "c", literal)
    outcome = bind(predicate, schema)
    match outcome:
        case BoundLiteral(op=found_op, literal=value):
            return found_op, value
        case BoundSet(op=found_op, literals=members):
            return found_op, members
        case BoundUnary(op=found_op):
            return found_op
        case AlwaysTrue() | AlwaysFalse():
            return isinstance(outcome, AlwaysTrue)
        case _:
            return outcome


@pytest.mark.parametrize(
    ("type_", "literal", "value"),
    [
        (BooleanType(), True, True),
        (IntegerType(), 5, 5),
        (IntegerType(), 5.0, 5),
        (IntegerType(), Decimal("5.00"), 5),
        (LongType(), np.int64(5), 5),
        (LongType(), 2**63 - 1, 2**63 - 1),
        (FloatType(), 1.5, 1.5),
        (FloatType(), 1, 1.0),
        (DoubleType(), Decimal("0.1"), 0.1),
        (DoubleType(), 10**400, math.inf),
        (DecimalType(9, 2), 5, Decimal("5.00")),
        (DecimalType(9, 2), 0.1, Decimal("0.10")),
        (DecimalType(9, 2), "1.5", Decimal("1.50")),
        (DateType(), date(1970, 1, 2), 1),
        (DateType(), "1970-01-02", 1),
        (DateType(), datetime(1970, 1, 2), 1),
        (TimeType(), time(0, 0, 1), 1_000_000),
        (TimeType(), "00:00:01.000001", 1_000_001),
        (TimestampType(), "1970-01-01 00:00:01", 1_000_000),
        (TimestampType(), "1970-01-01T00:00", 0),
        (TimestampType(), "1970-01-02", 86_400_000_000),
        (TimestampType(), date(1970, 1, 2), 86_400_000_000),
        (TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        (TimestamptzType(), "1970-01-01T01:00:00+01:00", 0),
        (TimestamptzType(), "1970-01-01T00:00:00Z", 0),
        (TimestamptzType(), datetime(1970, 1, 1, 1, tzinfo=CET), 0),
        (TimestampNsType(), "1970-01-01T00:00:00.000000001", 1),
        (StringType(), "abc", "abc"),
        (UUIDType(), "00000000-0000-0000-0000-000000000001", b"\x00" * 15 + b"\x01"),
        (UUIDType(), uuid.UUID(int=1), b"\x00" * 15 + b"\x01"),
        (UUIDType(), b"\x00" * 15 + b"\x01", b"\x00" * 15 + b"\x01"),
        (FixedType(2), b"ab", b"ab"),
        (BinaryType(), bytearray(b"ab"), b"ab"),
    ],
)
def test_literals_become_values_of_the_column(type_: Type, literal: Any, value: Any) -> None:
    outcome = bound(type_, "eq", literal)
    assert outcome == ("eq", value)
    assert type(outcome[1]) is type(value)
    if isinstance(value, Decimal):
        assert outcome[1].as_tuple().exponent == value.as_tuple().exponent


def test_a_zone_that_is_not_given_is_utc() -> None:
    naive = datetime(2026, 1, 1)
    aware = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert bound(TimestamptzType(), "eq", naive) == bound(TimestamptzType(), "eq", aware)
    assert bound(TimestamptzType(), "eq", "2026-01-01") == bound(TimestamptzType(), "eq", aware)
    assert bound(TimestampType(), "eq", aware) == bound(TimestampType(), "eq", naive)


BETWEEN = [
    (IntegerType(), 1.5, 1),
    (IntegerType(), Decimal("-0.5"), -1),
    (DecimalType(9, 2), Decimal("0.125"), Decimal("0.12")),
    (DecimalType(9, 2), -0.125, Decimal("-0.13")),
    (DecimalType(9, 2), Decimal("1e-1000000"), Decimal("0.00")),
    (DateType(), datetime(1970, 1, 2, 12), 1),
    (DateType(), datetime(1969, 12, 31, 12), -1),
    (TimestampType(), "1970-01-01 00:00:00.0000015", 1),
    (FloatType(), 0.1, 0.09999999403953552),
    (FloatType(), -0.1, -0.10000000149011612),
    (FloatType(), 1e39, 3.4028234663852886e38),
    (FloatType(), -1e39, -math.inf),
    (FloatType(), 1e-60, 0.0),
    (FloatType(), -1e-60, -1.401298464324817e-45),
]


@pytest.mark.parametrize(("type_", "literal", "below"), BETWEEN)
def test_a_literal_between_two_values_is_compared_exactly(
    type_: Type, literal: Any, below: Any
) -> None:
    assert bound(type_, "eq", literal) is False
    assert bound(type_, "not_eq", literal) == "not_null"
    assert bound(type_, "lt", literal) == bound(type_, "lt_eq", literal) == ("lt_eq", below)
    assert bound(type_, "gt", literal) == bound(type_, "gt_eq", literal) == ("gt", below)
    assert bound(type_, "in", (literal,)) is False


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (IntegerType(), -(2**40), 2**40),
        (IntegerType(), -math.inf, math.inf),
        (LongType(), -(10**30), 2.0**63),
        (DecimalType(4, 2), -100, "100"),
        (DecimalType(4, 2), Decimal("-1e1000000"), Decimal("1e1000000")),
        (DecimalType(4, 2), -math.inf, NAN),
        (IntegerType(), -math.inf, NAN),
        (TimestampNsType(), date(1600, 1, 1), "2300-01-01"),
    ],
)
def test_a_literal_outside_the_range_is_folded(type_: Type, low: Any, high: Any) -> None:
    for op in ("lt", "lt_eq", "not_eq"):
        assert bound(type_, op, high) == "not_null"
        assert bound(type_, op, high, required=True) is True
    for op in ("gt", "gt_eq", "eq"):
        assert bound(type_, op, high) is False
    for op in ("gt", "gt_eq", "not_eq"):
        assert bound(type_, op, low) == "not_null"
    for op in ("lt", "lt_eq", "eq"):
        assert bound(type_, op, low) is False
    assert bound(type_, "in", (low, high)) is False
    assert bound(type_, "not_in", (low, high)) == "not_null"


def test_nan_literals_are_ordered_as_spark_does() -> None:
    column = BoundColumn(field_id=1, name="c", type=DoubleType(), required=False)
    not_nan_not_null = And(BoundUnary("not_null", column), BoundUnary("not_nan", column))
    assert bound(DoubleType(), "eq", NAN) == "is_nan"
    assert bound(DoubleType(), "gt_eq", NAN) == "is_nan"
    assert bound(DoubleType(), "gt", NAN) is False
    assert bound(DoubleType(), "lt_eq", NAN) == "not_null"
    assert bound(DoubleType(), "lt", NAN) == not_nan_not_null
    assert bound(DoubleType(), "not_eq", NAN) == not_nan_not_null
    assert bound(DoubleType(), "in", (NAN,)) == "is_nan"
    assert bound(DoubleType(), "not_in", (NAN,)) == not_nan_not_null


NUMBERS = st.one_of(
    st.integers(-30, 30),
    st.sampled_from([2**31, -(2**31) - 1, 2**63, 10**40]),
    st.sampled_from([0.5, -1.5, 0.1, -0.0, math.inf, -math.inf, NAN, 2.0**31, 1e39]),
    st.decimals(-40, 40, places=3),
    st.floats(),
)
OPERATORS = {
    "lt": operator.lt,
    "lt_eq": operator.le,
    "gt": operator.gt,
    "gt_eq": operator.ge,
    "eq": operator.eq,
    "not_eq": operator.ne,
}


def position(number: Any) -> tuple[int, Fraction]:
    """Return a number's place in Spark's order: -infinity, finite numbers, infinity, NaN."""
    if number != number:
        return 2, Fraction(0)
    if isinstance(number, float) and math.isinf(number):
        return (1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)


@given(
    st.sampled_from(
        [IntegerType(), LongType(), FloatType(), DoubleType(), DecimalType(4, 2)]
    ).flatmap(lambda t: st.tuples(st.just(t), nullable(t))),
    st.sampled_from(sorted(OPERATORS)),
    NUMBERS,
    st.booleans(),
)
@settings(max_examples=settings().max_examples * 5)
def test_numbers_compare_by_value_whatever_their_types(
    typed: tuple[PrimitiveType, Any], op: Any, literal: Any, negate: bool
) -> None:
    type_, value = typed
    predicate: Predicate = LiteralPredicate(op, "c1", literal)
    selected = evaluate(
        bind(Not(predicate) if negate else predicate, schema_of(columns(type_))), {1: value}
    )
    if isinstance(type_, FloatType | DoubleType):
        # Spark casts the literal to double.
        literal = (
            float(literal) if not isinstance(literal, int) or abs(literal) < 10**300 else literal
        )
    elif isinstance(type_, DecimalType) and isinstance(literal, float) and math.isfinite(literal):
        literal = Decimal(repr(literal))
    expected = value is not None and OPERATORS[op](position(value), position(literal)) != negate
    assert (selected is True) == expected


@given(
    st.sampled_from([DoubleType(), LongType(), StringType()]).flatmap(
        lambda t: st.tuples(st.just(t), nullable(t), st.lists(nullable(t), min_size=1, max_size=4))
    ),
    st.booleans(),
)
def test_membership_is_equality_with_any_in_three_valued_logic(
    case: tuple[PrimitiveType, Any, list[Any]], negate: bool
) -> None:
    type_, value, members = case
    predicate = SetPredicate("not_in" if negate else "in", "c1", tuple(members))
    selected = evaluate(bind(predicate, schema_of(columns(type_))), {1: value}) is True
    is_member = any(m is not None and (m == value or (m != m and value != value)) for m in members)
    if value is None:
        assert not selected
    elif negate:
        assert selected == (not is_member and None not in members)
    else:
        assert selected == is_member


COLUMNS = columns(IntegerType(), DoubleType(), StringType())


@given(predicates(COLUMNS), rows(COLUMNS))
def test_binding_what_is_bound_selects_the_same_rows(
    predicate: Predicate, row: dict[int, Any]
) -> None:
    bound_predicate = bind(predicate, schema_of(COLUMNS))
    assert (evaluate(bound_predicate, row) is True) == (evaluate(predicate, row) is True)


def test_null_literals_select_nothing_even_when_negated() -> None:
    for op in ("eq", "not_eq", "lt", "gt_eq", "starts_with", "not_starts_with"):
        assert bound(StringType(), op, None) is False
    schema = schema_of(columns(IntegerType()))
    assert bind(Not(LiteralPredicate("eq", "c1", None)), schema) == AlwaysFalse()
    assert bind(Not(SetPredicate("in", "c1", (1, None))), schema) == AlwaysFalse()
    assert bound(IntegerType(), "in", (1, None)) == ("eq", 1)
    assert bound(IntegerType(), "in", ()) is False


def test_sets_are_deduplicated_and_one_member_is_equality() -> None:
    assert bound(IntegerType(), "in", (1, 1.0)) == ("eq", 1)
    assert bound(IntegerType(), "not_in", (1, 1)) == ("not_eq", 1)
    assert bound(IntegerType(), "in", (1, 2, 2.5)) == ("in", {1, 2})


def test_tests_that_the_type_decides_are_folded() -> None:
    def test(op: Any, type_: Type, *, required: bool = False) -> Predicate:
        field = NestedField(field_id=1, name="c", type=type_, required=required)
        return bind(UnaryPredicate(op, "c"), Schema(fields=(field,)))

    assert test("is_null", IntegerType(), required=True) == AlwaysFalse()
    assert test("not_null", IntegerType(), required=True) == AlwaysTrue()
    assert test("is_nan", IntegerType()) == AlwaysFalse()
    assert test("not_nan", IntegerType()) == AlwaysTrue()
    assert test("is_null", UnknownType()) == AlwaysTrue()
    assert test("not_null", UnknownType()) == AlwaysFalse()
    assert isinstance(test("is_nan", FloatType(), required=True), BoundUnary)


def test_prefixes() -> None:
    assert bound(StringType(), "starts_with", "ab") == ("starts_with", "ab")
    assert bound(BinaryType(), "starts_with", b"ab") == ("starts_with", b"ab")
    assert bound(StringType(), "starts_with", "") == "not_null"
    assert bound(StringType(), "not_starts_with", "") is False
    with pytest.raises(InvalidRequestError, match="only string and binary have prefixes"):
        bound(IntegerType(), "starts_with", "1")


@pytest.mark.parametrize(
    ("type_", "literal", "shown"),
    [
        (IntegerType(), "5", "'5'"),
        (IntegerType(), True, "true"),
        (LongType(), date(2026, 1, 1), "DATE'2026-01-01'"),
        (DoubleType(), "1.5", "'1.5'"),
        (BooleanType(), 1, "1"),
        (StringType(), 5, "5"),
        (StringType(), b"a", "X'61'"),
        (BinaryType(), "a", "'a'"),
        (FixedType(2), b"abc", "X'616263'"),
        (UUIDType(), "not-a-uuid", "'not-a-uuid'"),
        (UUIDType(), b"short", "X'73686f7274'"),
        (DateType(), 5, "5"),
        (DateType(), "2026-01-01 10:00:00", "'2026-01-01 10:00:00'"),
        (DateType(), "2026-02-30", "'2026-02-30'"),
        (DateType(), "yesterday", "'yesterday'"),
        (TimestampType(), 5, "5"),
        (TimestampType(), "2026-01-01T00:00:00Z", "'2026-01-01T00:00:00Z'"),
        (TimeType(), "25:00:00", "'25:00:00'"),
        (TimeType(), "10:00:00.1234567", "'10:00:00.1234567'"),
        (TimeType(), time(10, tzinfo=timezone.utc), "'10:00:00+00:00'"),
        (DecimalType(9, 2), "abc", "'abc'"),
        (DecimalType(9, 2), "NaN", "'NaN'"),
    ],
)
def test_a_literal_of_the_wrong_kind_is_refused_by_column_type_and_value(
    type_: Type, literal: Any, shown: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        bound(type_, "eq", literal)
    message = str(caught.value)
    assert "'c'" in message
    assert str(type_) in message
    assert f"does not compare with {shown}: " in message


NESTED = Schema(
    fields=(
        NestedField(
            field_id=1,
            name="s",
            type=StructType(
                (
                    NestedField(field_id=2, name="x", type=IntegerType(), required=True),
                    NestedField(field_id=3, name="dotted.name", type=StringType()),
                )
            ),
        ),
        NestedField(field_id=4, name="l", type=ListType(element_id=5, element_type=IntegerType())),
        NestedField(
            field_id=6,
            name="m",
            type=MapType(
                key_id=7,
                key_type=StringType(),
                value_id=8,
                value_type=StructType((NestedField(field_id=9, name="y", type=LongType()),)),
            ),
        ),
        NestedField(field_id=10, name="v", type=VariantType()),
        NestedField(field_id=11, name="g", type=GeometryType()),
    )
)


def test_nested_columns_bind_through_structs_and_are_required_only_with_all_around_them() -> None:
    assert bind(LiteralPredicate("eq", "s.x", 1), NESTED) == BoundLiteral(
        "eq", BoundColumn(field_id=2, name="s.x", type=IntegerType(), required=False), 1
    )
    assert bind_column("s.dotted.name", NESTED).field_id == 3
    assert bind_column("S.X", NESTED, case_sensitive=False).name == "s.x"
    with pytest.raises(InvalidRequestError, match=r"no column 'S\.X'"):
        bind_column("S.X", NESTED)


@pytest.mark.parametrize("name", ["l.element", "m.key", "m.value", "m.value.y"])
def test_columns_inside_lists_and_maps_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="outside lists and maps"):
        bind(UnaryPredicate("is_null", name), NESTED)


@pytest.mark.parametrize("name", ["s", "l", "m", "v", "g"])
def test_nested_and_opaque_columns_can_only_be_tested_for_null(name: str) -> None:
    bound_predicate = bind(UnaryPredicate("is_null", name), NESTED)
    assert isinstance(bound_predicate, BoundUnary)
    with pytest.raises(InvalidRequestError, match="only be tested for null"):
        bind(LiteralPredicate("eq", name, 1), NESTED)
    with pytest.raises(InvalidRequestError, match="only be tested for null"):
        bind(SetPredicate("in", name, (1,)), NESTED)


def test_a_value_of_an_unknown_column_is_never_compared() -> None:
    assert bound(UnknownType(), "eq", "anything") is False
    assert bound(UnknownType(), "in", (1, 2)) is False


@given(values(TimestampType()).filter(lambda v: abs(v) < 10**16))
def test_datetime_and_its_text_bind_to_the_same_value(micros: int) -> None:
    moment = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    for literal in (moment, moment.isoformat(), moment.isoformat(sep=" ")):
        assert bound(TimestampType(), "eq", literal) == ("eq", micros)
