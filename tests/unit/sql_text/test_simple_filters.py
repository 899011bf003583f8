"""Simple filters are parsed without sqlglot, to the predicates that sqlglot gives."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import LiteralPredicate, Predicate, SetPredicate
from iceberg_pyspark.sql_text.filters import parse_filter
from iceberg_pyspark.sql_text.simple_filters import parse_simple_filter
from tests.amounts import WORK

SIMPLE = [
    "id = 1",
    "5 <= id",
    "id >= 1000 and id < 2000",
    "a.b.c <> -1.50 OR NOT (flag AND x IS NOT NULL)",
    "name LIKE 'ab%' AND name NOT LIKE 'abc%'",
    "day BETWEEN DATE'2026-01-01' AND DATE '2026-01-31'",
    "ts >= TIMESTAMP '2026-01-01 10:00:00' AND ts < timestamp'2026-01-02 00:00:00Z'",
    "c IN ('x', \"y\", 'ü') OR c NOT IN ('z')",
    "n NOT BETWEEN 1 AND 2 AND m = 3",
    "NOT NOT a = 1 AND (((b = 2)) or true)",
    "false",
    "flag",
    "a=-0 or a = -0.0",
    "l_shipdate >= DATE '1994-01-01' AND l_discount >= 0.05 AND l_quantity < 24",
]
OTHERS = [
    *("`a b` = 1", "a <=> 1", "a = NULL", "f(a) = 1", "a = 5L", "a = 1e3", "a = b", "a IS NAN"),
    *("a = 'it''s'", "a = 'x' 'y'", r"a = 'x\\y'", "a LIKE '%x'", "a LIKE 'a_%'", "a = 1;"),
    *("a = 1 -- x", "a = /* x */ 1", "a = 1 = 1", "(a) = 1", "a = --1", "a NOT = 1", "é = 1"),
    *("", "a =", "a IN ()", "(a = 1", "a = 1)", "DATE'x' = a", "a = DATE'2026-13-01'", "a = .5"),
    *("current_date = 1", "a = interval", "1 = 1", "a.1 = 2", "x'00' = a", "a = 1 ESCAPE 'x'"),
]
PARTS = [
    *("a", "b.c", "date", "IS", "NULL", "NOT", "AND", "OR", "IN", "(", ")", ",", "=", "<", "<>"),
    *("<=", ">=", "==", "!=", "<=>", "-", "1", "2.50", "'x'", "'x%'", '"y"', "LIKE", "BETWEEN"),
    *("true", "False", "DATE", "DATE'2026-01-01'", "TIMESTAMP '2026-01-01 00:00:01'", "1L", "."),
]


def by_sqlglot(text: str) -> Predicate | None:
    try:
        return parse_filter(text)
    except InvalidRequestError:
        return None


def exact(predicate: Predicate | None) -> str:
    """Return a text that differs for 1, 1.0 and True."""
    return repr(predicate)


@pytest.mark.parametrize("text", SIMPLE)
def test_simple_filters_are_parsed(text: str) -> None:
    parsed = parse_simple_filter(text)
    assert parsed is not None
    assert exact(parsed) == exact(by_sqlglot(text))


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_left_to_sqlglot(text: str) -> None:
    assert parse_simple_filter(text) is None


def test_literals_have_their_values() -> None:
    values = "1, -2, 3.50, 'x', DATE'2026-01-31', TIMESTAMP'2026-01-31 01:02:03Z', true"
    assert parse_simple_filter(f"a in ({values})") == SetPredicate(
        "in",
        "a",
        (
            *(1, -2, Decimal("3.50"), "x", date(2026, 1, 31)),
            datetime(2026, 1, 31, 1, 2, 3, tzinfo=timezone.utc),
            True,
        ),
    )
    deep = "(" * 100_000 + "a = 1" + ")" * 100_000
    assert parse_simple_filter(deep) is None
    many = " AND ".join(["a = 1"] * 20_000)
    assert parse_simple_filter(many) is not None
    assert parse_simple_filter("5 > a") == LiteralPredicate("lt", "a", 5)


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.sampled_from([" ", "", "\n", "  "]))
@settings(max_examples=400 * WORK, deadline=None)
def test_what_is_parsed_is_what_sqlglot_parses(parts: list[str], space: str) -> None:
    text = space.join(parts)
    parsed = parse_simple_filter(text)
    if parsed is not None:
        assert exact(parsed) == exact(by_sqlglot(text))


def conditions() -> st.SearchStrategy[str]:
    names = st.sampled_from(["a", "b.c", "Date", "_x9"])
    literals = st.sampled_from(["1", "-2", "0.5", "'x'", "''", '"y z"', "TRUE", "DATE'2026-01-01'"])
    nots = st.sampled_from(["", "not "])
    operators = st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">="])
    leaves = st.one_of(
        names,
        st.builds("{} {} {}".format, names, operators, literals),
        st.builds("5{}{}".format, operators, names),
        st.builds("{} IS {}NULL".format, names, nots),
        st.builds(
            "{} {}IN ({},{})".format, names, st.sampled_from(["", "not "]), literals, literals
        ),
        st.builds("{} BETWEEN {} AND {}".format, names, literals, literals),
        st.builds("{} LIKE '{}%'".format, names, st.sampled_from(["", "ab", "é"])),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({})".format, inner),
            st.builds("NOT {}".format, inner),
            st.builds("{} AND {}".format, inner, inner),
            st.builds("{} or {}".format, inner, inner),
        ),
    )


@given(conditions())
@settings(max_examples=200 * WORK, deadline=None)
def test_nested_conditions_are_parsed_as_by_sqlglot(text: str) -> None:
    parsed = parse_simple_filter(text)
    assert parsed is not None
    assert exact(parsed) == exact(by_sqlglot(text))


def test_words_that_sqlglot_reads_otherwise_are_no_names() -> None:
    parser = Spark.Parser
    words = {word for text in Spark.Tokenizer.KEYWORDS for word in text.split()}
    words |= {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS, *parser.NO_PAREN_FUNCTION_PARSERS}
    words |= {t.name for t in parser.TYPE_TOKENS} | {t.value for t in exp.DType}
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each statement
    different = set()
    for word in {w.lower() for w in words if w.isidentifier() and w.isascii()}:
        for form in ("{} = 1", "1 < {} OR b", "{}", "{} NOT IN ('a')", "{} IS NULL", "x.{} = 1"):
            text = form.format(word)
            parsed = parse_simple_filter(text)
            if parsed is not None and exact(parsed) != exact(by_sqlglot(text)):
                different.add(word)
    assert different == set()


def test_a_read_with_a_simple_filter_does_not_import_sqlglot() -> None:
    code = (
        "import sys, iceberg_pyspark as ice\n"
        "catalog = ice.load_catalog('c', type='memory', warehouse='memory://w')\n"
        "import pyarrow as pa\n"
        "table = catalog.create_table('t', pa.schema([('id', pa.int64())]))\n"
        "table.append(pa.table({'id': [1, 2]}))\n"
        "table.delete('id = 1')\n"
        "assert table.scan('id > 1').count() == 1\n"
        "print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
