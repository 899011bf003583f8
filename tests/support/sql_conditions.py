"""Random conditions, as Spark SQL text and as Python functions that evaluate them on a row.

A row is a dict by column name; structs are dicts again. Truth has three values; None is unknown. As
in Spark, NaN equals NaN and is greater than every other value.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from tests.support.plain_values import UNORDERED_TYPES, plain_values

Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = bool | None

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
}


@dataclass(frozen=True)
class Condition:
    """A condition; `is_filter` states whether the option `filter` accepts it too."""

    text: str
    decide: Callable[[Row], Truth]
    is_filter: bool = True

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Column:
    """A column, or a field of a struct."""

    path: tuple[str, ...]
    type: Type

    @property
    def text(self) -> str:
        """The column's name in SQL."""
        return ".".join(f"`{name}`" for name in self.path)

    def of(self, row: Row) -> Any:
        """Return the column's value in a row, or None in a null struct."""
        value: Any = row
        for name in self.path:
            value = None if value is None else value[name]
        return value


def columns_of(struct: StructType, above: tuple[str, ...] = ()) -> Iterator[Column]:
    """Yield all columns, and all fields of structs."""
    for f in struct.fields:
        yield Column((*above, f.name), f.type)
        if isinstance(f.type, StructType):
            yield from columns_of(f.type, (*above, f.name))


def conditions(struct: StructType, above: tuple[str, ...] = ()) -> SearchStrategy[Condition]:
    """Return a strategy for conditions on columns; `above` qualifies them, as in `t.id`."""
    leaf = st.sampled_from(list(columns_of(struct, above))).flatmap(_leaves)
    return st.recursive(leaf, _composed, max_leaves=4)


def _composed(inner: SearchStrategy[Condition]) -> SearchStrategy[Condition]:
    return st.one_of(
        st.builds(both, inner, inner), st.builds(_or, inner, inner), st.builds(_not, inner)
    )


def both(a: Condition, b: Condition) -> Condition:
    """Return the two conditions joined by AND."""

    def decide(row: Row) -> Truth:
        result = (a.decide(row), b.decide(row))
        return False if False in result else None if None in result else True

    return Condition(f"({a.text} AND {b.text})", decide, a.is_filter and b.is_filter)


def _or(a: Condition, b: Condition) -> Condition:
    def decide(row: Row) -> Truth:
        result = (a.decide(row), b.decide(row))
        return True if True in result else None if None in result else False

    return Condition(f"({a.text} OR {b.text})", decide, a.is_filter and b.is_filter)


def _not(a: Condition) -> Condition:
    def decide(row: Row) -> Truth:
        result = a.decide(row)
        return None if result is None else not result

    return Condition(f"(NOT {a.text})", decide, a.is_filter)


def _leaves(column: Column) -> SearchStrategy[Condition]:
    tests = st.sampled_from([_is_null(column), _not(_is_null(column))])
    if not isinstance(column.type, PrimitiveType) or isinstance(column.type, UNORDERED_TYPES):
        return tests
    literals = _literals(column.type)
    result = [
        tests,
        *[st.builds(_compared, st.just(column), st.sampled_from(sorted(_COMPARISONS)), literals)]
        * 3,
        st.builds(_null_safe, st.just(column), literals),
        st.lists(st.none() | literals, min_size=1, max_size=3).flatmap(
            lambda result: st.just(_in(column, result))
        ),
    ]
    match column.type:
        case StringType():
            result.append(st.sampled_from(["a", "A", "é", "b"]).map(lambda p: _starts(column, p)))
        case FloatType() | DoubleType():
            result.append(st.just(_is_nan(column)))
            wide = _literals(DoubleType())
            result.append(
                st.builds(_as_double, st.just(column), st.sampled_from(sorted(_COMPARISONS)), wide)
            )
        case IntegerType() | LongType():
            result.append(
                st.builds(
                    _as_text,
                    st.just(column),
                    st.sampled_from(["=", "<>"]),
                    st.sampled_from(["1", "-1", "7", "x"]),
                )
            )
            wide = st.sampled_from([2**31, -(2**31) - 1, 2**40 + 1])
            result.append(
                st.builds(_compared, st.just(column), st.sampled_from(sorted(_COMPARISONS)), wide)
            )
    return st.one_of(result)


