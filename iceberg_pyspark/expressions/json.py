"""Converts predicates to and from JSON as in the REST catalog (`Expression` in its OpenAPI).

`true` and `false` are written as plain JSON booleans, as PyIceberg does; `{"type": "true"}` and
`{"type": "false"}` are also read. Terms are column names; a transform as a term is refused.
"""

from __future__ import annotations

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
from iceberg_pyspark.expressions.rewriting import not_bound
from iceberg_pyspark.spec.json_fields import short_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import BinaryType, FixedType
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


def _from_json(data: Any, schema: Schema, path: str, depth: int = 1) -> Predicate:
    if isinstance(data, bool):
        return AlwaysTrue() if data else AlwaysFalse()
    if not isinstance(data, dict):
        raise InvalidRequestError(f"{path}: expected an expression object, got {short_text(data)}")
    if depth > _MAX_DEPTH:
        raise InvalidRequestError(f"expression: nested deeper than {_MAX_DEPTH} levels")

    def child(key: str) -> Predicate:
        member = _get(data, key, path)
        return _from_json(member, schema, f"{path}.{key}", depth + 1)

    def literal(value: Any) -> Any:
        type_ = bind_column(_term(data, path), schema).type
        if not isinstance(type_, BinaryType | FixedType) or not isinstance(value, str):
            return value
        try:
            return bytes.fromhex(value)
        except ValueError as e:
            raise InvalidRequestError(f"{path}: {short_text(value)} is not hexadecimal") from e

    given_type = data.get("type")
    type_name = given_type.replace("_", "-") if isinstance(given_type, str) else ""
    match type_name:
        case "true":
            return AlwaysTrue()
        case "false":
            return AlwaysFalse()
        case "and":
            return And(child("left"), child("right"))
        case "or":
            return Or(child("left"), child("right"))
        case "not":
            return Not(child("child"))
        case _ if type_name in _TESTS:
            return UnaryPredicate(_TESTS[type_name], _term(data, path))
        case _ if type_name in _COMPARISONS:
            value = literal(_get(data, "value", path))
            return LiteralPredicate(_COMPARISONS[type_name], _term(data, path), value)
        case _ if type_name in _MEMBERSHIPS:
            values = _get(data, "values", path)
            if not isinstance(values, list):
                raise InvalidRequestError(
                    f"{path}.values: expected a list, got {short_text(values)}"
                )
            values = tuple(map(literal, values))
            return SetPredicate(_MEMBERSHIPS[type_name], _term(data, path), values)
        case _:
            raise InvalidRequestError(f"{path}.type: {short_text(given_type)} is not an expression")


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
