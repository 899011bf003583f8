"""Files of other writers with metrics that cannot be right: filters find the rows that scans do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.spec.types import LongType
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.table.reading.metadata_aggregates import Aggregate, known_aggregates
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import commit_table
from tests.support.file_commits import commit_overwrite

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "part": ["a", "a", "a"]})


def long_bytes(value: int) -> bytes:
    return value_to_bytes(LongType(), value)


def table_with(*, partitioned: bool = False, **changes: Any) -> Table:
    """Return a table whose only file has other metrics than its rows."""
    source = commit_table(partitioned=partitioned)
    table = Table(source.catalog, source.loaded, io=source.io)
    table.append(ROWS)
    [entry] = source.entries()
    commit_overwrite(
        table.catalog, source.loaded, table.io, [replace(entry.data_file, **changes)], "static"
    )
    return table.refresh()


WRONG = [
    {"value_counts": {1: -1, 2: -1}},
    {"null_value_counts": {1: -1, 2: -1}},
    {"null_value_counts": {1: 3, 2: 0}},
    {"null_value_counts": {1: 9, 2: 9}},
    {"lower_bounds": {1: long_bytes(3)}, "upper_bounds": {1: long_bytes(1)}},
    {"record_count": 0},
    {"record_count": -1, "value_counts": None},
]


@pytest.mark.parametrize("changes", WRONG)
def test_wrong_metrics_lose_no_row_and_delete_no_other(changes: dict[str, Any]) -> None:
    table = table_with(**changes)
    assert table.scan(filter="id = 2").to_arrow()["id"].to_pylist() == [2]
    assert table.scan(filter="part = 'a' AND id > 1").count() == 2
    assert table.delete("id = 2").deleted == 1
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 3]


@pytest.mark.parametrize("changes", WRONG)
def test_no_aggregate_is_taken_from_metrics_that_are_wrong(changes: dict[str, Any]) -> None:
    table = table_with(**changes)
    column = table.schema.field_by_id[1]
    values = known_aggregates(table.scan(), [], [Aggregate(kind="min", column=column)])
    assert values is None


def test_the_partition_rules_for_rows_and_filters_whatever_the_file_stores() -> None:
    table = table_with(partitioned=True, partition=("b",))
    assert table.scan().to_arrow()["part"].to_pylist() == ["b"] * 3
    assert table.scan(filter="part = 'b'").count() == 3
    assert table.scan(filter="part = 'a'").count() == 0
    table.delete("part = 'b'")
    assert table.scan().count() == 0
