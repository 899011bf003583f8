"""Texts that are stored as dictionaries are read as pyarrow reads them without dictionaries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceberg_pyspark
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.deleted_rows import delete_positions

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


@pytest.mark.parametrize("threads", [False, True])
def test_batches_of_many_repeated_values_are_small(tmp_path: Path, threads: bool) -> None:
    """The file has less than a byte for a value, a batch in memory up to 100 bytes."""
    rows, path = 40_000, str(tmp_path / "wide.parquet")
    texts = pa.array([letter * 100 for letter in "abc"])
    numbers = pa.array(np.arange(rows) % 3, pa.int32())
    text = pa.DictionaryArray.from_arrays(numbers, texts).dictionary_decode()
    columns = {f"t{i}": text for i in range(20)} | {f"n{i}": numbers for i in range(20)}
    pq.write_table(pa.table(columns), path, store_schema=False)
    reader = ParquetFileReader(LocalFileIO(), path, threads=threads)
    with reader:
        assert reader.metadata.row_group(0).total_byte_size < rows * len(columns)
        sizes = [(b.num_rows, b.nbytes) for _, b in reader.batches(range(len(columns)))]
    assert sum(n for n, _ in sizes) == rows
    assert max(size for _, size in sizes) < 48 * 2**20


def test_rows_are_taken_before_dictionaries_are_decoded(tmp_path: Path) -> None:
    texts = pa.array(["x" * 100, None, "y" * 100, "z" * 100])
    numbers = pa.array(np.arange(_ROWS) % 4, pa.int32())
    text = pa.DictionaryArray.from_arrays(numbers, texts).dictionary_decode()
    ids = pa.array(range(_ROWS), pa.int64())
    rows = pa.table({"id": ids, "text": text, "bytes": text.cast(pa.binary())})
    catalog = iceberg_pyspark.load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    [file] = table.scan().plan_files()
    delete_positions(table, {file.file_path: range(0, _ROWS, 2)})
    assert table.scan().to_arrow().equals(rows.filter(np.arange(_ROWS) % 2 == 1))
    by_text = table.scan(f"text = '{'z' * 100}'").to_arrow()
    assert by_text.equals(rows.filter(np.arange(_ROWS) % 4 == 3))
    # old versions of pyarrow do not count
    allocated = getattr(pa.default_memory_pool(), "total_bytes_allocated", lambda: 0)
    before = allocated()
    assert table.scan("id IN (5, 7)").to_arrow().equals(rows.take([5, 7]))
    assert allocated() - before < text.nbytes
