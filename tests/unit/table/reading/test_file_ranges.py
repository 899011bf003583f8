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
from iceberg_pyspark.table.reading.table_scan import scan_table
from iceberg_pyspark.table.reading.whole_files import files_are_alike

START = date(2024, 1, 1)
TYPES: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "bigint": lambda n: n * 10**12,
    "decimal(20, 2)": lambda n: Decimal(n),
    "date": lambda n: START + timedelta(days=n),
    "timestamp_ntz": lambda n: datetime(2024, 1, 1) + timedelta(hours=n),
}


def alike(folder: Path, type_: str, files: Sequence[Sequence[Any]], **properties: str) -> bool:
    catalog = ice.load_catalog("ranges", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=f"v {type_}", properties=properties)
    for values in files:
        arrow = table.scan().to_arrow().schema
        table.append(pa.table({"v": pa.array(values, arrow.field("v").type)}))
    scan = scan_table("db.t", table.metadata, table.io)
    return files_are_alike(scan, table.metadata.current_schema.fields[0])


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
