"""Converts predicates to and from JSON as in the REST catalog (`Expression` in its OpenAPI).

`true` and `false` are written as plain JSON booleans, as PyIceberg does; `{"type": "true"}` and
`{"type": "false"}` are also read. Terms are column names; a transform as a term is refused.

The form of the expressions specification, "Appendix B: JSON serialization", is read too, where it
compares one column with constants; functions are refused by name. Its predicates have two truth
values: `x != 5` is true of a null. Servers must accept the older form, so that one is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind, bind_column
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
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
)
from iceberg_pyspark.expressions.rewriting import (
    OPPOSITE_COMPARISON,
    OPPOSITE_MEMBERSHIP,
    OPPOSITE_TEST,
    not_bound,
)
from iceberg_pyspark.spec.json_fields import short_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import BinaryType, DoubleType, FixedType, FloatType, Type
from iceberg_pyspark.spec.values import value_to_json

_TESTS = {op.replace("_", "-"): op for op in cast("tuple[Test, ...]", get_args(Test))}
_COMPARISONS = {
    op.replace("_", "-"): op for op in cast("tuple[Comparison, ...]", get_args(Comparison))
}
_MEMBERSHIPS = {
    op.replace("_", "-"): op for op in cast("tuple[Membership, ...]", get_args(Membership))
}

_MAX_DEPTH = 200
"""The maximum nesting; a chain of binary ANDs nests once per AND."""


def predicate_to_json(predicate: Predicate) -> Any:
    """Return a bound predicate as JSON; literals are single values of their column's type."""
    match predicate:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And(left, right):
            return _junction("and", left, right)
        case Or(left, right):
            return _junction("or", left, right)
        case Not(child):
            return {"type": "not", "child": predicate_to_json(child)}
        case BoundUnary(op, column):
            return {"type": op.replace("_", "-"), "term": column.name}
        case BoundLiteral(op, column, literal):
            value = (
                list(literal) if isinstance(literal, tuple) else value_to_json(column.type, literal)
            )
            return {"type": op.replace("_", "-"), "term": column.name, "value": value}
        case BoundSet(op, column, literals):
            values = sorted((value_to_json(column.type, v) for v in literals), key=repr)
            return {"type": op.replace("_", "-"), "term": column.name, "values": values}
        case _:
            raise not_bound(predicate)


def _junction(name: str, left_operand: Predicate, right: Predicate) -> dict[str, Any]:
    return {
        "type": name,
        "left": predicate_to_json(left_operand),
        "right": predicate_to_json(right),
    }


def predicate_from_json(data: Any, schema: Schema) -> Predicate:
    """Return the predicate, bound to the schema."""
    return bind(_from_json(data, schema, "expression"), schema)


def _from_json(
    data: Any, schema: Schema, path: str, depth: int = 1, *, negated: bool = False
) -> Predicate:
    if isinstance(data, bool):
        return AlwaysTrue() if data is not negated else AlwaysFalse()
    if not isinstance(data, dict):
        raise InvalidRequestError(f"{path}: expected an expression object, got {short_text(data)}")
    if depth > _MAX_DEPTH:
        raise InvalidRequestError(f"expression: nested deeper than {_MAX_DEPTH} levels")

    def child(key: str, negated: bool = negated) -> Predicate:
        member = _get(data, key, path)
        return _from_json(member, schema, f"{path}.{key}", depth + 1, negated=negated)

    def leaf(predicate: Predicate) -> Predicate:
        return Not(predicate) if negated else predicate

    def literals(values: Iterable[Any]) -> tuple[Any, ...]:
        type_ = bind_column(_term(data, path), schema).type
        return tuple(_constant(value, type_, path) for value in values)

    given_type = data.get("type")
    type_name = given_type.replace("_", "-") if isinstance(given_type, str) else ""
    match type_name:
        case "true" | "false":
            return _from_json(type_name == "true", schema, path, negated=negated)
        case "and" | "or":
            junction = And if (type_name == "and") is not negated else Or
            return junction(child("left"), child("right"))
        case "not":
            return child("child", not negated)
        case _ if type_name not in _TESTS | _COMPARISONS | _MEMBERSHIPS:
            raise InvalidRequestError(f"{path}.type: {short_text(given_type)} is not an expression")
        case _ if "term" not in data and ("child" in data or "left" in data):
            return _two_valued(data, type_name, schema, path, negated=negated)
        case _ if type_name in _TESTS:
            return leaf(UnaryPredicate(_TESTS[type_name], _term(data, path)))
        case _ if type_name in _COMPARISONS:
            (value,) = literals([_get(data, "value", path)])
            return leaf(LiteralPredicate(_COMPARISONS[type_name], _term(data, path), value))
        case _:
            values = literals(_list(data, path))
            return leaf(SetPredicate(_MEMBERSHIPS[type_name], _term(data, path), values))


