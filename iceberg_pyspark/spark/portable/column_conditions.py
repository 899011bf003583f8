"""The parts of a condition given as a Column that can be understood without Spark.

A client's Column is a message, that of a classic session a tree of nodes in the JVM. Of both, only
calls, columns by name, literals and texts are understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, SparkSession

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.expressions.rewriting import and_, not_, or_
from iceberg_pyspark.spark.bridge.column_nodes import (
    Call,
    ColumnNode,
    LiteralNode,
    NamedColumn,
    SqlText,
    node_of_column,
)
from iceberg_pyspark.sql_text.lazy_parser import conjuncts_of
from iceberg_pyspark.sql_text.names import parse_levels

if TYPE_CHECKING:
    from iceberg_pyspark.sql_text.conjuncts import Conjuncts

_COMPARISONS: Mapping[str, tuple[Comparison, Comparison]] = {
    "==": ("eq", "eq"),
    "=": ("eq", "eq"),
    "<": ("lt", "gt"),
    "<=": ("lt_eq", "gt_eq"),
    ">": ("gt", "lt"),
    ">=": ("gt_eq", "lt_eq"),
}
"""The comparisons by the name of Spark's function, and those with exchanged sides."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PLAIN_LITERALS = ("boolean", "byte", "short", "integer", "long", "string", "binary")


class _NotUnderstoodError(Exception):
    """A part of a condition that has no predicate."""


def conjuncts_of_column(spark: SparkSession, column: Column) -> Conjuncts:
    """Return what is understood of a condition; instants are datetimes with a zone."""
    message = message_of(spark, column)
    node = node_of_column(column) if message is None else _of_message(message)
    filters: list[Predicate] = []
    equalities: list[tuple[str, str]] = []
    left_out = False
    for part in _parts(node):
        match part:
            case SqlText(text):
                found = conjuncts_of(text)
                filters += found.filters
                equalities += found.equalities
                left_out = left_out or found.left_out
            case Call("==" | "=", [NamedColumn(a), NamedColumn(b)]):
                equalities.append((a, b))
            case _:
                try:
                    filters.append(_predicate(part))
                except _NotUnderstoodError:
                    left_out = True
    from iceberg_pyspark.sql_text.conjuncts import Conjuncts  # noqa: PLC0415  # it needs sqlglot

    return Conjuncts(tuple(filters), tuple(equalities), left_out)


def message_of(spark: SparkSession, column: Column) -> Any:
    """Return the message (`pyspark.sql.connect.proto.Expression`) of a client's column, or None."""
    if not type(column).__module__.startswith("pyspark.sql.connect."):
        return None
    to_message: Any = column.to_plan
    return to_message(spark.client)


def _parts(node: ColumnNode) -> list[ColumnNode]:
    if isinstance(node, Call) and node.name == "and":
        return [part for argument in node.arguments for part in _parts(argument)]
    return [node]


def _predicate(node: ColumnNode) -> Predicate:
    match node:
        case LiteralNode(bool(value)):
            return AlwaysTrue() if value else AlwaysFalse()
        case NamedColumn(name):
            return LiteralPredicate("eq", name, True)
        case SqlText(text):
            found = conjuncts_of(text)
            if found.left_out or found.equalities:
                raise _NotUnderstoodError
            return and_(*found.filters)
        case Call("and", arguments):
            return and_(*map(_predicate, arguments))
        case Call("or", arguments):
            return or_(*map(_predicate, arguments))
        case Call("not" | "!", [argument]):
            return not_(_predicate(argument))
        case Call("isnull", [NamedColumn(name)]):
            return UnaryPredicate("is_null", name)
        case Call("isnotnull", [NamedColumn(name)]):
            return UnaryPredicate("not_null", name)
        case Call("startswith", [NamedColumn(name), LiteralNode(str(prefix))]):
            return LiteralPredicate("starts_with", name, prefix)
        case Call("in", [NamedColumn(name), *values]):
            literals = [v for v in values if isinstance(v, LiteralNode)]
            if len(literals) == len(values):
                return SetPredicate("in", name, tuple(v.value for v in literals))
        case Call(
            "<=>", [NamedColumn(name), LiteralNode(value)] | [LiteralNode(value), NamedColumn(name)]
        ):
            if value is None:
                return UnaryPredicate("is_null", name)
            return and_(UnaryPredicate("not_null", name), LiteralPredicate("eq", name, value))
        case Call(op, [NamedColumn(name), LiteralNode(value)]) if op in _COMPARISONS:
            return LiteralPredicate(_COMPARISONS[op][0], name, value)
        case Call(op, [LiteralNode(value), NamedColumn(name)]) if op in _COMPARISONS:
            return LiteralPredicate(_COMPARISONS[op][1], name, value)
    raise _NotUnderstoodError


def _name(text: str) -> ColumnNode:
    try:
        return NamedColumn(".".join(parse_levels(text)))
    except InvalidRequestError:
        return None


def _of_message(message: Any) -> ColumnNode:
    """Return the node of a client's message (`pyspark.sql.connect.proto.Expression`)."""
    match message.WhichOneof("expr_type"):
        case "expression_string":
            return SqlText(message.expression_string.expression)
        case "unresolved_attribute":
            attribute = message.unresolved_attribute
            # One with a plan's id is a column of that DataFrame, whatever its name.
            bound = attribute.HasField("plan_id") or attribute.is_metadata_column
            return None if bound else _name(attribute.unparsed_identifier)
        case "literal":
            return _literal_of_message(message.literal)
        case "unresolved_function":
            function = message.unresolved_function
            if function.is_distinct or function.is_user_defined_function:
                return None
            arguments = [_of_message(a) for a in function.arguments]
            return Call(function.function_name.lower(), arguments)
    return None


def _literal_of_message(literal: Any) -> ColumnNode:
    kind = literal.WhichOneof("literal_type")
    if kind == "null":
        return LiteralNode(None)
    value = getattr(literal, kind)
    if kind in _PLAIN_LITERALS:
        return LiteralNode(value)
    try:
        match kind:
            case "decimal":
                return LiteralNode(Decimal(value.value))
            case "date":
                return LiteralNode(date(1970, 1, 1) + timedelta(days=value))
            case "timestamp":
                return LiteralNode(_EPOCH + timedelta(microseconds=value))
            case "timestamp_ntz":
                wall_clock = _EPOCH + timedelta(microseconds=value)
                return LiteralNode(WallClock(wall_clock.replace(tzinfo=None)))
    except OverflowError:
        pass
    return None


@dataclass(frozen=True, slots=True)
class WallClock:
    """A literal of the type TIMESTAMP_NTZ."""

    moment: datetime
