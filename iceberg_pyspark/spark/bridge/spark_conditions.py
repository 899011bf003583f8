"""Converts Spark's filter conditions, as the bridge describes them, to predicates.

A predicate may keep more rows than the condition, never fewer: unsupported parts prune nothing, and
Spark still evaluates the whole condition on the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.literals import nearest_float
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.expressions.rewriting import and_, leaves_of, not_, or_
from iceberg_pyspark.spark.bridge.protocol.messages import (
    ColumnPath,
    Expression,
    LiteralValue,
    Operator,
)
from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import UUIDType

_COMPARISONS: Mapping[str, Comparison] = {
    "EqualTo": "eq",
    "LessThan": "lt",
    "LessThanOrEqual": "lt_eq",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "gt_eq",
}
_MIRRORED_COMPARISONS: Mapping[Comparison, Comparison] = {
    "eq": "eq",
    "lt": "gt",
    "lt_eq": "gt_eq",
    "gt": "lt",
    "gt_eq": "lt_eq",
}

_CANONICAL_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _NotUnderstoodError(Exception):
    """The exception for a part of a condition that has no predicate."""


def inclusive_predicate_of(condition: Expression | None, schema: Schema) -> Predicate:
    """Return the bound predicate of a condition; unsupported parts keep all rows."""
    if condition is None:
        return AlwaysTrue()
    return _inclusive(condition, schema)


def comparable_predicate_of(condition: Expression | None, schema: Schema) -> Predicate | None:
    """Return the bound predicate that selects exactly the condition's rows, or None if there is
    none.

    Only types that Spark and Iceberg order alike are supported: no floats, bytes or uuids.
    """
    if condition is None:
        return AlwaysTrue()
    try:
        predicate = _bound(_exact(condition, schema), schema)
    except (_NotUnderstoodError, InvalidRequestError):
        return None
    leaves = leaves_of(predicate)
    alike = all(isinstance(leaf.column.type, COMPARED_TYPES) for leaf in leaves)
    return predicate if alike else None


def exact_predicate_of(condition: Expression, schema: Schema) -> Predicate:
    """Return the bound predicate that selects exactly the condition's rows, or raise
    `InvalidRequestError`.
    """
    try:
        predicate = _exact(condition, schema)
    except _NotUnderstoodError as e:
        raise InvalidRequestError(
            f"the condition of the overwrite cannot be evaluated on the metadata of files ({e}); "
            "compare columns with literals, or delete the rows first"
        ) from e
    return _bound(predicate, schema)


def _bound(predicate: Predicate, schema: Schema) -> Predicate:
    """Bind a predicate to columns that Spark has found; it keeps the spelling of the query."""
    return bind(predicate, schema, case_sensitive=None)


def _inclusive(node: Expression, schema: Schema) -> Predicate:
    match node:
        case Operator(op="and", args=args):
            return and_(*(_inclusive(a, schema) for a in args))
        case Operator(op="or", args=args):
            return or_(*(_inclusive(a, schema) for a in args))
    try:
        return _bound(_exact(node, schema), schema)
    except (_NotUnderstoodError, InvalidRequestError):
        return AlwaysTrue()


def _exact(node: Expression, schema: Schema) -> Predicate:
    match node:
        case LiteralValue(type="boolean", value=bool(value)):
            return AlwaysTrue() if value else AlwaysFalse()
        case Operator(op=op, args=args):
            return _exact_operator(op, args, schema)
    raise _NotUnderstoodError("a value that is not a condition")


def _exact_operator(op: str, args: Sequence[Expression], schema: Schema) -> Predicate:
    match op:
        case "and":
            return and_(*(_exact(a, schema) for a in args))
        case "or":
            return or_(*(_exact(a, schema) for a in args))
        case "not":
            return not_(_exact(args[0], schema))
        case "is_null":
            return UnaryPredicate("is_null", _column(args[0]))
        case "not_null":
            return UnaryPredicate("not_null", _column(args[0]))
        case "is_nan":
            return UnaryPredicate("is_nan", _column(args[0]))
        case "starts_with":
            return LiteralPredicate("starts_with", *_comparison(args[0], args[1], schema))
        case "in":
            values = tuple(_comparison(args[0], a, schema)[1] for a in args[1:])
            return SetPredicate("in", _column(args[0]), values)
        case "EqualNullSafe":
            return _null_safe(args, schema)
    comparison = _COMPARISONS.get(op)
    if comparison is None:
        raise _NotUnderstoodError(op)
    if isinstance(args[1], ColumnPath):
        return LiteralPredicate(
            _MIRRORED_COMPARISONS[comparison], *_comparison(args[1], args[0], schema)
        )
    return LiteralPredicate(comparison, *_comparison(args[0], args[1], schema))


def _comparison(column: Expression, literal: Expression, schema: Schema) -> tuple[str, Any]:
    """Return the column's name and the value that the column is compared with."""
    name, value = _column(column), literal_value(literal)
    is_uuid = isinstance(schema.find(name, case_sensitive=None).type, UUIDType)
    if is_uuid and value is not None and not _CANONICAL_UUID.fullmatch(value):
        raise _NotUnderstoodError(
            "Spark compares uuids as strings, and this string is not in the same form"
        )
    return name, value


def _null_safe(args: Sequence[Expression], schema: Schema) -> Predicate:
    column, literal = args if isinstance(args[0], ColumnPath) else (args[1], args[0])
    if isinstance(literal, LiteralValue) and literal.value is None:
        return UnaryPredicate("is_null", _column(column))
    # Under a NOT, `eq` alone would keep too few rows: null <=> 1 is false, but null = 1 is unknown.
    return and_(
        UnaryPredicate("not_null", _column(column)),
        LiteralPredicate("eq", *_comparison(column, literal, schema)),
    )


def _column(node: Expression) -> str:
    if not isinstance(node, ColumnPath):
        raise _NotUnderstoodError("not a column")
    return ".".join(node.path)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def literal_value(node: Expression) -> Any:
    """Return the value of a literal, which Spark encodes internally: days, microseconds, text."""
    if not isinstance(node, LiteralValue):
        raise _NotUnderstoodError("not a literal")
    value: Any = node.value
    type_ = node.type
    if value is None:
        return None
    try:
        match type_:
            case "date":
                return date(1970, 1, 1) + timedelta(days=value)
            case "timestamp":
                return _EPOCH + timedelta(microseconds=value)
            case "timestamp_ntz":
                return (_EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
            case "double":
                return float(value)
            case "float":
                # Java's text has the digits that tell it from other floats, not from doubles
                return nearest_float(float(value))
            case "binary":
                return bytes.fromhex(value)
            case _ if type_.startswith("timestamp_"):
                zone = "+00:00" if type_.startswith("timestamp_ltz") else ""
                return _text_of_nanos(int(value), zone)
            case "boolean" | "byte" | "short" | "integer" | "long" | "string":
                return value
    except OverflowError as e:
        raise _NotUnderstoodError("a time beyond Python's calendar") from e
    if type_.startswith("decimal"):
        return Decimal(value)
    if type_.startswith("time("):
        seconds, nanos = divmod(value, 1_000_000_000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, nanos // 1000)
    raise _NotUnderstoodError(type_)


def _text_of_nanos(nanos: int, zone: str) -> str:
    """Return a time in nanoseconds since 1970 as text, because Python's times have microseconds."""
    seconds, fraction = divmod(nanos, 1_000_000_000)
    moment = _EPOCH.replace(tzinfo=None) + timedelta(seconds=seconds)
    return f"{moment.isoformat()}.{fraction:09d}{zone}"
