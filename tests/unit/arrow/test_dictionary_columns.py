"""Texts that are stored as dictionaries are read as pyarrow reads them without dictionaries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.storage.files.local import LocalFileIO

_ROWS = 60_000


def _written(folder: Path) -> str:
    few = [f"text {i % 7}" for i in range(_ROWS)]
    with_nulls = [None if i % 3 else "x" * (i % 5) for i in range(_ROWS)]
    # the first pages are of a dictionary, which is then too large
    at_last_many = ["same" if i < _ROWS * 9 // 10 else f"text {i}" for i in range(_ROWS)]
    rows = pa.table(
        {
            "few": pa.array(few, pa.string()),
            "bytes": pa.array(with_nulls, pa.binary()),
            "many": pa.array([f"text {i}" for i in range(_ROWS)]),
            "at last many": pa.array(at_last_many),
            "nulls": pa.nulls(_ROWS, pa.string()),
            "nested": pa.array([{"few": t} for t in few]),
            "nested.few": pa.array(few),
            "number": pa.array(range(_ROWS), pa.int64()),
        }
    )
    path = str(folder / "rows.parquet")
    pq.write_table(
        rows, path, row_group_size=_ROWS // 2, dictionary_pagesize_limit=1 << 14, store_schema=False
    )
    return path


@pytest.mark.parametrize("threads", [False, True])
def test_dictionaries_are_decoded(tmp_path: Path, threads: bool) -> None:
    path = _written(tmp_path)
    expected = pq.read_table(path)
    with ParquetFileReader(LocalFileIO(), path, threads=threads) as reader:
        batches = list(reader.batches(range(expected.num_columns)))
    assert [p for p, _ in batches[:2]] == [0, batches[0][1].num_rows]
    table = pa.Table.from_batches([batch for _, batch in batches])
    assert table.schema.types == expected.schema.types
    assert table.equals(expected)
