"""Parses filters in Spark's SQL dialect to unbound predicates.

Supported conditions are translated exactly; all others are refused, never dropped. Names are
resolved and literals converted later, in `expressions/binding.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    UnaryPredicate,
    UnboundColumn,
    VariantField,
)
from iceberg_pyspark.expressions.rewriting import and_, not_, or_
from iceberg_pyspark.sql_text.literal_values import is_number_type, negated, number_of, typed_value
from iceberg_pyspark.sql_text.parser import SqlTextError, parse_statements

_ALLOWED_FORMS = (
    "allowed are comparisons of one column with literals (=, ==, <=>, !=, <>, <, <=, >, >=), "
    "[NOT] IN (...), [NOT] BETWEEN, IS [NOT] NULL, isnan(c), startswith(c, 'a'), [NOT] LIKE 'a%', "
    "a boolean column, variant_field(v, '$.a', 'bigint') as a column, "
    "st_intersects(g, xmin, ymin, xmax, ymax), true, false, AND, OR, NOT and parentheses"
)
_COMPARISONS: Mapping[type[exp.Expression], tuple[Comparison, Comparison]] = {
    # the operator, and its counterpart for exchanged sides
    exp.EQ: ("eq", "eq"),
    exp.NEQ: ("not_eq", "not_eq"),
    exp.LT: ("lt", "gt"),
    exp.LTE: ("lt_eq", "gt_eq"),
    exp.GT: ("gt", "lt"),
    exp.GTE: ("gt_eq", "lt_eq"),
}
_SHOWN_CHARACTERS = 500


def parse_filter(text: str) -> Predicate:
    """Return the unbound predicate of a text; `InvalidRequestError` names an unsupported part.

    >>> parse_filter("5 <= id AND name LIKE 'ab%'").left
    LiteralPredicate(op='gt_eq', column='id', literal=5)
    """
    excerpt = repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}..."
    try:
        statements = parse_statements(text)
    except SqlTextError as e:
        raise InvalidRequestError(f"the filter {excerpt} cannot be parsed: {e}") from e
    if len(statements) != 1 or not isinstance(statements[0], exp.Expression):
        raise InvalidRequestError(f"the filter {excerpt} is not one condition; {_ALLOWED_FORMS}")
    try:
        return _predicate(statements[0])
    except _NotUnderstoodError as e:
        raise InvalidRequestError(f"the filter {excerpt}: {e}; {_ALLOWED_FORMS}") from e
    except RecursionError as e:
        raise InvalidRequestError("the filter cannot be read: it is nested too deeply") from e


def conjuncts_of(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of the ANDs at the top of a condition."""
    node = _bare_or_itself(node)
    if not isinstance(node, exp.And):
        return [node]
    return [c for operand in _operands(node) for c in conjuncts_of(operand)]


def predicate_of(node: exp.Expression) -> Predicate:
    """Return the unbound predicate of a condition; raise `InvalidRequestError` for others."""
    try:
        return _predicate(node)
    except _NotUnderstoodError as e:
        raise InvalidRequestError(str(e)) from e


def column_name(node: exp.Expression) -> str | None:
    """Return the full dotted name of a column, or None for another expression."""
    try:
        column = _column(node)
    except _NotUnderstoodError:
        return None
    return column if isinstance(column, str) else None


def _bare_or_itself(node: exp.Expression) -> exp.Expression:
    try:
        return _bare(node)
    except _NotUnderstoodError:
        return node


class _NotUnderstoodError(Exception):
    """A part of a filter that cannot be translated to a predicate."""


def _not_understood(node: exp.Expression, why: str = "is not understood") -> _NotUnderstoodError:
    text = node.sql(dialect="spark")
    excerpt = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    return _NotUnderstoodError(f"`{excerpt}` {why}")


def _predicate(node: exp.Expression) -> Predicate:
    match node:
        case exp.Paren():
            return _predicate(_only(node, "this").this)
        case exp.And():
            return and_(*map(_predicate, _operands(node)))
        case exp.Or():
            return or_(*map(_predicate, _operands(node)))
        case exp.Not():
            return not_(_predicate(_only(node, "this").this))
        case exp.Boolean():
            return AlwaysTrue() if node.this else AlwaysFalse()
        case exp.Column() | exp.Dot():
            return LiteralPredicate("eq", _column(node), True)
        case exp.Is():
            _only(node, "this", "expression")
            if not isinstance(node.expression, exp.Null):
                raise _not_understood(node)
            return UnaryPredicate("is_null", _column(node.this))
        case exp.IsNan():
            return UnaryPredicate("is_nan", _column(_only(node, "this").this))
        case exp.NullSafeEQ():
            return _null_safe_equal(node)
        case exp.NullSafeNEQ():
            return not_(_null_safe_equal(node))
        case exp.In():
            _only(node, "this", "expressions")
            literals = tuple(map(_literal, node.expressions))
            return SetPredicate("in", _column(node.this), literals)
        case exp.Between():
            _only(node, "this", "low", "high")
            name = _column(node.this)
            return and_(
                LiteralPredicate("gt_eq", name, _literal(node.args["low"])),
                LiteralPredicate("lt_eq", name, _literal(node.args["high"])),
            )
        case exp.StartsWith():
            _only(node, "this", "expression")
            return LiteralPredicate("starts_with", _column(node.this), _literal(node.expression))
        case exp.Like():
            return _like(node)
        case exp.Anonymous(this=str(name)) if name.lower() in ("isnull", "isnotnull"):
            if len(node.expressions) != 1:
                raise _not_understood(node)
            is_null = UnaryPredicate("is_null", _column(node.expressions[0]))
            return is_null if name.lower() == "isnull" else not_(is_null)
        case exp.Anonymous(this=str(name), expressions=[column, *corners]) if (
            name.lower() == "st_intersects"
        ):
            box = tuple(map(_literal, corners))
            return LiteralPredicate("intersects", _column(column), box)
        case exp.Anonymous() if _is_column(node):
            return LiteralPredicate("eq", _column(node), True)
        case _ if type(node) in _COMPARISONS:
            return _comparison(node)
        case _:
            raise _not_understood(node)


