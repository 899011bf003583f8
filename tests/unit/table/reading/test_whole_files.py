"""Which files a filter selects completely or partly."""

from __future__ import annotations

import datetime as dt
import math
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.planning.scan_tasks import ScanTask
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
def parts(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table whose partitions tell p and the day of ts, and whose metrics tell id and v."""
    warehouse = str(tmp_path_factory.mktemp("parts"))
    catalog = load_catalog("parts", type="memory", warehouse=warehouse)
    catalog.create_namespace("db")
    new_table = catalog.create_table(
        "db.t",
        schema="id BIGINT, p INT, ts TIMESTAMP_NTZ, v BIGINT",
        partitioned_by=["p", "days(ts)", "bucket(4, v)"],
        properties={"write.metadata.metrics.column.ts": "none"},
    )
    for ids in ([1, 2], [None, 4], [5, 6], [None, None]):
        for_each = [(i, p, day) for p, day in ((1, 1), (2, 2), (None, 3)) for i in ids]
        columns = {
            "id": [i for i, _, _ in for_each],
            "p": [p for _, p, _ in for_each],
            "ts": [dt.datetime(2026, 1, day, 12) for _, _, day in for_each],
            "v": [day for _, _, day in for_each],
        }
        new_table.append(pa.table(columns, schema=to_arrow_schema(new_table.schema)))
    return new_table


@pytest.mark.parametrize(
    ("filter_", "whole", "partial"),
    [
        ("p = 1 and id is not null", "1a 1c", "1b"),
        ("p = 1 and id < 3", "1a", ""),
        ("not (p <> 1 or id is null)", "1a 1c", "1b"),
        # without metrics, the day proves it
        ("ts < timestamp_ntz '2026-01-02' and id > 4", "1c", ""),
        ("p = 1 or id >= 6", "1a 1b 1c 1d", "2c Nonec"),
        ("(p = 1 and id >= 7) or (p = 2 and id < 3)", "2a", ""),
    ],
)
def test_each_part_of_a_condition_is_decided_by_partition_or_metrics(
    parts: Table, filter_: str, whole: str, partial: str
) -> None:
    selection = select_files(parts.scan(filter=filter_))
    assert " ".join(sorted(map(_name, selection.whole.values()))) == whole
    assert " ".join(sorted(map(_name, selection.partial.values()))) == partial


def _name(file: ScanTask) -> str:
    return f"{file.partition[0]}{'abcd'[file.data_sequence_number - 1]}"


_PARTS = [
    *("p = 1", "p <> 1", "p in (1, 2)", "p is null", "p is not null"),
    *("id < 3", "id = 5", "id <> 7", "id is null", "id is not null"),
    *("ts < timestamp_ntz '2026-01-02'", "ts is not null", "v = 1", "v not in (2, 3)"),
]


def test_two_conditions_together_decide_what_each_of_them_decides(parts: Table) -> None:
    def decided(text: str) -> tuple[set[str], set[str]]:
        selection = select_files(parts.scan(filter=text))
        return set(selection.whole), {*selection.whole, *selection.partial}

    alone = {text: decided(text) for text in _PARTS}
    assert any(whole for whole, _ in alone.values())
    for (a, (whole_a, some_a)), (b, (whole_b, some_b)) in combinations(alone.items(), 2):
        assert decided(f"{a} and {b}") == (whole_a & whole_b, some_a & some_b), (a, b)
        assert decided(f"{a} or {b}") == (whole_a | whole_b, some_a | some_b), (a, b)


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
