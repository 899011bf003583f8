"""`to_batches` needs little memory, however large a table, its files and their row groups are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceberg_pyspark
from iceberg_pyspark.arrow.formats import parquet_reader
from tests.support.deleted_rows import delete_positions
from tests.support.parameters import cases

_MOST = 256 << 20
_ROWS = 3_000_000
_COLUMNS = 12

_PART = 16
"""The part of the memory, and of the bytes of a row group, with which most tests work."""

_READ = """
import sys
from iceberg_pyspark import load_table
from tests.support.peak_memory import peak_bytes
scan = load_table(sys.argv[1]).scan()
before = peak_bytes()
print(sum(batch.num_rows for batch in scan.to_batches()), peak_bytes() - before)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("processors", ["1", "2", "16"])
def test_a_large_row_group_is_read_in_little_memory(processors: str, tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 62, _ROWS)
    columns = {f"c{i}": pa.array(np.roll(numbers, i)) for i in range(_COLUMNS)}
    rows = pa.table({**columns, "text": columns["c0"].cast(pa.string())})
    assert rows.nbytes > 1.3 * _MOST
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(rows, folder / "rows.parquet", row_group_size=_ROWS)
    catalog = iceberg_pyspark.load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    table = catalog.create_table("t", rows.schema)
    table.add_files(str(folder))
    del rows, columns
    done = subprocess.run(
        [sys.executable, "-c", _READ, table.location],
        # the number of processors as Arrow sees it
        env={**os.environ, "OMP_NUM_THREADS": processors},
        capture_output=True,
        text=True,
        check=True,
    )
    count, memory = map(int, done.stdout.split())
    assert count == _ROWS
    assert memory < _MOST


def _texts(count: int) -> pa.Array:
    return pa.array([f"{i * 7919 % 104_729:08} {'text of a column':50}" for i in range(count)])


def _of_columns() -> pa.Table:
    """Rows of many columns, each of one page and a dictionary as large as its texts."""
    return pa.table({f"c{i}": _texts(4000) for i in range(100)})


def _of_large_values() -> pa.Table:
    random = np.random.default_rng(1)
    values = [random.bytes(1 << 17) for _ in range(320)]
    return pa.table({"id": range(320), "b": pa.array(values, pa.large_binary()).cast(pa.binary())})


def _of_lists() -> pa.Table:
    offsets = pa.array(np.arange(0, 2_500_001, 500), pa.int32())
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 2_500_000)
    return pa.table({"id": range(5000), "l": pa.ListArray.from_arrays(offsets, pa.array(numbers))})


def _of_structs() -> pa.Table:
    texts = _texts(4000)
    struct = pa.StructArray.from_arrays([texts] * 10, [f"t{i}" for i in range(10)])
    return pa.table({f"s{i}": struct for i in range(10)})


_TABLES = {
    "columns": _of_columns,
    "large values": _of_large_values,
    "lists": _of_lists,
    "structs": _of_structs,
}


@cases("deletes", fast=[True], nightly=[False])
@cases("kind", fast=["columns", "large values"], nightly=["lists", "structs"])
def test_a_stream_takes_a_bounded_part_of_arrows_memory(
    kind: str, deletes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of one row group that is larger than the memory; Arrow's bytes are counted."""
    for name in ("BATCH", "WHOLE_CHUNKS", "HELD", "STRIPE"):
        name = f"_{name}_BYTES"
        monkeypatch.setattr(parquet_reader, name, getattr(parquet_reader, name) // _PART)
    rows = _TABLES[kind]()
    most = _MOST // _PART
    assert rows.nbytes > most
    catalog = iceberg_pyspark.load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    version = {"format-version": "3"}
    table = catalog.create_table("t", rows.schema, properties=version)
    for start in (0, rows.num_rows // 2):
        table.append(rows.slice(start, rows.num_rows // 2))
    files = list(table.scan().plan_files())
    if deletes:
        delete_positions(table, {file.file_path: range(0, 20, 2) for file in files})
    expected = table.scan().to_arrow()
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        count = sum(batch.num_rows for batch in table.scan().to_batches())
    finally:
        pa.set_memory_pool(usual)
    assert count == expected.num_rows == rows.num_rows - (20 if deletes else 0)
    assert pool.max_memory() < most
    streamed = pa.Table.from_batches(table.scan().to_batches())
    assert streamed.equals(expected)
