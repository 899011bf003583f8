"""Shows predicates and their values in messages, as conditions of Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from iceberg_pyspark.display import cut_off, quoted
from iceberg_pyspark.expressions import predicates
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.json_fields import short_text
from iceberg_pyspark.spec.values import value_to_json

_SHOWN_CHARACTERS = 500
_SHOWN_VALUES = 20
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPERATORS: Mapping[predicates.Comparison, str] = {
    "lt": "<",
    "lt_eq": "<=",
    "gt": ">",
    "gt_eq": ">=",
    "eq": "=",
    "not_eq": "<>",
}
_TESTS: Mapping[predicates.Test, str] = {
    "is_null": "{} IS NULL",
    "not_null": "{} IS NOT NULL",
    "is_nan": "isnan({})",
    "not_nan": "NOT isnan({})",
}
_KEYWORDS: Mapping[type[types.Type], str] = {
    types.DateType: "DATE",
    types.TimestampType: "TIMESTAMP_NTZ",
    types.TimestampNsType: "TIMESTAMP_NTZ",
    types.TimestamptzType: "TIMESTAMP",
    types.TimestamptzNsType: "TIMESTAMP",
}


def condition_text(predicate: predicates.Predicate) -> str:
    """Return a predicate, bound or not, as SQL; a long text is cut off.

    >>> from iceberg_pyspark.expressions.predicates import And, LiteralPredicate, UnaryPredicate
    >>> condition_text(And(LiteralPredicate("gt", "id", 3), UnaryPredicate("not_null", "a b")))
    'id > 3 AND `a b` IS NOT NULL'
    """
    return cut_off(_text(predicate), _SHOWN_CHARACTERS)


def literal_text(literal: Any) -> str:
    """Return a Python literal of an unbound predicate as SQL; a long text is cut off."""
    return cut_off(_literal(literal), _SHOWN_CHARACTERS // 5)


def _literal(literal: Any) -> str:
    match literal:
        case None:
            return "NULL"
        case bool():
            return "true" if literal else "false"
        case str():
            return sql_string(literal)
        case datetime():
            keyword = "TIMESTAMP_NTZ" if literal.tzinfo is None else "TIMESTAMP"
            return f"{keyword}'{literal.isoformat(' ')}'"
        case date():
            return f"DATE'{literal.isoformat()}'"
        case time():
            return sql_string(literal.isoformat())
        case tuple():
            return ", ".join(map(_literal, literal))
        case bytes() | bytearray() | memoryview():
            return f"X'{bytes(literal).hex()}'"
        case Decimal():
            return format(literal, "f") if literal.is_finite() else str(literal)
        case int() | float() | UUID():
            return str(literal)
        case _:
            return short_text(literal)


def _text(predicate: predicates.Predicate) -> str:
    match predicate:
        case predicates.AlwaysTrue():
            return "true"
        case predicates.AlwaysFalse():
            return "false"
        case predicates.And(left, right):
            return f"{_operand(left, predicates.Or)} AND {_operand(right, predicates.Or)}"
        case predicates.Or(left, right):
            return f"{_operand(left, predicates.And)} OR {_operand(right, predicates.And)}"
        case predicates.Not(child):
            return f"NOT ({_text(child)})"
        case predicates.UnaryPredicate(op, column):
            return _TESTS[op].format(_name(column))
        case predicates.BoundUnary(op, column):
            return _TESTS[op].format(_name(column.name))
        case predicates.LiteralPredicate(op, column, literal):
            return _comparison(op, _name(column), _literal(literal))
        case predicates.BoundLiteral(op, column, literal):
            return _comparison(op, _name(column.name), _bound_text(column, literal))
        case predicates.SetPredicate(op, column, literals):
            return _membership(op, _name(column), map(_literal, literals))
        case predicates.BoundSet(op, column, literals):
            texts = (_bound_text(column, v) for v in sorted(literals))
            return _membership(op, _name(column.name), texts)


def _operand(predicate: predicates.Predicate, other: type[Any]) -> str:
    text = _text(predicate)
    return f"({text})" if isinstance(predicate, other) else text


def _comparison(op: predicates.Comparison, name: str, value: str) -> str:
    if op == "starts_with":
        return f"startswith({name}, {value})"
    if op == "intersects" or op == "not_intersects":
        return f"{'NOT ' if op == 'not_intersects' else ''}st_intersects({name}, {value})"
    if op == "not_starts_with":
        return f"NOT startswith({name}, {value})"
    return f"{name} {_OPERATORS[op]} {value}"


def _membership(op: predicates.Membership, name: str, values: Iterable[str]) -> str:
    texts = list(values)
    if len(texts) > _SHOWN_VALUES:
        texts = [*texts[:_SHOWN_VALUES], f"... {len(texts)} values"]
    return f"{name} {'NOT IN' if op == 'not_in' else 'IN'} ({', '.join(texts)})"


def _bound_text(column: predicates.BoundColumn, value: Any) -> str:
    if isinstance(value, tuple):
        return _literal(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    json_value = value_to_json(column.type, value)
    if isinstance(column.type, types.DecimalType):
        return str(json_value)
    keyword = _KEYWORDS.get(type(column.type))
    if keyword is not None:
        return f"{keyword}'{json_value}'"
    return _literal(json_value)


def _name(name: str | predicates.VariantField) -> str:
    text = str(name)
    is_plain = text.startswith("variant_field(") or _PLAIN_NAME.fullmatch(text)
    return text if is_plain else quoted(text)


def sql_string(text: str) -> str:
    """Return a string as a literal of SQL."""
    # as Spark's own settings have it, and the filters of `sql_text/filters.py`
    escaped_text = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped_text}'"