def _literals(type_: PrimitiveType) -> SearchStrategy[Any]:
    return plain_values(type_)


def _is_null(column: Column) -> Condition:
    return Condition(f"({column.text} IS NULL)", lambda row: column.of(row) is None)


def _is_nan(column: Column) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return value is not None and math.isnan(value)

    return Condition(f"isnan({column.text})", decide)


def _compared(column: Column, op: str, literal: Any) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return None if value is None else _COMPARISONS[op](order_of(value, literal))

    return Condition(f"{column.text} {op} {literal_text(column.type, literal)}", decide)


def _null_safe(column: Column, literal: Any) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return value is not None and order_of(value, literal) == 0

    return Condition(f"({column.text} <=> {literal_text(column.type, literal)})", decide)


def _in(column: Column, literals: list[Any]) -> Condition:
    texts = [literal_text(column.type, v) for v in literals]

    def decide(row: Row) -> Truth:
        value = column.of(row)
        if value is None:
            return None
        if any(v is not None and order_of(value, v) == 0 for v in literals):
            return True
        return None if None in literals else False

    return Condition(f"({column.text} IN ({', '.join(texts)}))", decide)


def _starts(column: Column, prefix: str) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return None if value is None else value.startswith(prefix)

    return Condition(f"({column.text} LIKE '{prefix}%')", decide)


def _as_double(column: Column, op: str, literal: float) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return None if value is None else _COMPARISONS[op](order_of(value, literal))

    text = literal_text(DoubleType(), literal)
    return Condition(f"CAST({column.text} AS DOUBLE) {op} {text}", decide, is_filter=False)


def _as_text(column: Column, op: str, literal: str) -> Condition:
    def decide(row: Row) -> Truth:
        value = column.of(row)
        return None if value is None else (str(value) == literal) is (op == "=")

    return Condition(f"CAST({column.text} AS STRING) {op} '{literal}'", decide, is_filter=False)


def order_of(a: Any, b: Any) -> int:
    """Return a negative number, 0 or a positive number if `a` is below, equal to or above `b`."""
    if isinstance(a, float) and isinstance(b, float):
        first, second = (math.isnan(a), a), (math.isnan(b), b)
        if first[0] or second[0]:
            return int(first[0]) - int(second[0])
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.encode(), b.encode()
    return int(a > b) - int(a < b)


def literal_text(type_: Type, value: Any) -> str:
    """Return a value as a SQL literal of the column's type."""
    if value is None:
        return "NULL"
    match type_, value:
        case BooleanType(), _:
            return "true" if value else "false"
        case IntegerType() | LongType(), _:
            return str(value) if -(2**31) < value < 2**31 else _long_text(value)
        case FloatType() | DoubleType(), float():
            kind = "FLOAT" if isinstance(type_, FloatType) else "DOUBLE"
            return f"CAST('{value!r}' AS {kind})"
        case DecimalType(), _:
            return f"{value:f}BD"
        case DateType(), dt.date():
            return f"DATE '{value.isoformat()}'"
        case TimeType(), dt.time():
            return f"TIME '{value.isoformat()}'"
        case TimestampType(), dt.datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case TimestamptzType(), dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case StringType(), str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case UUIDType(), bytes():
            return f"'{uuid.UUID(bytes=value)}'"
        case FixedType() | BinaryType(), bytes():
            return f"X'{value.hex()}'"
    raise NotImplementedError(f"{value!r} of {type_}")


def _long_text(value: int) -> str:
    # The smallest long has no literal, because its digits without the sign overflow.
    return f"{value}L" if value != -(2**63) else f"CAST('{value}' AS BIGINT)"
