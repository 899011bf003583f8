"""Geometry and geography: Java's generic writers and readers, ours, and the bounds of both."""

from __future__ import annotations

import math
import struct

import pyarrow as pa
import pytest

from iceberg_pyspark import load_table
from tests.support.java_records import append_records, create_java_table, read_records
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly

COLUMNS = [
    {"name": "id", "type": "int"},
    {"name": "g", "type": "geometry"},
    {"name": "other", "type": "geometry(srid:3857)"},
    {"name": "gg", "type": "geography"},
    {"name": "round", "type": "geography(EPSG:4326, karney)"},
    {"name": "z", "type": "string"},
]


def point(x: float, y: float) -> bytes:
    return struct.pack("<BI2d", 1, 1, x, y)


LINE = struct.pack("<BII4d", 1, 2, 2, -5, 1, 7, 9)
VALUES: list[bytes | None] = [point(30, 10), None, LINE, point(math.nan, 7)]
ROWS = [
    {"id": i, "g": v, "other": v, "gg": v, "round": v, "z": f"z{i}"} for i, v in enumerate(VALUES)
]


def create(oracle: Oracle, name: str, **properties: str) -> str:
    """Create a table through Java; return the folder that it is in."""
    create_java_table(oracle, name, COLUMNS, properties={"format-version": "3"} | properties)
    return str(oracle.warehouse.joinpath(*name.split(".")[1:]))


def test_javas_rows_are_read_and_its_bounds_are_ours(oracle: Oracle) -> None:
    name = "java_hadoop.geo.javas"
    folder = create(oracle, name)
    append_records(oracle, name, ROWS)
    table = load_table(folder)
    rows = table.scan().to_arrow()
    assert rows.to_pylist() == ROWS
    table.append(rows)
    java, ours = sorted(table.refresh().inspect.files().to_pylist(), key=by_writer)
    for kind in ("lower_bounds", "upper_bounds", "null_value_counts", "value_counts"):
        assert dict(ours[kind]) == dict(java[kind]), kind
    assert dict(ours["lower_bounds"])[2] == struct.pack("<2d", -5, 1)
    assert table.scan("g IS NULL AND z > 'z'").to_arrow()["id"].to_pylist() == [1, 1]


def by_writer(file: dict[str, object]) -> bool:
    """Sort Java's file first; its writers have names of their own."""
    return "-00001.parquet" in str(file["file_path"]) and "00000-0-" in str(file["file_path"])


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_java_reads_our_rows(oracle: Oracle, file_format: str) -> None:
    name = f"java_hadoop.geo.ours_{file_format}"
    folder = create(oracle, name, **{"write.format.default": file_format})
    table = load_table(folder)
    table.append(pa.Table.from_pylist(ROWS, schema=table.scan().to_arrow().schema))
    found = {row[0]: row[1:5] for row in read_records(oracle, name)}
    assert found == {i: [v] * 4 for i, v in enumerate(VALUES)}
