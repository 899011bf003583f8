"""Filters as text are translated exactly, or refused with the unsupported part named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.evaluation import evaluate
from iceberg_pyspark.expressions.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundLiteral,
    BoundSet,
    BoundUnary,
    LiteralPredicate,
    Not,
    Or,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
    UUIDType,
)
from iceberg_pyspark.spec.values import value_to_json
from iceberg_pyspark.sql_text.filters import parse_filter
from tests.support.strategies import columns, predicates, rows, schema_of

OPERATORS = {"eq": "=", "not_eq": "<>", "lt": "<", "lt_eq": "<=", "gt": ">", "gt_eq": ">="}
CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(("symbol", "op"), [(s, op) for op, s in OPERATORS.items()])
def test_every_comparison_both_ways_round(symbol: str, op: Any) -> None:
    exchanged = {"lt": "gt", "gt": "lt", "lt_eq": "gt_eq", "gt_eq": "lt_eq"}.get(op, op)
    assert parse_filter(f"id {symbol} 5") == LiteralPredicate(op, "id", 5)
    assert parse_filter(f"5 {symbol} id") == LiteralPredicate(exchanged, "id", 5)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("-5", -5),
        ("+5", 5),
        ("1.5", Decimal("1.5")),
        ("-.5", Decimal("-0.5")),
        ("1e3", 1000.0),
        ("5L", 5),
        ("5Y", 5),
        ("1.5D", 1.5),
        ("1.1F", 1.100000023841858),
        ("-1.50BD", Decimal("-1.50")),
        (f"-{'9' * 34}.9999BD", Decimal(f"-{'9' * 34}.9999")),
        (f"-{'9' * 34}.9999", Decimal(f"-{'9' * 34}.9999")),
        ("1.5e3bd", Decimal("1.5e3")),
        ("12345678901BD", Decimal("12345678901")),
        (".0005BD", Decimal("0.0005")),
        ("0BD", Decimal(0)),
        ("-0bd", Decimal(0)),
        ("0.BD", Decimal(0)),
        ("CAST('1.5' AS DECIMAL(9, 2))", Decimal("1.5")),
        ("CAST('Infinity' AS DOUBLE)", float("inf")),
        ("true", True),
        ("NULL", None),
        ("'abc'", "abc"),
        ('"abc"', "abc"),
        (r"'it\'s'", "it's"),
        ("''", ""),
        # What a backslash means is what Spark makes of it.
        (r"'\d\%\_\a\f\é\x41'", r"d\%\_aféx41"),
        (r"'\0\b\n\r\t\Z'", "\0\b\n\r\t\x1a"),
        (r"'\u0041\U0001F600\ud83d\ude00\101\201\u41'", "A\U0001f600\U0001f600A201u41"),
        ("'a\\\nb'", "a\nb"),
        (r"r'\d'", r"\d"),
        ("X'00ff'", b"\x00\xff"),
        ("X'f'", b"\x0f"),
        ("DATE'2026-01-31'", date(2026, 1, 31)),
        ("CAST('2026-01-31' AS DATE)", date(2026, 1, 31)),
        ("TIMESTAMP'2026-01-31 10:00:00.5'", datetime(2026, 1, 31, 10, 0, 0, 500_000)),
        ("TIMESTAMP_NTZ'2026-01-31 10:00:00'", datetime(2026, 1, 31, 10)),
        ("TIMESTAMP_LTZ'2026-01-31'", datetime(2026, 1, 31)),
        ("TIMESTAMP'2026-01-31T10:00:00+01:00'", datetime(2026, 1, 31, 10, tzinfo=CET)),
        ("CAST('2026-01-31 10:00' AS TIMESTAMP)", datetime(2026, 1, 31, 10)),
        ("TIME'10:30:00'", time(10, 30)),
        ("(5)", 5),
    ],
)
def test_literals(text: str, literal: Any) -> None:
    predicate = parse_filter(f"c = {text}")
    assert predicate == LiteralPredicate("eq", "c", literal)
    assert isinstance(predicate, LiteralPredicate)
    assert type(predicate.literal) is type(literal)
    assert parse_filter(f"{text} = c") == predicate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", AlwaysTrue()),
        ("NOT true", AlwaysFalse()),
        ("active", LiteralPredicate("eq", "active", True)),
        ("NOT active", Not(LiteralPredicate("eq", "active", True))),
        ("id == 1", LiteralPredicate("eq", "id", 1)),
        ("id != 1", LiteralPredicate("not_eq", "id", 1)),
        ("id IN (1, 2)", SetPredicate("in", "id", (1, 2))),
        ("id NOT IN (1, NULL)", Not(SetPredicate("in", "id", (1, None)))),
        ("id IS NULL", UnaryPredicate("is_null", "id")),
        ("id IS NOT NULL", Not(UnaryPredicate("is_null", "id"))),
        ("isnull(id)", UnaryPredicate("is_null", "id")),
        ("isnotnull(id)", Not(UnaryPredicate("is_null", "id"))),
        ("isnan(x)", UnaryPredicate("is_nan", "x")),
        ("id <=> NULL", UnaryPredicate("is_null", "id")),
        (
            "id <=> 1",
            And(UnaryPredicate("not_null", "id"), LiteralPredicate("eq", "id", 1)),
        ),
        (
            "id BETWEEN 1 AND 2",
            And(LiteralPredicate("gt_eq", "id", 1), LiteralPredicate("lt_eq", "id", 2)),
        ),
        ("s LIKE 'abc%'", LiteralPredicate("starts_with", "s", "abc")),
        ("s NOT LIKE 'abc%'", Not(LiteralPredicate("starts_with", "s", "abc"))),
        ("startswith(s, 'a')", LiteralPredicate("starts_with", "s", "a")),
        ("`a.b` = 1", LiteralPredicate("eq", "a.b", 1)),
        ("a.`b c`.d = 1", LiteralPredicate("eq", "a.b c.d", 1)),
        ("a.b.c.d.e.f = 1", LiteralPredicate("eq", "a.b.c.d.e.f", 1)),
        ("date >= 1 -- a remark", LiteralPredicate("gt_eq", "date", 1)),
        ("date >= 1 -- a\\\n OR true", LiteralPredicate("gt_eq", "date", 1)),
        ("date >= '-- \\\\\n'", LiteralPredicate("gt_eq", "date", "-- \\\n")),
        ("date >= -- a\r 1", LiteralPredicate("gt_eq", "date", 1)),
        (
            "NOT (a = 1) AND (b = 2 OR c = 3)",
            And(
                Not(LiteralPredicate("eq", "a", 1)),
                Or(LiteralPredicate("eq", "b", 2), LiteralPredicate("eq", "c", 3)),
            ),
        ),
    ],
)
def test_conditions(text: str, expected: Predicate) -> None:
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("id = 1 AND length(s) > 3", "LENGTH(s)"),
        ("id + 1 = 2", "id + 1"),
        ("a = b", "compares two columns"),
        ("1 = 1", "does not compare a column"),
        ("a = 1 = b", "a = 1"),
        ("s LIKE '%abc'", "prefix pattern"),
        ("s LIKE 'a_c%'", "prefix pattern"),
        ("s LIKE 'abc'", "prefix pattern"),
        (r"s LIKE 'a\%%'", "prefix pattern"),
        ("s LIKE 'a!%%' ESCAPE '!'", "ESCAPE"),
        ("s LIKE ANY ('a%')", "LIKE"),
        ("s ILIKE 'a%'", "ILIKE"),
        ("s RLIKE 'a'", "RLIKE"),
        ("s = 'it''s'", "not one literal"),
        ("id IN (SELECT 1)", "SELECT 1"),
        ("id IN (1, b)", "`b`"),
        ("1 IN (id)", "`id` is not a literal"),
        ("id BETWEEN SYMMETRIC 2 AND 1", "BETWEEN"),
        ("a IS TRUE", "IS TRUE"),
        ("a[0] = 1", "a[0]"),
        ("CAST(a AS INT) = 1", "CAST"),
        ("a = CAST('x' AS INT)", "invalid literal"),
        ("a = 300Y", "300"),
        ("a = CAST(1.55 AS DECIMAL(3, 1))", "does not fit"),
        ("d = DATE'2026-02-30'", "has no value"),
        ("d = DATE'2026-01-01 10:00:00'", "no time of day"),
        ("t = TIMESTAMP_NTZ'2026-01-01 10:00:00Z'", "has no zone"),
        ("t = TIMESTAMP'2026-01-01 10:00:00.123456789'", "microseconds"),
        ("t > current_timestamp()", "CURRENT_TIMESTAMP"),
        ("t > now() - INTERVAL 1 DAY", "INTERVAL"),
        ("a = :p", ":p"),
        ("NULL", "NULL"),
        ("a = -'x'", "not a number"),
        ("a = 1 AS b", "AS b"),
        ("SELECT 1", "SELECT 1"),
        ("DELETE FROM t", "DELETE"),
        ("a = 1; b = 2", "not one condition"),
        ("", "not one condition"),
        ("a = 1 LIMIT 3", "cannot be parsed"),
        ("a = ", "cannot be parsed"),
        ("a = 'open", "cannot be parsed"),
    ],
)
def test_unsupported_filter_is_refused_by_its_part(text: str, part: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_filter(text)
    assert part in str(caught.value)


def test_refusal_quotes_the_filter_and_names_allowed_forms() -> None:
    with pytest.raises(InvalidRequestError, match=r"the filter 'id % 2 = 0'.*allowed are"):
        parse_filter("id % 2 = 0")


def test_thousands_of_alternatives_are_read() -> None:
    predicate = parse_filter(" OR ".join(f"id = {i}" for i in range(3000)))
    assert isinstance(predicate, Or)


TYPES: tuple[Type, ...] = (
    BooleanType(),
    LongType(),
    DoubleType(),
    DecimalType(9, 2),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
)
COLUMNS = columns(*TYPES)  # type: ignore[arg-type]
SCHEMA = schema_of(COLUMNS)


def literal_text(type_: Type, value: Any) -> str:
    match type_:
        case StringType():
            escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case BinaryType():
            return f"X'{value.hex()}'"
        case DoubleType():
            return f"CAST('{value!r}' AS DOUBLE)"
        case DateType() | TimestampType() | TimestamptzType() | UUIDType():
            return f"'{value_to_json(type_, value)}'"
        case _:
            return str(value)


def text_of(predicate: Predicate) -> str:
    match predicate:
        case AlwaysTrue():
            return "true"
        case AlwaysFalse():
            return "false"
        case And(left, right):
            return f"({text_of(left)} AND {text_of(right)})"
        case Or(left, right):
            return f"({text_of(left)} OR {text_of(right)})"
        case Not(child):
            return f"NOT ({text_of(child)})"
        case BoundUnary(op=op, column=column):
            test = f"isnan({column.name})" if op.endswith("nan") else f"{column.name} IS NULL"
            return f"NOT {test}" if op.startswith("not") else test
        case BoundSet(op=op, column=column, literals=literals):
            members = ", ".join(literal_text(column.type, v) for v in literals)
            return f"{column.name} {'NOT ' if op == 'not_in' else ''}IN ({members})"
        case BoundLiteral(op="starts_with" | "not_starts_with" as op, column=column):
            text = f"startswith({column.name}, {literal_text(column.type, predicate.literal)})"
            return text if op == "starts_with" else f"NOT {text}"
        case BoundLiteral(op=op, column=column, literal=literal):
            return f"{column.name} {OPERATORS[op]} {literal_text(column.type, literal)}"
        case _:
            raise AssertionError(predicate)


def printable(predicate: Predicate) -> bool:
    """Return whether Python's datetime can represent all dates and timestamps in the predicate."""
    match predicate:
        case And(left, right) | Or(left, right):
            return printable(left) and printable(right)
        case Not(child):
            return printable(child)
        case BoundLiteral(column=column, literal=literal):
            return within_datetime(column.type, literal)
        case BoundSet(column=column, literals=literals):
            return all(within_datetime(column.type, v) for v in literals)
        case _:
            return True


