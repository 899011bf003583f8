"""Rows are taken in every form that Python programs have, and are kept to be read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow import row_sources
from iceberg_pyspark.arrow.row_sources import KeptRows, batches_of
from iceberg_pyspark.errors import InvalidRequestError

TEXTS = [f"v{i}" for i in range(10)]
TABLE = pa.table({"id": list(range(10)), "s": TEXTS})


def frame_of_pandas() -> Any:
    frame = TABLE.to_pandas()
    return frame.set_index(frame["id"] * 2)


FORMS: dict[str, Callable[[Path], Any]] = {
    "table": lambda _: TABLE,
    "views": lambda _: TABLE.set_column(1, "s", pa.array(TEXTS, pa.string_view())),
    "batch": lambda _: TABLE.to_batches()[0],
    "reader": lambda _: TABLE.to_reader(3),
    "batches": lambda _: iter(TABLE.to_batches(3)),
    "list": lambda _: TABLE.to_batches(3),
    "pandas": lambda _: frame_of_pandas(),
    "polars": lambda _: pytest.importorskip("polars").DataFrame(TABLE),
    "duckdb": lambda _: pytest.importorskip("duckdb").from_arrow(TABLE),
    "dataset": lambda path: ds.dataset(written(path)),
}


def written(path: Path) -> str:
    pq.write_table(TABLE, path / "rows.parquet")
    return str(path / "rows.parquet")


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id BIGINT, s STRING")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_appended_overwritten_and_upserted(
    form: str, table: ice.Table, tmp_path: Path
) -> None:
    table.append(FORMS[form](tmp_path))
    assert table.to_arrow().sort_by("id") == TABLE
    table.overwrite(FORMS[form](tmp_path))
    assert table.upsert(FORMS[form](tmp_path), "id").updated == 10
    assert table.to_arrow().sort_by("id") == TABLE


def test_other_objects_are_refused(table: ice.Table) -> None:
    for wrong in ({"id": [1]}, "rows", 5, [{"id": 1}]):
        with pytest.raises(InvalidRequestError, match="append: rows: expected an Arrow table"):
            table.append(wrong)
    with pytest.raises(InvalidRequestError, match="an element of type dict; give Arrow batches"):
        table.append(iter([{"id": 1}]))
    with pytest.raises(InvalidRequestError, match="the batches of the rows differ"):
        table.upsert(iter([*TABLE.to_batches(), *TABLE.select(["id"]).to_batches()]), "id")


def test_no_batches_are_no_rows(table: ice.Table) -> None:
    table.append([])
    table.upsert(iter(()), "id")
    assert table.scan().count() == 0
    assert batches_of([])[0] is None


@pytest.mark.parametrize("memory", [0, 100, 2**30])
def test_rows_are_taken_by_number(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    monkeypatch.setattr(row_sources, "_MEMORY_BYTES", memory)
    kept = KeptRows(TABLE.to_reader(3), TABLE.schema)
    for _ in range(2):
        assert pa.Table.from_batches(b for _, b in kept.batches()) == TABLE
    assert [start for start, _ in kept.batches()] == [0, 3, 6, 9]
    for numbers in ([], [4], [3, 5], [9, 0, 4, 4, 8, 1]):
        taken = kept.take(np.array(numbers, np.int64))
        assert pa.Table.from_batches([taken]) == TABLE.take(pa.array(numbers, pa.int64()))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pa.array([["a"], None, [None]], pa.list_(pa.string_view())),
        pa.array([["a"], None, [None]], pa.list_view(pa.string())),
        pa.array([{"x": "a"}, None, {"x": None}], pa.struct([("x", pa.string_view())])),
        pa.array([[("a", "b")], None, []], pa.map_(pa.string(), pa.string_view())),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pc.run_end_encode(pa.array(["a", None, "b"])),
    ],
    ids=lambda column: str(column.type),
)
def test_every_representation_is_taken(column: pa.Array) -> None:
    rows = pa.record_batch({"c": column})
    kept = KeptRows(rows, rows.schema)
    assert kept.take(np.array([2, 0, 1]))["c"].to_pylist() == [column[i].as_py() for i in (2, 0, 1)]


def test_a_stream_is_upserted_from_a_file(
    monkeypatch: pytest.MonkeyPatch, table: ice.Table
) -> None:
    monkeypatch.setattr(row_sources, "_MEMORY_BYTES", 100)
    table.append(TABLE.slice(0, 5))
    changes = table.upsert(TABLE.to_reader(2), "id")
    assert (changes.updated, changes.inserted) == (5, 5)
    assert table.to_arrow().sort_by("id") == TABLE
