"""Builds and rewrites predicate trees without changing their meaning.

Constants are folded when a tree is built (`and_`, `or_`, `not_`, `one_of`, `none_of`), so that
evaluators need not do it. `push_not` moves negation into the leaves, so that inexact evaluators
(projections, metrics) never meet a `Not`. All rules are exact in three-valued logic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLeaf,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Comparison,
    LiteralPredicate,
    Membership,
    Not,
    Or,
    Predicate,
    SetPredicate,
    Test,
    UnaryPredicate,
    UnboundLeaf,
)

OPPOSITE_COMPARISON: dict[Comparison, Comparison] = {
    "lt": "gt_eq",
    "gt_eq": "lt",
    "gt": "lt_eq",
    "lt_eq": "gt",
    "eq": "not_eq",
    "not_eq": "eq",
    "starts_with": "not_starts_with",
    "not_starts_with": "starts_with",
    "intersects": "not_intersects",
    "not_intersects": "intersects",
}
OPPOSITE_TEST: dict[Test, Test] = {
    "is_null": "not_null",
    "not_null": "is_null",
    "is_nan": "not_nan",
    "not_nan": "is_nan",
}
OPPOSITE_MEMBERSHIP: dict[Membership, Membership] = {"in": "not_in", "not_in": "in"}


def and_(*predicates: Predicate) -> Predicate:
    """Return the conjunction; constants are folded, and no predicates give true.

    >>> and_(AlwaysTrue(), AlwaysFalse())
    AlwaysFalse()
    """
    if any(isinstance(p, AlwaysFalse) for p in predicates):
        return AlwaysFalse()
    operands = [p for p in predicates if not isinstance(p, AlwaysTrue)]
    return _balance(And, operands) if operands else AlwaysTrue()


def or_(*predicates: Predicate) -> Predicate:
    """Return the disjunction; constants are folded, and no predicates give false."""
    if any(isinstance(p, AlwaysTrue) for p in predicates):
        return AlwaysTrue()
    operands = [p for p in predicates if not isinstance(p, AlwaysFalse)]
    return _balance(Or, operands) if operands else AlwaysFalse()


def _balance(
    join: Callable[[Predicate, Predicate], Predicate], predicates: Sequence[Predicate]
) -> Predicate:
    # a balanced tree keeps the recursion of every evaluator shallow
    if len(predicates) == 1:
        return predicates[0]
    middle = len(predicates) // 2
    return join(_balance(join, predicates[:middle]), _balance(join, predicates[middle:]))


def not_(predicate: Predicate) -> Predicate:
    """Return the negation; constants and double negation are folded."""
    match predicate:
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case Not(child):
            return child
        case _:
            return Not(predicate)


def not_null(column: BoundColumn) -> Predicate:
    """Return `not_null` of a column, or true if the column is required."""
    return AlwaysTrue() if column.required else BoundUnary("not_null", column)


def one_of(column: BoundColumn, values: Collection[Any]) -> Predicate:
    """Return a membership test for any number of values, none of them null or NaN."""
    distinct = frozenset(values)
    if len(distinct) > 1:
        return BoundSet("in", column, distinct)
    return BoundLiteral("eq", column, next(iter(distinct))) if distinct else AlwaysFalse()


def none_of(column: BoundColumn, values: Collection[Any]) -> Predicate:
    """Return the opposite of `one_of`; null is never selected."""
    distinct = frozenset(values)
    if len(distinct) > 1:
        return BoundSet("not_in", column, distinct)
    return BoundLiteral("not_eq", column, next(iter(distinct))) if distinct else not_null(column)


def push_not(predicate: Predicate) -> Predicate:
    """Return the predicate without `Not`: negation moves into the leaves, and constants are folded.

    The result is exact because NaN is ordered: a value that is not less than 5 is at least 5, and
    this includes NaN.

    >>> push_not(Not(LiteralPredicate("lt", "x", 5)))
    LiteralPredicate(op='gt_eq', column='x', literal=5)
    """
    match predicate:
        case And(left, right):
            return and_(push_not(left), push_not(right))
        case Or(left, right):
            return or_(push_not(left), push_not(right))
        case Not(child):
            return _negate(child)
        case _:
            return predicate


def _negate(predicate: Predicate) -> Predicate:
    match predicate:
        case And(left, right):
            return or_(_negate(left), _negate(right))
        case Or(left, right):
            return and_(_negate(left), _negate(right))
        case Not(child):
            return push_not(child)
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case UnaryPredicate() | BoundUnary():
            return replace(predicate, op=OPPOSITE_TEST[predicate.op])
        case LiteralPredicate() | BoundLiteral():
            return replace(predicate, op=OPPOSITE_COMPARISON[predicate.op])
        case SetPredicate() | BoundSet():
            return replace(predicate, op=OPPOSITE_MEMBERSHIP[predicate.op])


def leaves_of(predicate: Predicate) -> Iterator[BoundLeaf]:
    """Yield the leaves of a bound predicate."""
    match predicate:
        case And(left, right) | Or(left, right):
            yield from leaves_of(left)
            yield from leaves_of(right)
        case Not(child):
            yield from leaves_of(child)
        case BoundUnary() | BoundLiteral() | BoundSet():
            yield predicate
        case AlwaysTrue() | AlwaysFalse():
            return
        case _:
            raise not_bound(predicate)


def columns_of(predicate: Predicate) -> set[int]:
    """Return the field ids of the columns of a bound predicate."""
    return {leaf.column.field_id for leaf in leaves_of(predicate)}


def not_bound(leaf: UnboundLeaf) -> InvalidRequestError:
    """Return the error of an evaluator for an unbound predicate, which has no column ids."""
    return InvalidRequestError(
        f"the predicate on '{leaf.column}' is not bound to a schema; call binding.bind first"
    )
