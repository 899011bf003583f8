"""Which files a filter selects completely or partly."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.table.reading.whole_files import select_files
from iceberg_pyspark.table.table import Table
from tests.support.encrypted_tables import key_properties
from tests.support.naive_rows import read
from tests.support.sql_conditions import conditions
from tests.support.table_histories import a_history


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


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("whole")
    keys = key_properties(folder)
    return load_catalog("whole", type="hadoop", warehouse=str(folder), **keys)


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_all_rows_of_whole_files_match_and_none_of_those_left_out(
    catalog: TableCatalog, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog, key_id="keyA")
    struct = history.struct
    filters = data.draw(
        st.lists(conditions(struct).filter(lambda c: c.is_filter), min_size=3, max_size=6)
    )
    for condition in filters:
        note(condition.text)
        selection = select_files(history.table.scan(filter=condition.text))
        for row in history.rows:
            if not row.is_live:
                continue
            matches = condition.decide(read(struct, row.stored)) is True
            if row.file_path in selection.whole:
                assert matches, f"{row.stored} of a whole file is not selected by {condition}"
            elif row.file_path not in selection.partial:
                assert not matches, f"{row.stored} is selected by {condition}, its file is not"
