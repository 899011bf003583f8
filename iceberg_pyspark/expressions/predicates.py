"""Defines predicates: a closed union, unbound (names) or bound (field ids and typed values).

Unbound predicates come from users (`sql_text/filters.py`, Spark expressions) with plain Python
literals. `binding.py` binds them: the literals become values of the column's type as in
`spec/values.py`. Three-valued logic: a predicate selects a row only when it is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from iceberg_pyspark.spec.types import Type

Comparison = Literal[
    "lt",
    "lt_eq",
    "gt",
    "gt_eq",
    "eq",
    "not_eq",
    "starts_with",
    "not_starts_with",
    "intersects",
    "not_intersects",
]
"""`intersects` compares the box of a geometry with a box (xmin, ymin, xmax, ymax)."""
Test = Literal["is_null", "not_null", "is_nan", "not_nan"]
Membership = Literal["in", "not_in"]


@dataclass(frozen=True, slots=True)
class AlwaysTrue:
    """A predicate that selects every row."""


@dataclass(frozen=True, slots=True)
class AlwaysFalse:
    """A predicate that selects no row."""


@dataclass(frozen=True, slots=True)
class And:
    """A predicate that is true if both predicates are true."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Or:
    """A predicate that is true if one of the predicates is true."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a predicate; unknown stays unknown."""

    child: Predicate


@dataclass(frozen=True, slots=True)
class VariantField:
    """An unbound field of a variant column: a path such as `$.a`, and the name of its type."""

    column: str
    path: str
    type: str

    def __str__(self) -> str:
        return f"variant_field({self.column}, '{self.path}', '{self.type}')"


UnboundColumn: TypeAlias = str | VariantField


@dataclass(frozen=True, slots=True)
class UnaryPredicate:
    """A test of an unbound column, by full dotted name."""

    op: Test
    column: UnboundColumn


@dataclass(frozen=True, slots=True)
class LiteralPredicate:
    """A comparison of an unbound column with a plain Python literal."""

    op: Comparison
    column: UnboundColumn
    literal: Any


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """A membership test of an unbound column; the literals keep their order."""

    op: Membership
    column: UnboundColumn
    literals: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """A column by id, on which predicates are evaluated.

    `name` is the full dotted name in the schema that the column was bound to. `required` is true
    only if the column and all enclosing fields are required. Only `is_null` and `not_null` accept a
    column of a type that is not primitive.
    """

    field_id: int
    name: str
    type: Type
    required: bool


@dataclass(frozen=True, slots=True)
class ExtractedColumn(BoundColumn):
    """A field of a variant column, whose id it has; `type` is the field's, and it may be null."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundUnary:
    """A test of a bound column."""

    op: Test
    column: BoundColumn


@dataclass(frozen=True, slots=True)
class BoundLiteral:
    """A comparison of a bound column with a value of its type, which is not null and not NaN."""

    op: Comparison
    column: BoundColumn
    literal: Any


@dataclass(frozen=True, slots=True)
class BoundSet:
    """A membership test of a bound column with at least two distinct values of its type."""

    op: Membership
    column: BoundColumn
    literals: frozenset[Any]


UnboundLeaf: TypeAlias = UnaryPredicate | LiteralPredicate | SetPredicate
BoundLeaf: TypeAlias = BoundUnary | BoundLiteral | BoundSet
Predicate: TypeAlias = AlwaysTrue | AlwaysFalse | And | Or | Not | UnboundLeaf | BoundLeaf

Filter: TypeAlias = Annotated[str | Predicate, "text such as 'id > 5' or a predicate"]
"""A predicate as users give it."""
