"""Files that a filter selects entirely, as decided by partitions and metrics alone."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from iceberg_pyspark import load_catalog
from iceberg_pyspark.table.reading.whole_files import select_files
from iceberg_pyspark.table.table import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    warehouse = str(tmp_path_factory.mktemp("whole"))
    catalog = load_catalog("whole", type="memory", warehouse=warehouse)
    catalog.create_namespace("db")
    new_table = catalog.create_table(
        "db.t",
        schema="id BIGINT NOT NULL, d DOUBLE, day DATE, s STRING",
        partitioned_by=["bucket(2, s)"],
    )
    new_table.append(_rows([1, 2, 3], [1.0, 2.0, 3.0], "a"))
    new_table.append(_rows([4, 5, 6], [4.0, None, 6.0], "b"))
    new_table.append(_rows([7, 8, 9], [7.0, math.nan, 9.0], "c"))
    return new_table


def _rows(ids: list[int], doubles: list[float | None], text: str) -> pa.Table:
    return pa.table({"id": ids, "d": doubles, "s": [text] * len(ids)})


@pytest.mark.parametrize(
    ("filter_", "whole", "partial"),
    [
        ("id <= 3", "a", ""),
        ("id <= 4", "a", "b"),
        ("id > 0", "abc", ""),
        ("id > 100", "", ""),
        ("id < 3", "", "a"),
        ("d >= 1", "ac", "b"),
        # NaN is above all numbers, and no comparison selects a null.
        ("d > 0", "ac", "b"),
        ("d is null or d > 0", "ac", "b"),
        ("d < 100", "a", "bc"),
        ("d is not null", "ac", "b"),
        ("d is null", "", "b"),
        ("day is null", "abc", ""),
        ("not (id > 3)", "a", ""),
        ("id in (1, 2, 3)", "", "a"),
        ("id between 1 and 6 and s < 'z'", "ab", ""),
        ("s = 'a'", "a", ""),
        ("s = 'a' or id >= 7", "ac", ""),
    ],
)
def test_files_by_what_is_selected_of_them(
    table: Table, filter_: str, whole: str, partial: str
) -> None:
    selection = select_files(table.scan(filter=filter_))
    names = {t.file_path: "abc"[t.data_sequence_number - 1] for t in table.scan().plan_files()}
    assert ("".join(sorted(names[p] for p in selection.whole))) == whole
    assert set(partial) <= {names[p] for p in selection.partial}
    selected = set(table.scan(filter=filter_).to_arrow()["s"].to_pylist())
    assert selected <= {names[p] for p in (*selection.whole, *selection.partial)}
