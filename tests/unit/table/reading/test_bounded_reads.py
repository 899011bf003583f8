"""`to_batches` needs little memory, however large a table, its files and their row groups are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceberg_pyspark

_MOST = 256 << 20
_ROWS = 3_000_000
_COLUMNS = 12

_READ = """
import sys
from iceberg_pyspark import load_table
from tests.support.peak_memory import peak_bytes
scan = load_table(sys.argv[1]).scan()
before = peak_bytes()
print(sum(batch.num_rows for batch in scan.to_batches()), peak_bytes() - before)
"""


@pytest.mark.nightly
def test_a_large_row_group_is_read_in_little_memory(tmp_path: Path) -> None:
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
        [sys.executable, "-c", _READ, table.location], capture_output=True, text=True, check=True
    )
    count, memory = map(int, done.stdout.split())
    assert count == _ROWS
    assert memory < _MOST
