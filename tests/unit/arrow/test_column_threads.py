"""Columns that are decoded in threads are those that one thread decodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.arrow.formats import column_threads
from iceberg_pyspark.arrow.formats.column_threads import in_parts, read_in_threads
from iceberg_pyspark.errors import StorageError

_IDS = np.arange(300_000)


@given(st.lists(st.integers(0, 10_000_000), max_size=12), st.integers(1, 5))
def test_parts_have_all_columns_and_about_the_same_work(work: list[int], count: int) -> None:
    columns = [(w, [2 * i, 2 * i + 1]) for i, w in enumerate(work)]
    parts = in_parts(columns, count)
    if sum(work) < 1_000_000:
        assert len(parts) <= 1
    assert sorted(c for part in parts for c in part) == [c for _, c in columns]
    work_of = {c[0]: w for w, c in columns}
    sums = [sum(work_of[c[0]] for c in part) for part in parts]
    if sums:
        assert max(sums) - min(sums) <= max(work)


@given(st.data())
def test_batches_of_any_lengths_are_joined(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 20))
    leaves = data.draw(st.permutations(range(4)))
    ends = st.sets(st.integers(1, max(rows - 1, 1)))
    cuts = {
        leaf: [0, *sorted(e for e in data.draw(ends) if e < rows), rows]
        for leaf in (leaves[0], leaves[2])
    }

    def read(part: Sequence[int]) -> Iterator[pa.RecordBatch]:
        columns = {str(c): pa.array([100 * c + row for row in range(rows)]) for c in part}
        batch = pa.RecordBatch.from_pydict(columns)
        for start, end in pairwise(cuts[part[0]] if rows else []):
            yield batch.slice(start, end - start)

    parts = [[[leaf] for leaf in leaves[:2]], [[leaf] for leaf in leaves[2:]]]
    batches = list(read_in_threads(parts, read))
    assert [name for b in batches[:1] for name in b.schema.names] == list("0123")[: 4 * bool(rows)]
    expected = [{str(c): 100 * c + row for c in range(4)} for row in range(rows)]
    assert [row for b in batches for row in b.to_pylist()] == expected


def test_columns_of_different_lengths_are_an_error() -> None:
    def read(part: Sequence[int]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"c": list(range(3 + part[0]))})

    with pytest.raises(OSError, match="different numbers of rows"):
        list(read_in_threads([[[0]], [[1]]], read))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of one file, whose columns are decoded in three threads."""
    monkeypatch.setattr(column_threads, "_LEAST_WORK", 0)
    monkeypatch.setattr(pa, "cpu_count", lambda: 3)
    numbers = _IDS
    texts = pa.array([f"text {n % 1000}" for n in numbers])
    offsets = pa.array(np.arange(0, 300_001), pa.int32())
    rows = pa.table(
        {
            "id": numbers,
            "text": texts,
            "l": pa.ListArray.from_arrays(offsets, pa.array(numbers * 2)),
            "s": pa.StructArray.from_arrays([texts, pa.array(numbers % 7)], ["a", "b"]),
            "n": pa.nulls(300_000, pa.float64()),
        }
    )
    catalog = load_catalog("c", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    return table


def _file_of(table: Table) -> str:
    (file,) = table.scan().plan_files()
    return file.file_path.removeprefix("file:")


def _threads() -> int:
    return sum(thread.name.startswith("read-columns") for thread in threading.enumerate())


@pytest.mark.parametrize("condition", ["true", "s.b = 3", "id < 70000"])
def test_rows_of_a_file(table: Table, condition: str) -> None:
    scan = table.scan(condition)
    with scan.to_batches() as batches:
        first = next(batches)
        assert _threads() == 3
        rows = pa.Table.from_batches([first, *batches])
    assert _threads() == 0
    kept = {"true": _IDS >= 0, "s.b = 3": _IDS % 7 == 3, "id < 70000": _IDS < 70_000}[condition]
    expected = pq.read_table(_file_of(table), schema=rows.schema).filter(pa.array(kept))
    assert rows.equals(expected)
    assert scan.to_arrow().equals(expected)
    assert scan.count() == expected.num_rows


def test_threads_end_with_a_stream_that_is_left_early(table: Table) -> None:
    batches = table.scan().to_batches()
    next(batches)
    assert _threads() == 3
    del batches
    assert _threads() == 0


def test_the_error_of_a_thread_names_the_file(table: Table) -> None:
    file = _file_of(table)
    chunk = pq.read_metadata(file).row_group(0).column(0)
    with open(file, "r+b") as damaged:
        damaged.seek(chunk.data_page_offset)
        damaged.write(b"\xff" * 16)
    with pytest.raises(StorageError, match=file):
        table.scan().to_arrow()
    assert _threads() == 0
