"""Whether a value range of a column can prune files of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from iceberg_pyspark.table.reading.whole_files import clustered_columns, files_are_alike

START = date(2024, 1, 1)
TYPES: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "bigint": lambda n: n * 10**12,
    "decimal(20, 2)": lambda n: Decimal(n),
    "date": lambda n: START + timedelta(days=n),
    "timestamp_ntz": lambda n: datetime(2024, 1, 1) + timedelta(hours=n),
}


def alike(folder: Path, type_: str, files: Sequence[Sequence[Any]], **properties: str) -> bool:
    scan = scan_of(folder, type_, files, **properties)
    return files_are_alike(scan, scan.metadata.current_schema.fields[0])


def clustered(folder: Path, type_: str, files: Sequence[Sequence[Any]], **properties: str) -> bool:
    scan = scan_of(folder, type_, files, **properties)
    return bool(clustered_columns(scan, scan.metadata.current_schema.fields))


def scan_of(
    folder: Path, type_: str, files: Sequence[Sequence[Any]], **properties: str
) -> TableScan:
    catalog = ice.load_catalog("ranges", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=f"v {type_}", properties=properties)
    for values in files:
        arrow = table.scan().to_arrow().schema
        table.append(pa.table({"v": pa.array(values, arrow.field("v").type)}))
    return scan_table("db.t", table.metadata, table.io)


@pytest.mark.parametrize("type_", TYPES)
def test_files_with_the_same_range_are_alike_and_neighbours_are_not(
    tmp_path: Path, type_: str
) -> None:
    value = TYPES[type_]
    same = [[value(n), value(100 - n)] for n in range(4)]
    assert alike(tmp_path / "same", type_, same)
    following = [[value(10 * n), value(10 * n + 12)] for n in range(4)]
    assert not alike(tmp_path / "following", type_, following)
    one_more = [*same, [value(200), value(300)]]
    assert not alike(tmp_path / "more", type_, one_more)


def test_files_without_exact_bounds_are_not_alike(tmp_path: Path) -> None:
    same = [[0, 100], [1, 99]]
    assert not alike(tmp_path / "none", "int", [])
    assert not alike(tmp_path / "null", "int", [*same, [None]])
    metrics = {"write.metadata.metrics.default": "none"}
    assert not alike(tmp_path / "metrics", "int", same, **metrics)
    assert not alike(tmp_path / "text", "string", [["a", "z"], ["b", "y"]])
    assert not alike(tmp_path / "one value", "int", [[5], [5]])


@pytest.mark.parametrize("type_", TYPES)
def test_columns_are_clustered_if_a_file_has_a_small_part_of_their_range(
    tmp_path: Path, type_: str
) -> None:
    value = TYPES[type_]
    following = [[value(10 * n), value(10 * n + 9)] for n in range(6)]
    assert clustered(tmp_path / "following", type_, following)
    whole = [value(0), value(60)]
    assert clustered(tmp_path / "one is whole", type_, [*following, *following, whole])
    assert not clustered(tmp_path / "half are whole", type_, [*following, *([whole] * 6)])
    assert not clustered(tmp_path / "alike", type_, [whole] * 6)


def test_files_without_bounds_have_the_whole_range(tmp_path: Path) -> None:
    following = [[10 * n, 10 * n + 9] for n in range(6)]
    assert not clustered(tmp_path / "none", "int", [])
    assert not clustered(tmp_path / "one value", "int", [[5]] * 6)
    assert not clustered(tmp_path / "nulls", "int", [*following, [None], [None], [None]])
    assert clustered(tmp_path / "a null", "int", [*following, *following, [None]])
    metrics = {"write.metadata.metrics.default": "none"}
    assert not clustered(tmp_path / "metrics", "int", following, **metrics)
    assert not clustered(tmp_path / "text", "string", [[str(n)] for n in range(6)])
