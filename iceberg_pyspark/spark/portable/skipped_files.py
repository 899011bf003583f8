"""Which rows of the target a condition can select: a predicate by which the format skips files.

A part of the condition is used only if Spark and the predicate surely agree: comparisons of whole
numbers, decimals, strings, dates, timestamps, bytes and booleans with literals of the same kind. In
the ON condition of a MERGE, an equality of a column of the table and one of the source limits the
table's rows to the source's values, or to their range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
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
from iceberg_pyspark.spark.portable.column_conditions import WallClock, conjuncts_of_column
from iceberg_pyspark.spark.portable.portable_target import ALIAS, PortableTarget, column_of
from iceberg_pyspark.spec import types
from iceberg_pyspark.sql_text.lazy_parser import conjuncts_of

if TYPE_CHECKING:
    from iceberg_pyspark.sql_text.conjuncts import Conjuncts

MAX_VALUES = 32 * 1024
"""As many keys of a source are sent to the readers of the table, which leave out other rows."""

_MAX_BYTES = 4 * 1024 * 1024
_MAX_DIGITS = 38
_LEAST_DIGITS = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class ConditionFilter:
    """A predicate that is true for all rows that matter to an operation.

    If it `is_exact`, it is true for no other rows.
    """

    predicate: Predicate
    is_exact: bool = False


def filter_of_condition(target: PortableTarget, condition: str | Column) -> ConditionFilter:
    """Return what selects the rows that fulfil a condition on the table alone."""
    parts = _conjuncts(target, condition)
    found = [_sure(target, part, ALIAS, condition) for part in parts.filters]
    understood = [p for p in found if p is not None]
    is_exact = len(understood) == len(found) and not (parts.left_out or parts.equalities)
    return ConditionFilter(predicate=and_(*understood), is_exact=is_exact)


def filter_of_merge(
    target: PortableTarget, condition: str | Column, source: DataFrame, *, evaluates: bool
) -> ConditionFilter:
    """Return a predicate that is true for all rows that a source row may match.

    With `evaluates`, a job finds the source's keys.
    """
    parts = _conjuncts(target, condition)
    found = [_sure(target, part, None, condition) for part in parts.filters]
    filters = [p for p in found if p is not None]
    keys = [k for a, b in parts.equalities for k in _keys(target, source, a, b)]
    if evaluates and keys:
        filters.append(_limits(target, source, keys))
    return ConditionFilter(predicate=and_(*filters))


def _conjuncts(target: PortableTarget, condition: str | Column) -> Conjuncts:
    if isinstance(condition, str):
        return conjuncts_of(condition)
    return conjuncts_of_column(target.table.spark, condition)


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
    match source:
        case spark_types.StringType():
            return source == spark_types.StringType() and isinstance(own, types.StringType)
        case spark_types.DateType():
            return isinstance(own, types.DateType)
        case spark_types.TimestampType():
            return isinstance(own, types.TimestamptzType)
        case spark_types.TimestampNTZType():
            return isinstance(own, types.TimestampType)
        case spark_types.BinaryType():
            return isinstance(own, types.BinaryType)
        case spark_types.DecimalType():
            if not isinstance(own, types.DecimalType):
                return False
            return _keeps_scale(own, source.precision - source.scale, source.scale)
        case spark_types.IntegralType():
            return isinstance(own, types.IntegerType | types.LongType)
    return False


def _keeps_scale(own: types.DecimalType, digits: int, scale: int) -> bool:
    """Return whether Spark compares the column with such decimals without rounding them."""
    return scale <= own.scale and max(own.precision - own.scale, digits) + own.scale <= _MAX_DIGITS


def _limits(target: PortableTarget, source: DataFrame, keys: Sequence[_Key]) -> Predicate:
    """Return the range of the source's keys, and the keys themselves if they are not too many.

    Values that Python cannot have, such as dates beyond its calendar, limit nothing.
    """
    columns = [column_of(source, key.source).alias(f"k{i}") for i, key in enumerate(keys)]
    # A session collects the first rows without reading the others.
    rows = _in_utc(source.select(*columns).limit(MAX_VALUES + 1).toArrow())
    limits: list[Predicate] = []
    try:
        if rows.num_rows <= MAX_VALUES and rows.nbytes <= _MAX_BYTES:
            for key, column in zip(keys, rows.columns, strict=True):
                values = pc.unique(column.drop_null())
                if not len(values):
                    return AlwaysFalse()
                bounds = pc.min_max(values)
                limits += _range(key, bounds["min"].as_py(), bounds["max"].as_py())
                limits.append(SetPredicate("in", key.name, tuple(values.to_pylist())))
            return and_(*limits)
        both = [f(c).alias(f"{n}{i}") for i, c in enumerate(columns) for f, n in _ENDS]
        (bounds,) = _in_utc(source.agg(*both).toArrow()).to_pylist()
        for i, key in enumerate(keys):
            if bounds[f"a{i}"] is None:
                return AlwaysFalse()
            limits += _range(key, bounds[f"a{i}"], bounds[f"b{i}"])
    except (ValueError, OverflowError):
        return AlwaysTrue()
    return and_(*limits)


_ENDS = ((sql.min, "a"), (sql.max, "b"))


def _in_utc(rows: pa.Table) -> pa.Table:
    """Return rows whose instants have no zone that Python may not know."""
    for i, f in enumerate(rows.schema):
        if pa.types.is_timestamp(f.type) and f.type.tz is not None:
            rows = rows.set_column(i, f.name, rows.column(i).cast(pa.timestamp("us", "UTC")))
    return rows


def _range(key: _Key, least: Any, greatest: Any) -> list[Predicate]:
    return [
        LiteralPredicate("gt_eq", key.name, least),
        LiteralPredicate("lt_eq", key.name, greatest),
    ]


def _sure(
    target: PortableTarget, part: Predicate, alias: str | None, condition: str | Column
) -> Predicate | None:
    """Return a predicate on the table's columns, or None unless Spark surely agrees with it.

    Names begin with `t`, or may begin with `alias`: where there is a source, only names with `t`
    are the table's.
    """

    def sure(part: Predicate) -> Predicate | None:
        match part:
            case AlwaysTrue() | AlwaysFalse():
                return part
            case And(left, right) | Or(left, right):
                both = sure(left), sure(right)
                if both[0] is None or both[1] is None:
                    return None
                return and_(both[0], both[1]) if isinstance(part, And) else or_(both[0], both[1])
            case Not(child):
                inner = sure(child)
                return None if inner is None else not_(inner)
            case UnaryPredicate(op, column) if op in ("is_null", "not_null"):
                name = _own_name(target, column, alias)
                return None if name is None else UnaryPredicate(op, name)
            case LiteralPredicate(op, column, literal):
                name = _own_name(target, column, alias)
                values = None if name is None else literals(name, [literal])
                if name is None or values is None:
                    return None
                return LiteralPredicate(op, name, values[0])
            case SetPredicate(op, column, given):
                name = _own_name(target, column, alias)
                values = None if name is None else literals(name, given)
                return None if name is None or values is None else SetPredicate(op, name, values)
        return None

    def literals(name: str, given: Iterable[Any]) -> tuple[Any, ...] | None:
        type_ = target.schema.find(name).type
        values = []
        for literal in given:
            value = _comparable(target, type_, literal, condition)
            if value is None:
                return None
            values.append(value)
        return tuple(values)

    return sure(part)


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


def _comparable(
    target: PortableTarget, type_: types.Type, literal: object, condition: str | Column
) -> Any:
    """Return the value of a column's type that Spark compares the column with, or None."""
    match type_:
        case types.BooleanType():
            return literal if isinstance(literal, bool) else None
        case types.IntegerType() | types.LongType():
            return literal if isinstance(literal, int) and not isinstance(literal, bool) else None
        case types.DecimalType():
            is_number = isinstance(literal, int | Decimal) and not isinstance(literal, bool)
            return literal if is_number and _fits(type_, Decimal(literal)) else None  # type: ignore[arg-type]
        case types.StringType():
            return literal if isinstance(literal, str) else None
        case types.BinaryType():
            return literal if isinstance(literal, bytes) else None
        case types.DateType():
            is_date = isinstance(literal, date) and not isinstance(literal, datetime)
            return literal if is_date else None
        case types.TimestamptzType():
            moment = literal.moment if isinstance(literal, WallClock) else literal
            if isinstance(moment, datetime) and moment.tzinfo is not None:
                return moment
            return _instant(target, moment) if isinstance(moment, date) else None
        case types.TimestampType():
            if isinstance(literal, WallClock):
                return literal.moment
            if isinstance(literal, datetime):
                has_one = literal.tzinfo is None and _has_wall_clocks(condition)
                return literal if has_one else None
            return datetime.combine(literal, time()) if isinstance(literal, date) else None
    return None


def _fits(own: types.DecimalType, literal: Decimal) -> bool:
    exponent = literal.as_tuple().exponent
    if not isinstance(exponent, int):
        return False
    # A client sends each decimal as one of at least ten digits.
    return _keeps_scale(own, max(literal.adjusted() + 1, _LEAST_DIGITS), max(-exponent, 0))


def _has_wall_clocks(condition: str | Column) -> bool:
    """Return whether timestamps without zone in a text are TIMESTAMP_NTZ in every session."""
    if not isinstance(condition, str):
        return False
    return "timestamp" not in condition.lower().replace("timestamp_ntz", "")


def _instant(target: PortableTarget, moment: date) -> datetime | None:
    """Return the instant that the session sees in a date, or in a timestamp without zone."""
    kind = "TIMESTAMP_NTZ" if isinstance(moment, datetime) else "DATE"
    text = moment.isoformat(*([" "] if isinstance(moment, datetime) else []))
    query = f"SELECT unix_micros(CAST({kind} '{text}' AS TIMESTAMP_LTZ))"
    try:
        (row,) = target.table.spark.sql(query).collect()
        return _EPOCH + timedelta(microseconds=row[0])
    except (PySparkException, OverflowError):
        return None
