"""Which parts of a condition may skip files: only those on which Spark surely agrees.

And which columns an operation reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import Column
from pyspark.sql.connect.functions import builtin as sql

from iceberg_pyspark.expressions.condition_text import condition_text
from iceberg_pyspark.spark.bridge.call_arguments import SourceColumn, Sql
from iceberg_pyspark.spark.portable.portable_target import PortableTarget
from iceberg_pyspark.spark.portable.read_columns import named_columns
from iceberg_pyspark.spark.portable.skipped_files import filter_of_condition
from iceberg_pyspark.spark.row_changes.change_request import ChangeRequest, PinnedRead
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.conjuncts import parse_conjuncts
from iceberg_pyspark.sql_text.schema_text import parse_schema


class Session:
    """A session two hours east of UTC, which can say what time it is."""

    client = None

    def sql(self, text: str) -> Session:
        self._text = text.split("'")[1]
        return self

    def collect(self) -> list[tuple[int]]:
        moment = datetime.fromisoformat(self._text).replace(tzinfo=timezone(timedelta(hours=2)))
        return [(round(moment.timestamp() * 1_000_000),)]


@dataclass
class Target:
    """What a target tells of its columns."""

    schema: Schema
    case_sensitive: bool = False

    @property
    def table(self) -> Any:
        return SimpleNamespace(spark=Session())

    @property
    def columns(self) -> Any:
        return SimpleNamespace(names=[f.name for f in self.schema.fields])


COLUMNS = (
    "id BIGINT, s STRING, d DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, f DOUBLE, b BOOLEAN, "
    "st STRUCT<x: INT>, dec DECIMAL(10, 2), wide DECIMAL(38, 10), bin BINARY"
)


def target_of(columns: str = COLUMNS) -> PortableTarget:
    return cast("PortableTarget", Target(parse_schema(columns)))


def filter_of(condition: str | Column, columns: str = COLUMNS) -> str:
    return condition_text(filter_of_condition(target_of(columns), condition).predicate)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 5", "id = 5"),
        ("t.ID > 5 AND s = 'a'", "id > 5 AND s = 'a'"),
        ("(id IN (1, 2) OR id IS NULL) AND abs(id) > 3", "id IN (1, 2) OR id IS NULL"),
        ("d >= DATE '2020-01-01' AND b", "d >= DATE'2020-01-01' AND b = true"),
        ("st.x < 3", "st.x < 3"),
        ("t.st.x < 3", "st.x < 3"),
        ("NOT (id < 5)", "NOT (id < 5)"),
        ("dec >= 1.25 AND dec < 3", "dec >= 1.25 AND dec < 3"),
        ("bin = X'0102'", "bin = X'0102'"),
        (
            "ts > TIMESTAMP '2020-01-01 01:00:00'",
            "ts > TIMESTAMP'2019-12-31 23:00:00+00:00'",
        ),
        (
            "ts > TIMESTAMP '2020-01-01 01:00:00Z'",
            "ts > TIMESTAMP'2020-01-01 01:00:00+00:00'",
        ),
        ("ts >= DATE '2020-01-01'", "ts >= TIMESTAMP'2019-12-31 22:00:00+00:00'"),
        ("tn < TIMESTAMP_NTZ '2020-01-01 01:00:00'", "tn < TIMESTAMP_NTZ'2020-01-01 01:00:00'"),
        ("tn < DATE '2020-01-01'", "tn < TIMESTAMP_NTZ'2020-01-01 00:00:00'"),
    ],
)
def test_parts_that_skip_files(condition: str, expected: str) -> None:
    assert filter_of(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "id = '5'",
        "s = 5",
        "d >= '2020-01-01'",
        "tn > TIMESTAMP '2020-01-01 00:00:00'",
        "d > TIMESTAMP '2020-01-01 00:00:00'",
        "ts > '2020-01-01 00:00:00'",
        "dec > 1.255",
        "wide > 12345678901234567890123456789",
        "id > 1.5",
        "bin = 'a'",
        "f > 1.5",
        "id = 5 OR abs(id) = 5",
        "id = NULL",
        "s = 'a\\n'",
        's = "id"',
        "unknown = 5",
        "s.id = 5",
        "id = 5 AND",
    ],
)
def test_parts_that_do_not(condition: str) -> None:
    assert filter_of(condition) == "true"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (sql.col("id") > 5, "id > 5"),
        (sql.lit(5) > sql.col("t.id"), "id < 5"),
        (sql.col("`st`.x") < 3, "st.x < 3"),
        ((sql.col("id") == 5) & (sql.abs(sql.col("id")) > 3), "id = 5"),
        ((sql.col("id") == 5) | sql.col("s").isNull(), "id = 5 OR s IS NULL"),
        (~sql.col("id").isin(1, 2), "NOT (id IN (1, 2))"),
        (sql.col("id").between(1, 3), "id >= 1 AND id <= 3"),
        (sql.col("s").startswith("a") & sql.col("b"), "startswith(s, 'a') AND b = true"),
        (sql.expr("id = 1 AND abs(id) = 1") & (sql.col("s") == "x"), "id = 1 AND s = 'x'"),
        (sql.col("d") >= date(2020, 1, 1), "d >= DATE'2020-01-01'"),
        (sql.col("dec") == Decimal("1.25"), "dec = 1.25"),
        (sql.col("bin") == sql.lit(b"\x01\x02"), "bin = X'0102'"),
        (
            sql.col("ts") < datetime(2020, 1, 1, tzinfo=timezone.utc),
            "ts < TIMESTAMP'2020-01-01 00:00:00+00:00'",
        ),
        (sql.col("f") > 1.5, "true"),
        (sql.col("id") == "5", "true"),
        ((sql.col("id") == 5) | (sql.abs(sql.col("id")) == 5), "true"),
        (sql.col("id").cast("int") == 5, "true"),
        (sql.col("tn") < datetime(2020, 1, 1, tzinfo=timezone.utc), "true"),
        (sql.col("unknown") == 5, "true"),
    ],
)
def test_conditions_of_a_clients_columns(condition: Column, expected: str) -> None:
    assert filter_of(condition) == expected


@pytest.mark.parametrize(
    ("condition", "is_exact"),
    [
        ("id = 5 AND s IS NOT NULL", True),
        ("true", True),
        (sql.col("id") > 5, True),
        (sql.expr("id > 5"), True),
        ("id = 5 AND abs(id) = 5", False),
        ("id = 5 AND id = dec", False),
        ("id = 5 AND f > 1.5", False),
        ("s = 'a\\n'", False),
        ((sql.col("id") == 5) & (sql.col("f") > 1.5), False),
        (sql.expr("id = 5 AND abs(id) = 5"), False),
    ],
)
def test_conditions_that_select_whole_files(condition: str | Column, is_exact: bool) -> None:
    assert filter_of_condition(target_of(), condition).is_exact is is_exact


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Sql("t.id = s.id")], "id s"),
        ([Sql("ID * 2 > 3"), SourceColumn("dec")], "id"),
        ([Sql("count(*) > 1")], "*"),
        ([Sql("to_json(struct(t.*)) = ''")], "*"),
        ([Sql("(/* x */ *)")], "*"),
        ([Sql("struct(`i.*`) IS NULL")], "*"),
        ([Sql("Identifier('i' || 'd') = 1")], "*"),
        ([sql.expr("IDENTIFIER('i' || 'd') = 1")], "*"),
        ([sql.col("t.id") == sql.col("x.dec")], "dec id"),
        ([sql.struct(sql.col("*")).isNull()], "*"),
        ([sql.expr("struct(*) IS NULL")], "*"),
        ([sql.expr("1 <\nid")], "id"),
        ([None], ""),
        ([Sql("idd = 1")], "*"),
    ],
)
def test_columns_that_are_read(values: list[Any], expected: str) -> None:
    target = target_of("id INT, s STRING, d DATE, dec DECIMAL(10, 2), wide STRING")
    named = named_columns(target, values)
    assert named == set(target.columns.names if expected == "*" else expected.split())


def test_a_column_of_the_alias_skips_nothing() -> None:
    assert filter_of("t.id = 5", "t STRUCT<id: INT>, id INT") == "true"


def test_equalities_of_two_columns() -> None:
    found = parse_conjuncts("t.id = s.id AND (t.a = s.b AND t.p = 3) AND t.x > s.x")
    assert found.equalities == (("t.id", "s.id"), ("t.a", "s.b"))
    assert len(found.filters) == 1


def test_requests_are_read_as_they_were_written() -> None:
    request: dict[str, Any] = {
        "operation": "merge",
        "metadata_location": "m.json",
        "write_id": "w",
        "filter": {"type": "eq", "term": "id", "value": 1},
        "rewritten_files": ("a", "b"),
        "requires_single_match": True,
        "transaction": ("app", 3),
        "matched": (1,),
    }
    change = ChangeRequest(**request)
    assert ChangeRequest.of_text(change.text()) == change
    for files in (None, (), ("a",)):
        read = PinnedRead(
            metadata_location="m", filter=False, data_files=files, without_whole_files=True
        )
        assert PinnedRead.of_text(read.text()) == read
