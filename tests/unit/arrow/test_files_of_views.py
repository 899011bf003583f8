"""Parquet files that ask, by the Arrow schema in their footer, to be read as views of texts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark import load_catalog

_ROWS = 1000
_SQL = "id BIGINT, s STRING, b BINARY, l ARRAY<STRING>, t STRUCT<x: STRING>, m MAP<STRING, STRING>"


def _rows() -> pa.Table:
    texts = [None if i % 11 == 5 else f"the text of row {i}" for i in range(_ROWS)]
    view = pa.string_view()
    columns = {
        "id": pa.array(range(_ROWS)),
        "s": pa.array(texts, view),
        "b": pa.array([t and t.encode() for t in texts], pa.binary_view()),
        "l": pa.array([[t, "x"] for t in texts], pa.list_(view)),
        "t": pa.array([{"x": t} for t in texts], pa.struct([("x", view)])),
        "m": pa.array([[("k", t)] for t in texts], pa.map_(view, view)),
    }
    return pa.table(columns)


def test_rows_are_deleted_and_filtered(tmp_path: Path) -> None:
    catalog = load_catalog("views", type="hadoop", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.t", schema=_SQL, properties=properties)
    rows = _rows()
    (tmp_path / "files").mkdir()
    pq.write_table(rows, tmp_path / "files" / "f.parquet")
    assert pa.types.is_string_view(pq.read_schema(tmp_path / "files" / "f.parquet").field("s").type)
    table.add_files(str(tmp_path / "files"))
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
    table.delete("s = 'the text of row 7' or id in (2, 900)")
    left = [r for r in rows.to_pylist() if r["id"] not in (2, 7, 900)]
    assert table.scan().to_arrow().to_pylist() == left
    found = table.scan("s is null and id < 100").to_arrow().to_pylist()
    assert found == [r for r in left if r["s"] is None and r["id"] < 100]