def _list(data: dict[str, Any], path: str) -> list[Any]:
    values = _get(data, "values", path)
    if isinstance(values, dict) and values.get("type") == "literals":
        values = values.get("values")
    if not isinstance(values, list):
        raise InvalidRequestError(f"{path}.values: expected a list, got {short_text(values)}")
    return values


def _constant(value: Any, type_: Type, path: str) -> Any:
    if not isinstance(type_, BinaryType | FixedType) or not isinstance(value, str):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError as e:
        raise InvalidRequestError(f"{path}: {short_text(value)} is not hexadecimal") from e


# --- the form of the expressions specification ---

_OPPOSITES: Mapping[str, str] = dict(
    [*OPPOSITE_COMPARISON.items(), *OPPOSITE_TEST.items(), *OPPOSITE_MEMBERSHIP.items()]
)
_SWAPPED = {
    "lt": "gt",
    "gt": "lt",
    "lt_eq": "gt_eq",
    "gt_eq": "lt_eq",
    "eq": "eq",
    "not_eq": "not_eq",
}
_TRUE_OF_NULL_AND_NAN = ("not_eq", "not_in", "not_starts_with")


def _two_valued(
    data: dict[str, Any], type_name: str, schema: Schema, path: str, *, negated: bool
) -> Predicate:
    """Return a test or comparison, or its negation, that is true of the same nulls and NaNs."""
    op: str = (_TESTS | _COMPARISONS | _MEMBERSHIPS)[type_name]
    if type_name in _COMPARISONS:
        left_operand, right = _get(data, "left", path), _get(data, "right", path)
        column = _reference(left_operand, schema, f"{path}.left")
        constants = [right]
        if column is None:
            column, constants = _reference(right, schema, f"{path}.right"), [left_operand]
            op = _SWAPPED.get(op, "")
        if column is None or not op or _reference(constants[0], schema, path) is not None:
            raise InvalidRequestError(
                f"{path}: only a column compared with a constant is supported"
            )
    else:
        column = _reference(_get(data, "child", path), schema, f"{path}.child")
        constants = _list(data, path) if type_name in _MEMBERSHIPS else []
        if column is None:
            raise InvalidRequestError(f"{path}.child: only a test of a column is supported")
    type_ = bind_column(column, schema).type
    values = tuple(_constant(_literal(c, path), type_, path) for c in constants)
    is_true_of_them = (op in _TRUE_OF_NULL_AND_NAN) is not negated
    op = _OPPOSITES[op] if negated else op
    null, nan = UnaryPredicate("is_null", column), UnaryPredicate("is_nan", column)
    predicate: Predicate
    match op:
        case "is_null" | "not_null" | "is_nan":
            return UnaryPredicate(cast("Test", op), column)
        case "not_nan":
            return Or(UnaryPredicate("not_nan", column), null)
        case "in" | "not_in":
            predicate = SetPredicate(op, column, values)
        case _:
            predicate = LiteralPredicate(cast("Comparison", op), column, values[0])
    if isinstance(type_, FloatType | DoubleType):
        number = UnaryPredicate("not_nan", column)
        predicate = Or(predicate, nan) if is_true_of_them else And(predicate, number)
    return Or(predicate, null) if is_true_of_them else predicate


def _reference(expression: Any, schema: Schema, path: str) -> str | None:
    """Return the name of a column, or None for a constant; refuse functions."""
    if not isinstance(expression, dict):
        return None
    match expression.get("type"):
        case "reference":
            if "id" not in expression:
                return _term({"term": expression.get("name", expression.get("term"))}, path)
            name = schema.name_by_id.get(expression["id"])
            if name is None:
                raise InvalidRequestError(
                    f"{path}.id: no column has the id {short_text(expression['id'])}"
                )
            return name
        case "literal":
            return None
        case "apply":
            function = json.dumps(expression.get("function"))[:100]
            raise InvalidRequestError(f"{path}: the function {function} is not supported")
        case other:
            raise InvalidRequestError(f"{path}.type: {short_text(other)} is not a value expression")


def _literal(expression: Any, path: str) -> Any:
    value = expression.get("value") if isinstance(expression, dict) else expression
    if value is None:
        raise InvalidRequestError(f"{path}: a constant is null; is-null and not-null test for it")
    return value


def _term(data: dict[str, Any], path: str) -> str:
    term = _get(data, "term", path)
    if isinstance(term, dict) and term.get("type") == "reference":
        term = term.get("term")
    if not isinstance(term, str):
        raise InvalidRequestError(f"{path}.term: expected a column name, got {short_text(term)}")
    return term


def _get(data: dict[str, Any], key: str, path: str) -> Any:
    if key not in data:
        raise InvalidRequestError(f"{path}.{key}: required")
    return data[key]
