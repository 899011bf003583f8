"""Which parts of a condition may skip files: only those on which Spark surely agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from iceberg_pyspark.expressions.condition_text import condition_text
from iceberg_pyspark.spark.portable.portable_target import PortableTarget
from iceberg_pyspark.spark.portable.skipped_files import filter_of_condition
from iceberg_pyspark.spark.row_changes.change_request import ChangeRequest, PinnedRead
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.conjuncts import parse_conjuncts
from iceberg_pyspark.sql_text.schema_text import parse_schema


@dataclass
class Target:
    """What a target tells of its columns."""

    schema: Schema
    case_sensitive: bool = False


COLUMNS = "id BIGINT, s STRING, d DATE, ts TIMESTAMP, f DOUBLE, b BOOLEAN, st STRUCT<x: INT>"


def filter_of(condition: str, columns: str = COLUMNS) -> str:
    target = cast("PortableTarget", Target(parse_schema(columns)))
    return condition_text(filter_of_condition(target, condition))


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
        "ts > TIMESTAMP '2020-01-01 00:00:00'",
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
        read = PinnedRead(metadata_location="m", filter=False, data_files=files)
        assert PinnedRead.of_text(read.text()) == read
