"""Binding: names become column ids, plain literals become values of the column's type.

What cannot be decided for a column, a wrong type or an unknown name, is refused; what can be
decided without looking at a row is folded (a literal outside the column's range, null, `is_null` of
a required column). How literals of other types compare is in `literals.py`.

Negation goes first: the result has no `Not`, and selects exactly the rows the given predicate
selects. It need not tell false from unknown in the same rows, so negate a predicate before binding
it, not after.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.literals import BoundLiteralValue, place_literal
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLiteral,
    BoundUnary,
    Comparison,
    LiteralPredicate,
    Membership,
    Or,
    Predicate,
    SetPredicate,
    Test,
    UnaryPredicate,
)
from iceberg_pyspark.expressions.rewriting import and_, none_of, not_null, one_of, or_, push_not
from iceberg_pyspark.spec.json_fields import short_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    PrimitiveType,
    StringType,
    UnknownType,
    VariantType,
)

_NOT_COMPARABLE = (VariantType, GeometryType, GeographyType)


def bind(predicate: Predicate, schema: Schema, *, case_sensitive: bool = True) -> Predicate:
    """The predicate bound to a schema; it selects the same rows. Bound parts stay as they are.

    >>> from iceberg_pyspark.spec.schema import Schema
    >>> from iceberg_pyspark.spec.types import IntegerType, NestedField
    >>> schema = Schema(fields=(NestedField(field_id=1, name="id", type=IntegerType()),))
    >>> bound = bind(LiteralPredicate("lt", "id", 1.5), schema)
    >>> bound.op, bound.column.field_id, bound.literal
    ('lt_eq', 1, 1)
    """
    return _bind(push_not(predicate), schema, case_sensitive)


def _bind(predicate: Predicate, schema: Schema, case_sensitive: bool) -> Predicate:
    match predicate:
        case And(left, right):
            return and_(_bind(left, schema, case_sensitive), _bind(right, schema, case_sensitive))
        case Or(left, right):
            return or_(_bind(left, schema, case_sensitive), _bind(right, schema, case_sensitive))
        case UnaryPredicate(op, name):
            return _bind_test(op, bind_column(name, schema, case_sensitive=case_sensitive))
        case LiteralPredicate(op, name, literal):
            column = bind_column(name, schema, case_sensitive=case_sensitive)
            return _bind_literal(op, column, literal)
        case SetPredicate(op, name, literals):
            column = bind_column(name, schema, case_sensitive=case_sensitive)
            return _bind_set(op, column, literals)
        case _:
            return predicate


def bind_column(name: str, schema: Schema, *, case_sensitive: bool = True) -> BoundColumn:
    """The column of that full dotted name; one inside a list or map is refused."""
    field = schema.find(name, case_sensitive=case_sensitive)
    required = field.required
    field_id = field.field_id
    while (parent_id := schema.parent_by_id.get(field_id)) is not None:
        parent = schema.field_by_id[parent_id]
        if isinstance(parent.type, ListType | MapType):
            raise InvalidRequestError(
                f"column '{name}' lies inside '{schema.name_by_id[parent_id]}', a {parent.type}; "
                "a filter can only look at columns outside lists and maps"
            )
        required = required and parent.required
        field_id = parent_id
    return BoundColumn(
        field_id=field.field_id,
        name=schema.name_by_id[field.field_id],
        type=field.type,
        required=required,
    )


def _bind_test(op: Test, column: BoundColumn) -> Predicate:
    always_null = isinstance(column.type, UnknownType)
    floating = isinstance(column.type, FloatType | DoubleType)
    match op:
        case "is_null" if always_null:
            return AlwaysTrue()
        case "not_null" if always_null:
            return AlwaysFalse()
        case "is_null" if column.required:
            return AlwaysFalse()
        case "not_null" if column.required:
            return AlwaysTrue()
        case "is_nan" | "not_nan" if not isinstance(column.type, PrimitiveType):
            raise InvalidRequestError(f"{op}: column '{column.name}' is a {column.type}")
        case "is_nan" if not floating:
            return AlwaysFalse()
        case "not_nan" if not floating:
            return AlwaysTrue()
        case _:
            return BoundUnary(op, column)


def _bind_literal(op: Comparison, column: BoundColumn, literal: Any) -> Predicate:
    _check_comparable(column)
    if literal is None or isinstance(column.type, UnknownType):
        return AlwaysFalse()
    if op == "starts_with" or op == "not_starts_with":
        return _bind_prefix(op, column, literal)
    placed = _place(column, literal)
    if op == "eq":
        return _equal_to(column, placed)
    if op == "not_eq":
        return _different_from(column, placed)
    return _ordered(op, column, placed)


def _ordered(op: Comparison, column: BoundColumn, placed: BoundLiteralValue) -> Predicate:
    less = op in ("lt", "lt_eq")
    match placed.where:
        case "at":
            return BoundLiteral(op, column, placed.value)
        case "after":
            return BoundLiteral("lt_eq" if less else "gt", column, placed.value)
        case "nan":
            # the greatest value: everything but itself is less
            if op == "lt":
                return _different_from(column, placed)
            if op == "gt_eq":
                return _equal_to(column, placed)
            return not_null(column) if less else AlwaysFalse()
        case "above":
            return not_null(column) if less else AlwaysFalse()
        case "below":
            return AlwaysFalse() if less else not_null(column)


def _equal_to(column: BoundColumn, *places: BoundLiteralValue) -> Predicate:
    nan = any(p.where == "nan" for p in places)
    return or_(
        one_of(column, [p.value for p in places if p.where == "at"]),
        BoundUnary("is_nan", column) if nan else AlwaysFalse(),
    )


def _different_from(column: BoundColumn, *places: BoundLiteralValue) -> Predicate:
    nan = any(p.where == "nan" for p in places)
    # not_nan selects null, none_of does not: together they are exact
    return and_(
        none_of(column, [p.value for p in places if p.where == "at"]),
        BoundUnary("not_nan", column) if nan else AlwaysTrue(),
    )


def _bind_prefix(op: Comparison, column: BoundColumn, literal: Any) -> Predicate:
    if not isinstance(column.type, StringType | BinaryType):
        raise InvalidRequestError(
            f"{op}: column '{column.name}' is {column.type}, only string and binary have prefixes"
        )
    prefix = _place(column, literal).value
    if not prefix:
        return not_null(column) if op == "starts_with" else AlwaysFalse()
    return BoundLiteral(op, column, prefix)


def _bind_set(op: Membership, column: BoundColumn, literals: tuple[Any, ...]) -> Predicate:
    _check_comparable(column)
    if isinstance(column.type, UnknownType):
        return AlwaysFalse()
    places = [_place(column, v) for v in literals if v is not None]
    has_null = len(places) < len(literals)
    if op == "in":
        return _equal_to(column, *places)
    # NOT IN with a null among the values is false or unknown for every row
    return AlwaysFalse() if has_null else _different_from(column, *places)


def _check_comparable(column: BoundColumn) -> None:
    if not isinstance(column.type, PrimitiveType) or isinstance(column.type, _NOT_COMPARABLE):
        raise InvalidRequestError(
            f"column '{column.name}' is {column.type}; it can only be tested for null"
        )


def _place(column: BoundColumn, literal: Any) -> BoundLiteralValue:
    try:
        return place_literal(column.type, literal)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidRequestError(
            f"column '{column.name}' is {column.type}, which does not compare with "
            f"{short_text(literal)}: {e}"
        ) from e
