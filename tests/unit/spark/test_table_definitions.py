"""What Spark is told of a table before it plans a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.spark.sql_catalog import table_definitions
from iceberg_pyspark.spark.sql_catalog.table_definitions import definition_of_snapshot
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, select_snapshot
from iceberg_pyspark.table.table import Table

COLUMNS = "id BIGINT, s STRING, x DOUBLE, p INT"


def appended(folder: Path, files: int, *, partitioned_by: tuple[str, ...] = ()) -> Table:
    catalog = load_catalog("defined", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=COLUMNS, partitioned_by=list(partitioned_by))
    for n in range(files):
        ints = pa.array([1], pa.int32())
        table.append(pa.table({"id": [n], "s": [str(n)], "x": [n / 2], "p": ints}))
    return table


def compared_columns(
    table: Table, selector: SnapshotSelector | None = None, planner: Any = None
) -> tuple[str, ...]:
    selected = select_snapshot(table.metadata, selector or SnapshotSelector())
    loaded = replace(table.loaded, plan_scan=planner)
    return definition_of_snapshot("handle", "lake", loaded, selected).compared_columns


def test_bounds_of_numbers_are_compared_in_tables_of_several_files(tmp_path: Path) -> None:
    assert compared_columns(appended(tmp_path / "few", 3)) == ()
    table = appended(tmp_path / "enough", 4)
    assert compared_columns(table) == ("id", "p")
    first = SnapshotSelector(snapshot_id=table.metadata.snapshots[0].snapshot_id)
    assert compared_columns(table, first) == ()


def test_bounds_are_not_compared_where_that_reads_more_manifests_than_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared_columns(appended(tmp_path / "partitioned", 4, partitioned_by=("p",))) == ()
    planned_by_server = appended(tmp_path / "server", 4)
    assert compared_columns(planned_by_server, planner=lambda _: None) == ()
    monkeypatch.setattr(table_definitions, "_MAX_COMPARED_FILES", 4)
    assert compared_columns(appended(tmp_path / "most", 4)) == ("id", "p")
    assert compared_columns(appended(tmp_path / "more", 5)) == ()


def test_the_first_sort_column_needs_no_comparison(tmp_path: Path) -> None:
    table = appended(tmp_path, 4)
    table.replace_sort_order().asc("id").commit()
    assert compared_columns(table) == ("p",)