def _only(node: exp.Expression, *known_parts: str) -> exp.Expression:
    """Return the node; raise if the parser found anything besides the supported parts."""
    if any(value for name, value in node.args.items() if name not in known_parts):
        raise _not_understood(node)
    return node


def _operands(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of a chain of AND or OR, without recursion for long chains."""
    _only(node, "this", "expression")
    return [
        operand for operand in node.flatten(unnest=False) if isinstance(operand, exp.Expression)
    ]


def _comparison(node: exp.Expression) -> Predicate:
    column, literal, exchanged = _sides(node)
    return LiteralPredicate(_COMPARISONS[type(node)][exchanged], column, literal)


def _null_safe_equal(node: exp.Expression) -> Predicate:
    column, literal, _ = _sides(node)
    if literal is None:
        return UnaryPredicate("is_null", column)
    # `<=>` is false, not unknown, if the column is null
    return and_(UnaryPredicate("not_null", column), LiteralPredicate("eq", column, literal))


def _is_column(node: exp.Expression) -> bool:
    is_field = isinstance(node, exp.Anonymous) and str(node.this).lower() == "variant_field"
    return is_field or isinstance(node, exp.Column | exp.Dot)


def _sides(node: exp.Expression) -> tuple[UnboundColumn, Any, bool]:
    """Return the column, the literal, and whether the sides are exchanged."""
    _only(node, "this", "expression")
    left_side, right = _bare(node.this), _bare(node.expression)
    if _is_column(left_side):
        if _is_column(right):
            raise _not_understood(node, "compares two columns")
        return _column(left_side), _literal(right), False
    if _is_column(right):
        return _column(right), _literal(left_side), True
    raise _not_understood(node, "does not compare a column with a literal")


def _like(node: exp.Expression) -> Predicate:
    _only(node, "this", "expression", "negate")
    pattern = _bare(node.expression)
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise _not_understood(node)
    prefix = pattern.this[:-1]
    if not pattern.this.endswith("%") or any(c in prefix for c in "%_\\"):
        raise _not_understood(
            node, "is not a prefix pattern: only a single % at the end is allowed"
        )
    prefix_predicate = LiteralPredicate("starts_with", _column(node.this), prefix)
    return not_(prefix_predicate) if node.args.get("negate") else prefix_predicate


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = _only(node, "this").this
    return node


def _column(node: exp.Expression) -> UnboundColumn:
    """Return a column's full dotted name, or the field of a variant column."""
    match _bare(node):
        case exp.Anonymous(this=str(name), expressions=[column, path, type_]) if (
            name.lower() == "variant_field"
        ):
            texts = [_literal(path), _literal(type_)]
            if not all(isinstance(text, str) for text in texts):
                raise _not_understood(node, "takes a column, a path and a type as texts")
            return VariantField(_column_name(column), *texts)
        case _:
            return _column_name(node)


def _column_name(node: exp.Expression) -> str:
    """Return the full dotted name; quoted parts stay unchanged."""
    match _bare(node):
        case exp.Column() as column if all(isinstance(p, exp.Identifier) for p in column.parts):
            _only(column, "this", "table", "db", "catalog")
            return ".".join(part.this for part in column.parts)
        case exp.Dot() as dot if isinstance(dot.expression, exp.Identifier):
            return f"{_column_name(dot.this)}.{dot.expression.this}"
        case _:
            raise _not_understood(node, "is not a column")


def _literal(node: exp.Expression) -> Any:
    node = _bare(node)
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            try:
                return number_of(node.this)
            except (ValueError, InvalidOperation) as e:
                raise _not_understood(node, "is not a number") from e
        case exp.RawString():
            return str(node.this)
        case exp.HexString():
            digits = _only(node, "this").this
            try:
                return bytes.fromhex("0" * (len(digits) % 2) + digits)
            except ValueError as e:
                raise _not_understood(node, "is not hexadecimal") from e
        case exp.Neg():
            value = _literal(_only(node, "this").this)
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise _not_understood(node, "is not a number")
            return negated(value)
        case exp.Cast(this=exp.Literal() as literal):
            _only(node, "this", "to", "requires_string")
            try:
                return _cast(node, literal)
            except (ValueError, InvalidOperation, OverflowError) as e:
                raise _not_understood(node, f"has no value: {e}") from e
        case exp.Concat():
            # adjacent strings, or a doubled quote: Spark versions differ on the latter
            raise _not_understood(node, "is not one literal; write a quote in a string as \\'")
        case _:
            raise _not_understood(node, "is not a literal")


def _cast(node: exp.Expression, literal: exp.Literal) -> Any:
    target = node.args["to"]
    if not isinstance(target.this, exp.DType):
        # a user-defined type name, or an unsupported nested type
        raise _not_understood(node)
    name = target.this.value
    parameters = [int(p.name) for p in target.expressions] if name == "DECIMAL" else []
    is_understood = literal.is_string or is_number_type(name)
    value = typed_value(name, str(literal.this), parameters) if is_understood else None
    if value is None:
        raise _not_understood(node)
    return value
