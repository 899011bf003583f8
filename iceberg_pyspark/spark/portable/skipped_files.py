"""Which rows of the target a condition can select: a predicate by which the format skips files.

A part of the condition is used only if Spark and the predicate surely agree: comparisons of whole
numbers, strings, dates and booleans with literals of the same kind. In the ON condition of a MERGE,
an equality of a column of the table and one of the source limits the table's rows to the range of
the source's values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind_column
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    LiteralPredicate,
    Not,
    Or,
    Predicate,
    SetPredicate,
    UnaryPredicate,
    VariantField,
)
from iceberg_pyspark.expressions.rewriting import and_, not_, or_
from iceberg_pyspark.spark.portable.portable_target import ALIAS, PortableTarget, column_of
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.conjuncts import parse_conjuncts

MAX_VALUES = 256
MIN_TABLE_BYTES = 128 * 1024 * 1024
"""Only a larger table is read more quickly if its files are skipped by the source's range; for the
conflicts with others' rows the range is always of use."""

_RANGE_TYPES = (
    spark_types.ByteType,
    spark_types.ShortType,
    spark_types.IntegerType,
    spark_types.LongType,
    spark_types.DateType,
    spark_types.StringType,
)


def filter_of_condition(target: PortableTarget, condition: str | None) -> Predicate:
    """Return a predicate that is true for all rows that fulfil a condition on the table alone."""
    if condition is None:
        return AlwaysTrue()
    parts = parse_conjuncts(condition).filters
    return and_(*(p for part in parts if (p := _sure(target, part, ALIAS)) is not None))


def filter_of_merge(
    target: PortableTarget, condition: str | None, source: DataFrame, *, evaluates: bool
) -> Predicate:
    """Return a predicate that is true for all rows that a source row may match.

    With `evaluates`, a job finds the range of the source's keys.
    """
    if condition is None:
        return AlwaysTrue()
    parts = parse_conjuncts(condition)
    filters = [p for part in parts.filters if (p := _sure(target, part, None)) is not None]
    keys = [k for a, b in parts.equalities for k in _keys(target, source, a, b)]
    if evaluates and keys:
        filters.append(_range(target, source, keys))
    return and_(*filters)


@dataclass(frozen=True)
class _Key:
    """A column of the table that equals a column of the source."""

    name: str
    source: str


def _keys(target: PortableTarget, source: DataFrame, left: str, right: str) -> list[_Key]:
    keys = []
    for own, other in ((left, right), (right, left)):
        qualifier, _, name = own.partition(".")
        of_source, _, column = other.partition(".")
        if not _same(target, qualifier, ALIAS) or not column or _same(target, of_source, ALIAS):
            continue
        matches = [c for c in source.columns if _same(target, c, column)]
        found = _column(target, name)
        if len(matches) != 1 or found is None or "." in name:
            continue
        if _has_range(source.schema[matches[0]].dataType, found.type):
            keys.append(_Key(found.name, matches[0]))
    return keys


def _has_range(source: spark_types.DataType, own: types.Type) -> bool:
    if isinstance(source, spark_types.StringType):
        return source == spark_types.StringType() and isinstance(own, types.StringType)
    if isinstance(source, spark_types.DateType):
        return isinstance(own, types.DateType)
    whole = isinstance(own, types.IntegerType | types.LongType)
    return whole and isinstance(source, _RANGE_TYPES)


def _range(target: PortableTarget, source: DataFrame, keys: Sequence[_Key]) -> Predicate:
    """Return the range of the source's keys; dates beyond Python's calendar limit nothing."""
    both = ((sql.min, "a"), (sql.max, "b"))
    columns = [
        f(column_of(source, k.source)).alias(f"{n}{i}") for i, k in enumerate(keys) for f, n in both
    ]
    limits: list[Predicate] = []
    try:
        bounds = source.agg(*columns).collect()[0]
        for i, key in enumerate(keys):
            least, greatest = bounds[2 * i], bounds[2 * i + 1]
            if least is None:
                return AlwaysFalse()
            limits.append(LiteralPredicate("gt_eq", key.name, least))
            limits.append(LiteralPredicate("lt_eq", key.name, greatest))
            if key.name in target.partition_columns and least != greatest:
                column = column_of(source, key.source).alias("v")
                rows = source.select(column).distinct().limit(MAX_VALUES + 1).collect()
                values = tuple(r[0] for r in rows if r[0] is not None)
                if len(rows) <= MAX_VALUES:
                    limits.append(SetPredicate("in", key.name, values))
    except (ValueError, OverflowError):
        return AlwaysTrue()
    return and_(*limits)


def _sure(target: PortableTarget, part: Predicate, alias: str | None) -> Predicate | None:
    """Return a predicate on the table's columns, or None unless Spark surely agrees with it.

    Names begin with `t`, or may begin with `alias`: where there is a source, only names with `t`
    are the table's.
    """
    match part:
        case AlwaysTrue() | AlwaysFalse():
            return part
        case And(left, right) | Or(left, right):
            both = _sure(target, left, alias), _sure(target, right, alias)
            if both[0] is None or both[1] is None:
                return None
            return and_(both[0], both[1]) if isinstance(part, And) else or_(both[0], both[1])
        case Not(child):
            inner = _sure(target, child, alias)
            return None if inner is None else not_(inner)
        case UnaryPredicate(op, column) if op in ("is_null", "not_null"):
            name = _own_name(target, column, alias)
            return None if name is None else UnaryPredicate(op, name)
        case LiteralPredicate(op, column, literal):
            name = _own_name(target, column, alias)
            if name is None or not _compares(target.schema, name, [literal]):
                return None
            return LiteralPredicate(op, name, literal)
        case SetPredicate(op, column, literals):
            name = _own_name(target, column, alias)
            if name is None or not _compares(target.schema, name, literals):
                return None
            return SetPredicate(op, name, literals)
    return None


def _own_name(target: PortableTarget, column: str | VariantField, alias: str | None) -> str | None:
    """Return the table's own name of a column of a condition, or None if it is not surely one."""
    if isinstance(column, VariantField):
        return None
    if any(_same(target, f.name, ALIAS) for f in target.schema.fields):
        return None
    first, _, rest = column.partition(".")
    if _same(target, first, ALIAS):
        column = rest
    elif alias is None:
        return None
    found = _column(target, column)
    return None if found is None else found.name


def _column(target: PortableTarget, name: str) -> Any:
    try:
        return bind_column(name, target.schema, case_sensitive=target.case_sensitive)
    except InvalidRequestError:
        return None


def _same(target: PortableTarget, a: str, b: str) -> bool:
    return a == b if target.case_sensitive else a.lower() == b.lower()


def _compares(schema: Schema, name: str, literals: Iterable[Any]) -> bool:
    type_ = schema.find(name).type
    return all(_is_of(type_, literal) for literal in literals)


def _is_of(type_: types.Type, literal: object) -> bool:
    match type_:
        case types.IntegerType() | types.LongType():
            return isinstance(literal, int) and not isinstance(literal, bool)
        case types.StringType():
            return isinstance(literal, str)
        case types.BooleanType():
            return isinstance(literal, bool)
        case types.DateType():
            return isinstance(literal, date) and not isinstance(literal, datetime)
    return False
