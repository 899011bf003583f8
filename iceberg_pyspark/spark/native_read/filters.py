"""A bound predicate as a condition of Spark's, exact in three-valued logic.

Predicates select rows as SQL does, NaN above all other values (`arrow/read/row_filter.py`), so each
leaf has one counterpart. A column or type without an exact one has no condition, and the scan is
read portably.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as sql

from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundColumn,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    Not,
    Or,
    Predicate,
)
from iceberg_pyspark.expressions.rewriting import not_bound
from iceberg_pyspark.spark.native_read.columns import sql_literal
from iceberg_pyspark.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from iceberg_pyspark.sql_text.names import quoted

_EXACT_TYPES = (
    BooleanType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    DateType,
    TimestampType,
    TimestamptzType,
    StringType,
)
_DAYS = range(-719_162, 2_932_897)
"""The years 1 to 9999, whose texts Spark and Iceberg write alike."""
_MICROS = range(_DAYS.start * 86_400_000_000, _DAYS.stop * 86_400_000_000)


def is_exact(predicate: Predicate) -> bool:
    """Whether `condition_of` has a condition that selects the very rows."""
    match predicate:
        case AlwaysTrue() | AlwaysFalse():
            return True
        case And(left, right) | Or(left, right):
            return is_exact(left) and is_exact(right)
        case Not(child):
            return is_exact(child)
        case BoundUnary(column=column):
            return _is_native(column)
        case BoundLiteral(column=column, literal=literal):
            return _is_native(column) and _is_near(column, literal)
        case BoundSet(column=column, literals=literals):
            return _is_native(column) and all(_is_near(column, v) for v in literals)
        case _:
            raise not_bound(predicate)


def condition_of(predicate: Predicate, names: Mapping[int, str]) -> Column:
    """The condition, with columns called as `names` says by field id."""
    match predicate:
        case AlwaysTrue():
            return sql.lit(True)
        case AlwaysFalse():
            return sql.lit(False)
        case And(left, right):
            return condition_of(left, names) & condition_of(right, names)
        case Or(left, right):
            return condition_of(left, names) | condition_of(right, names)
        case Not(child):
            return ~condition_of(child, names)
        case BoundUnary():
            return _test(predicate, _column(predicate.column, names))
        case BoundLiteral():
            return _comparison(predicate, _column(predicate.column, names))
        case BoundSet():
            is_in = _column(predicate.column, names).isin(
                [_literal(predicate.column, v) for v in predicate.literals]
            )
            return ~is_in if predicate.op == "not_in" else is_in
        case _:
            raise not_bound(predicate)


def _is_native(column: BoundColumn) -> bool:
    return isinstance(column.type, _EXACT_TYPES)


def _is_near(column: BoundColumn, value: object) -> bool:
    if isinstance(column.type, TimestampType | TimestamptzType):
        return value in _MICROS
    if isinstance(column.type, DateType):
        return value in _DAYS
    return True


def _column(column: BoundColumn, names: Mapping[int, str]) -> Column:
    return sql.col(quoted(names[column.field_id]))


def _literal(column: BoundColumn, value: object) -> Column:
    if isinstance(column.type, StringType):
        # a literal in SQL would depend on the session's settings for escapes
        return sql.lit(value)
    return sql.expr(sql_literal(column.type, value))


def _test(leaf: BoundUnary, column: Column) -> Column:
    match leaf.op:
        case "is_null":
            return column.isNull()
        case "not_null":
            return column.isNotNull()
    is_nan = (
        sql.isnan(column)
        if isinstance(leaf.column.type, FloatType | DoubleType)
        else sql.lit(False)
    )
    return is_nan if leaf.op == "is_nan" else ~is_nan


def _comparison(leaf: BoundLiteral, column: Column) -> Column:
    literal = _literal(leaf.column, leaf.literal)
    match leaf.op:
        case "lt":
            return column < literal
        case "lt_eq":
            return column <= literal
        case "gt":
            return column > literal
        case "gt_eq":
            return column >= literal
        case "eq":
            return column == literal
        case "not_eq":
            return column != literal
    starts = column.startswith(literal)
    return ~starts if leaf.op == "not_starts_with" else starts
