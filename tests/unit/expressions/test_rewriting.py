"""Rewriting never changes the meaning of a predicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Comparison,
    LiteralPredicate,
    Not,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.rewriting import (
    and_,
    columns_of,
    none_of,
    not_,
    one_of,
    or_,
    push_not,
)
from iceberg_pyspark.spec.types import DoubleType, IntegerType, StringType
from tests.support.strategies import columns, predicates, rows

COLUMNS = columns(IntegerType(), DoubleType(), StringType())
ID = COLUMNS[0]
NAN = float("nan")


def has_not(predicate: Predicate) -> bool:
    match predicate:
        case Not():
            return True
        case And(left, right) | Or(left, right):
            return has_not(left) or has_not(right)
        case _:
            return False


@given(predicates(COLUMNS), rows(COLUMNS))
def test_push_not_leaves_no_not_and_preserves_three_valued_evaluation(
    predicate: Predicate, row: Mapping[int, Any]
) -> None:
    pushed = push_not(predicate)
    assert not has_not(pushed)
    assert evaluate(pushed, row) == evaluate(predicate, row)


@given(st.lists(predicates(COLUMNS), max_size=5), rows(COLUMNS))
def test_folding_builders_preserve_three_valued_evaluation(
    parts: list[Predicate], row: Mapping[int, Any]
) -> None:
    plain_and: Predicate = AlwaysTrue()
    plain_or: Predicate = AlwaysFalse()
    for part in parts:
        plain_and = And(plain_and, part)
        plain_or = Or(plain_or, part)
    assert evaluate(and_(*parts), row) == evaluate(plain_and, row)
    assert evaluate(or_(*parts), row) == evaluate(plain_or, row)
    for part in parts:
        assert evaluate(not_(part), row) == evaluate(Not(part), row)


@pytest.mark.parametrize("op", ["lt", "lt_eq", "gt", "gt_eq", "eq", "not_eq"])
def test_nan_is_the_greatest_value_and_never_equals_a_literal(op: Comparison) -> None:
    leaf = BoundLiteral(op, COLUMNS[1], 5.0)
    expected = op in ("gt", "gt_eq", "not_eq")
    assert evaluate(leaf, {2: NAN}) is expected
    assert evaluate(Not(leaf), {2: NAN}) is not expected


def test_negative_zero_equals_zero() -> None:
    assert evaluate(BoundLiteral("eq", COLUMNS[1], 0.0), {2: -0.0}) is True
    assert evaluate(BoundSet("in", COLUMNS[1], frozenset((0.0, 1.0))), {2: -0.0}) is True


def test_null_is_unknown_to_comparisons_and_known_to_tests() -> None:
    row = {1: None, 2: None, 3: None}
    assert evaluate(BoundLiteral("not_eq", ID, 1), row) is None
    assert evaluate(BoundSet("not_in", ID, frozenset((1, 2))), row) is None
    assert evaluate(BoundUnary("is_null", ID), row) is True
    assert evaluate(BoundUnary("not_nan", COLUMNS[1]), row) is True


def test_a_thousand_alternatives_stay_shallow_enough_to_evaluate() -> None:
    many = or_(*(BoundLiteral("eq", ID, i) for i in range(5000)))
    assert evaluate(many, {1: 4999}) is True


def test_membership_in_none_and_one_value_is_folded() -> None:
    assert one_of(ID, []) == AlwaysFalse()
    assert one_of(ID, [3, 3]) == BoundLiteral("eq", ID, 3)
    assert none_of(ID, []) == BoundUnary("not_null", ID)
    required = BoundColumn(field_id=1, name="id", type=IntegerType(), required=True)
    assert none_of(required, []) == AlwaysTrue()


def test_columns_of_collects_ids_and_refuses_unbound_names() -> None:
    both = And(BoundLiteral("eq", ID, 1), Not(BoundUnary("is_nan", COLUMNS[1])))
    assert columns_of(both) == {1, 2}
    with pytest.raises(InvalidRequestError, match="'x' is not bound"):
        columns_of(LiteralPredicate("eq", "x", 1))
