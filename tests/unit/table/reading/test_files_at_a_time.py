"""All rows of a table are read from several files at a time, and come in the order of the files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.arrow.read import read_task as module
from iceberg_pyspark.table.reading import table_scan


def test_local_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = load_catalog("local", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema="id BIGINT")
    for id_ in range(4):
        table.append(pa.table({"id": [id_]}))
    expected = [b.to_pylist() for b in table.scan().to_batches()]
    # Each read waits for another one, as if both were long.
    together = threading.Barrier(2, timeout=60)

    def read(*arguments: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        together.wait()
        return module.read_task(*arguments, **named)

    monkeypatch.setattr(table_scan, "read_task", read)
    assert table.scan().to_arrow().to_pylist() == [row for rows in expected for row in rows]
