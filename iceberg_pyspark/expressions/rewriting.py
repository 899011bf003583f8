"""Building and rewriting predicate trees without changing what they mean.

Constants are folded where a tree is built (`and_`, `or_`, `not_`, `one_of`, `none_of`), so that no
evaluator has to; `push_not` moves negation into the leaves, so that the evaluators that err to one
side (projections, metrics) never meet a `Not`. All of it is exact in three-valued logic.
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

_OPPOSITE_COMPARISON: dict[Comparison, Comparison] = {
    "lt": "gt_eq",
    "gt_eq": "lt",
    "gt": "lt_eq",
    "lt_eq": "gt",
    "eq": "not_eq",
    "not_eq": "eq",
    "starts_with": "not_starts_with",
    "not_starts_with": "starts_with",
}
_OPPOSITE_TEST: dict[Test, Test] = {
    "is_null": "not_null",
    "not_null": "is_null",
    "is_nan": "not_nan",
    "not_nan": "is_nan",
}
_OPPOSITE_MEMBERSHIP: dict[Membership, Membership] = {"in": "not_in", "not_in": "in"}


def and_(*predicates: Predicate) -> Predicate:
    """The conjunction; constants are folded, without predicates it is true.

    >>> and_(AlwaysTrue(), AlwaysFalse())
    AlwaysFalse()
    """
    if any(isinstance(p, AlwaysFalse) for p in predicates):
        return AlwaysFalse()
    operands = [p for p in predicates if not isinstance(p, AlwaysTrue)]
    return _balanced(And, operands) if operands else AlwaysTrue()


def or_(*predicates: Predicate) -> Predicate:
    """The disjunction; constants are folded, without predicates it is false."""
    if any(isinstance(p, AlwaysTrue) for p in predicates):
        return AlwaysTrue()
    operands = [p for p in predicates if not isinstance(p, AlwaysFalse)]
    return _balanced(Or, operands) if operands else AlwaysFalse()


def _balanced(
    join: Callable[[Predicate, Predicate], Predicate], predicates: Sequence[Predicate]
) -> Predicate:
    # a balanced tree keeps the recursion of every evaluator shallow, however many there are
    if len(predicates) == 1:
        return predicates[0]
    middle = len(predicates) // 2
    return join(_balanced(join, predicates[:middle]), _balanced(join, predicates[middle:]))


def not_(predicate: Predicate) -> Predicate:
    """The negation; constants and double negation are folded."""
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
    """`not_null` of a column; true if the column is required."""
    return AlwaysTrue() if column.required else BoundUnary("not_null", column)


def one_of(column: BoundColumn, values: Collection[Any]) -> Predicate:
    """Membership in any number of values of the column's type, none of them null or NaN."""
    distinct = frozenset(values)
    if len(distinct) > 1:
        return BoundSet("in", column, distinct)
    return BoundLiteral("eq", column, next(iter(distinct))) if distinct else AlwaysFalse()


def none_of(column: BoundColumn, values: Collection[Any]) -> Predicate:
    """The opposite of `one_of`: null is never selected."""
    distinct = frozenset(values)
    if len(distinct) > 1:
        return BoundSet("not_in", column, distinct)
    return BoundLiteral("not_eq", column, next(iter(distinct))) if distinct else not_null(column)


def push_not(predicate: Predicate) -> Predicate:
    """The same predicate without any `Not`: negation moves into the leaves, constants are folded.

    Exact because NaN takes part in the order: what is not less than 5 is at least 5, NaN included.

    >>> push_not(Not(LiteralPredicate("lt", "x", 5)))
    LiteralPredicate(op='gt_eq', column='x', literal=5)
    """
    match predicate:
        case And(left, right):
            return and_(push_not(left), push_not(right))
        case Or(left, right):
            return or_(push_not(left), push_not(right))
        case Not(child):
            return _negated(child)
        case _:
            return predicate


def _negated(predicate: Predicate) -> Predicate:
    match predicate:
        case And(left, right):
            return or_(_negated(left), _negated(right))
        case Or(left, right):
            return and_(_negated(left), _negated(right))
        case Not(child):
            return push_not(child)
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case UnaryPredicate() | BoundUnary():
            return replace(predicate, op=_OPPOSITE_TEST[predicate.op])
        case LiteralPredicate() | BoundLiteral():
            return replace(predicate, op=_OPPOSITE_COMPARISON[predicate.op])
        case SetPredicate() | BoundSet():
            return replace(predicate, op=_OPPOSITE_MEMBERSHIP[predicate.op])


def leaves_of(predicate: Predicate) -> Iterator[BoundLeaf]:
    """The leaves of a bound predicate."""
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
    """Field ids of the columns a bound predicate looks at."""
    return {leaf.column.field_id for leaf in leaves_of(predicate)}


def not_bound(leaf: UnboundLeaf) -> InvalidRequestError:
    """The error of an evaluator that meets an unbound predicate, which has no column ids."""
    return InvalidRequestError(
        f"the predicate on '{leaf.column}' is not bound to a schema; call binding.bind first"
    )