def within_datetime(type_: Type, value: Any) -> bool:
    match type_:
        case DateType():
            return abs(int(value)) < 700_000
        case TimestampType() | TimestamptzType():
            return abs(int(value)) < 10**16
        case _:
            return True


@given(predicates(COLUMNS).filter(printable), st.lists(rows(COLUMNS), min_size=1, max_size=4))
@settings(max_examples=settings().max_examples * 3)
def test_a_printed_predicate_parses_and_binds_to_one_that_selects_the_same_rows(
    predicate: Predicate, table: list[Mapping[int, Any]]
) -> None:
    bound = bind(parse_filter(text_of(predicate)), SCHEMA)
    for row in table:
        assert (evaluate(bound, row) is True) == (evaluate(predicate, row) is True)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 50_000 + "a = 1" + ")" * 50_000, "nested deeper than 200 levels"),
        ("NOT " * 20_000 + "a = 1", "nested too deeply"),
        ("a = '\ud800'", "half of a surrogate pair"),
        ("a = 1 AND b = X'zz'", "."),
        ("a = ²", "."),
        ("a = CAST('x' AS STRUCT(b INT))", "is not understood"),
    ],
)
def test_filters_that_no_parser_survives_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as e:
        parse_filter(text)
    assert len(str(e.value)) < 3000


def test_number_of_5000_digits_is_parsed_exactly() -> None:
    assert parse_filter(f"a = {'9' * 5000}") == LiteralPredicate("eq", "a", Decimal("9" * 5000))


def test_many_comparisons_are_parsed() -> None:
    assert parse_filter(" AND ".join(["a < 1"] * 300)) is not None
