"""The predicate tree: a small closed union, unbound (names) or bound (field ids and typed values).

Unbound predicates come from users (`sql_text/filters.py`, Spark expressions) with plain Python
literals; `binding.py` turns them into bound ones, whose literals are values of the column's type
as `spec/values.py` represents them. Three-valued logic: a predicate selects a row only when it is
true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from iceberg_pyspark.spec.types import Type

Comparison = Literal["lt", "lt_eq", "gt", "gt_eq", "eq", "not_eq", "starts_with", "not_starts_with"]
Test = Literal["is_null", "not_null", "is_nan", "not_nan"]
Membership = Literal["in", "not_in"]


@dataclass(frozen=True, slots=True)
class AlwaysTrue:
    """Selects every row."""


@dataclass(frozen=True, slots=True)
class AlwaysFalse:
    """Selects no row."""


@dataclass(frozen=True, slots=True)
class And:
    """True where both predicates are."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Or:
    """True where one of the predicates is."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Not:
    """The negation; unknown stays unknown."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class UnaryPredicate:
    """A test of an unbound column, by full dotted name."""

    op: Test
    column: str


@dataclass(frozen=True, slots=True)
class LiteralPredicate:
    """A comparison of an unbound column with a plain Python literal."""

    op: Comparison
    column: str
    literal: Any


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """Membership of an unbound column; literals keep the order given."""

    op: Membership
    column: str
    literals: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column by id: what predicates are evaluated on.

    `name` is the full dotted name in the schema it was bound to. `required` is true only when the
    column and everything that encloses it is. Only `is_null` and `not_null` meet a column whose
    type is not primitive.
    """

    field_id: int
    name: str
    type: Type
    required: bool


@dataclass(frozen=True, slots=True)
class BoundUnary:
    """A test of a bound column."""

    op: Test
    column: BoundColumn


@dataclass(frozen=True, slots=True)
class BoundLiteral:
    """A comparison of a bound column; the literal is a non-null, non-NaN value of its type."""

    op: Comparison
    column: BoundColumn
    literal: Any


@dataclass(frozen=True, slots=True)
class BoundSet:
    """Membership of a bound column in at least two distinct values of its type."""

    op: Membership
    column: BoundColumn
    literals: frozenset[Any]


UnboundLeaf: TypeAlias = UnaryPredicate | LiteralPredicate | SetPredicate
BoundLeaf: TypeAlias = BoundUnary | BoundLiteral | BoundSet
Predicate: TypeAlias = AlwaysTrue | AlwaysFalse | And | Or | Not | UnboundLeaf | BoundLeaf
