"""ORC tables that this package wrote, on both read paths; `tests/interop` has Java's ORC tables."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.data_source_steps import read_by_steps
from tests.support.frames import append_rows, create_path_table, path_table
from tests.support.parameters import cases
from tests.support.read_paths import Read, ReadPath, is_native

SCHEMA = (
    "id BIGINT, i INT, f FLOAT, price DECIMAL(20, 4), name STRING, raw BINARY, day DATE, "
    "place STRUCT<x: INT, tags: ARRAY<STRING>>, scores MAP<STRING, DOUBLE>"
)


def row(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "i": -i,
        "f": float("nan") if i == 3 else i / 4,
        "price": Decimal(i) / 8,
        "name": None if i == 4 else f"n{i}",
        "raw": bytes([i]),
        "day": datetime.date(1969, 12, 28) + datetime.timedelta(days=i),
        "place": None if i == 5 else {"x": i, "tags": ["a", None]},
        "scores": [("k", i / 2), ("none", None)],
    }


def make_table(path: Path, written: str, partitioned_by: list[str]) -> Path:
    """Create a table with two or more data files, and add a column afterwards."""
    table = create_path_table(
        path,
        SCHEMA,
        [row(i) for i in range(5)],
        partitioned_by=partitioned_by,
        properties={"write.format.default": written},
    )
    append_rows(table, [row(i) for i in range(5, 10)])
    with path_table(path).update_schema() as change:
        change.add_column("later", "INT")
    return path


@cases("partitioned_by", fast=[["bucket(4, id)", "i"]], nightly=[[], ["day"]])
def test_both_ways_of_reading_orc_have_the_rows_of_parquet(
    read: Read, tmp_path: Path, partitioned_by: list[str]
) -> None:
    orc, parquet = (make_table(tmp_path / f, f, partitioned_by) for f in ("orc", "parquet"))
    requests: dict[str, str]
    for requests in ({}, {"columns": "later,place,id", "filter": "id > 6"}, {"columns": "day,i"}):
        assert read(orc, requests).rows == read_by_steps(parquet, requests).rows


@pytest.mark.nightly
def test_old_dates_are_read_by_python(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path
) -> None:
    path = tmp_path / "old"
    table = create_path_table(
        path,
        "day DATE, id BIGINT",
        [{"day": datetime.date(1500, 1, 1), "id": 1}],
        properties={"write.format.default": "orc"},
    )
    append_rows(table, [{"day": datetime.date(2000, 1, 1), "id": 2}])
    frame = spark.read.format("iceberg-py").load(str(path))
    assert not is_native(frame)
    actual = sorted((r.id, r.day) for r in frame.collect())
    assert actual == [(1, datetime.date(1500, 1, 1)), (2, datetime.date(2000, 1, 1))]
    assert is_native(frame.select("id")) is (read_path == "native")


def test_a_time_with_a_zone_leaves_the_other_columns_as_they_are(
    spark: SparkSession, read_path: ReadPath, tmp_path: Path
) -> None:
    path = tmp_path / "zoned"
    at = datetime.datetime(2020, 3, 8, 7, 30, tzinfo=datetime.timezone.utc)
    create_path_table(
        path,
        "id BIGINT, at TIMESTAMP_LTZ, name STRING, nested STRUCT<at: TIMESTAMP_LTZ, x: INT>",
        [{"id": i, "at": at, "name": f"n{i}", "nested": {"at": at, "x": i}} for i in range(20_000)],
        properties={"write.format.default": "orc"},
    )
    opened = read_path == "native" and not spark.version.startswith(("4.0", "4.1"))
    frame = spark.read.format("iceberg-py").load(str(path))
    others = frame.select("name", "id").where("id > 19997 or name = 'n5'")
    assert is_native(others) is opened
    expected = [("n19998", 19998), ("n19999", 19999), ("n5", 5)]
    assert sorted(tuple(row) for row in others.collect()) == expected
    for request in ("at", "nested"):
        assert not is_native(frame.select(request))
    assert frame.where("at = timestamp'2020-03-08 07:30:00Z'").count() == 20_000
