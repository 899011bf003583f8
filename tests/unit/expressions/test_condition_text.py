"""Predicates are shown as SQL: the text that is shown is parsed to the same predicate."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.condition_text import condition_text, literal_text
from iceberg_pyspark.expressions.predicates import (
    And,
    BoundColumn,
    BoundLiteral,
    LiteralPredicate,
    Not,
    Or,
    Predicate,
    SetPredicate,
    UnaryPredicate,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)
from iceberg_pyspark.sql_text.filters import parse_filter
from iceberg_pyspark.table.commits.commit_files import write_action
from tests.support.frames import append_rows, create_path_table

TYPES = {
    "id": IntegerType(),
    "s": StringType(),
    "d": DateType(),
    "ts": TimestamptzType(),
    "ntz": TimestampType(),
    "n": DecimalType(9, 2),
    "f": DoubleType(),
    "a b": IntegerType(),
}
SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=name, type=type_)
        for i, (name, type_) in enumerate(TYPES.items(), 1)
    )
)


@pytest.mark.parametrize(
    "text",
    [
        "id > 3 AND `a b` IS NOT NULL",
        r"(id = 1 OR id <> 2) AND s = 'it\'s \\'",
        "id < 1 AND id >= 0 OR NOT isnan(f)",
        "id IN (1, 2, 3) OR id NOT IN (7, 8)",
        "d = DATE'2020-01-31' AND n <= 1.50",
        "ts > TIMESTAMP'2020-01-31 10:00:00+00:00'",
        "ntz < TIMESTAMP_NTZ'2020-01-31 10:00:00.000001'",
        "startswith(s, 'ab') AND NOT startswith(s, 'abc')",
        "true",
        "false",
    ],
)
def test_a_filter_is_shown_as_it_was_written(text: str) -> None:
    unbound = parse_filter(text)
    bound = bind(unbound, SCHEMA)
    for predicate in (unbound, bound):
        shown = condition_text(predicate)
        assert bind(parse_filter(shown), SCHEMA) == bound, shown
    assert condition_text(unbound).replace("(", "").replace(")", "") == _written(text)


def _written(text: str) -> str:
    text = text.replace("`a b` IS NOT NULL", "NOT `a b` IS NULL")
    return text.replace("(", "").replace(")", "").replace("id NOT IN", "NOT id IN")


def test_predicates_that_no_text_has() -> None:
    assert condition_text(Not(UnaryPredicate("is_null", "id"))) == "NOT (id IS NULL)"
    assert condition_text(LiteralPredicate("eq", "b", b"\x01\xff")) == "b = X'01ff'"
    b = BoundColumn(field_id=1, name="x.b`c", type=BinaryType(), required=False)
    assert condition_text(BoundLiteral("eq", b, b"\x01")) == "`x.b``c` = X'01'"
    many = condition_text(SetPredicate("in", "id", tuple(range(1000))))
    assert many.endswith("18, 19, ... 1000 values)")
    long = condition_text(LiteralPredicate("eq", "s", "x" * 10_000))
    assert len(long) < 600
    assert long.endswith("x...")


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (Decimal("1E+3"), "1000"),
        (dt.date(2020, 1, 31), "DATE'2020-01-31'"),
        (dt.time(10, 30), "'10:30:00'"),
        ("x" * 1000, f"'{'x' * 99}..."),
    ],
)
def test_literals(literal: object, text: str) -> None:
    assert literal_text(literal) == text


def test_messages_show_sql_and_no_internal_names(tmp_path: Path) -> None:
    rows = [{"id": i, "d": dt.date(2020, 1, i)} for i in (1, 2)]
    table = create_path_table(tmp_path / "t", "id BIGINT, d DATE", rows)
    predicate: Predicate = And(
        LiteralPredicate("gt", "id", 1),
        Or(LiteralPredicate("lt", "d", dt.date(2021, 1, 1)), UnaryPredicate("is_null", "d")),
    )
    shown = r"where id > 1 AND \(d < DATE'2021-01-01' OR d IS NULL\): .*DELETE FROM in Spark SQL"
    with pytest.raises(InvalidRequestError, match=shown), table.transaction() as transaction:
        transaction.add_snapshot(write_action(table.loaded, [], predicate))
    with pytest.raises(InvalidRequestError, match="not compare with DATE'2020-01-01': date is not"):
        table.delete("id = DATE'2020-01-01'")
    append_rows(table, [{"id": 3, "d": None}])
