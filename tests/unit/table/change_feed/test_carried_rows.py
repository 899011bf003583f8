"""Rows that a snapshot only copied are left out, however often equal rows occur on each side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import TableCatalog, load_catalog
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.row_hashes import row_hashes
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.table.change_feed import carried_rows
from iceberg_pyspark.table.change_feed.carried_rows import without_carried_rows
from iceberg_pyspark.table.metadata_tables.changes_table import ChangeScanTask
from tests.amounts import WORK
from tests.support.history_model import ID
from tests.support.table_histories import a_history

FIELDS = [NestedField(field_id=i, name=n, type=LongType()) for i, n in enumerate(("a", "b"), 1)]
ROW = st.tuples(st.integers(0, 2), st.none() | st.integers(0, 1))
FILES = st.lists(st.lists(ROW, max_size=8), max_size=3)


def tasks(side: str, files: Sequence[Sequence[Any]]) -> list[ChangeScanTask]:
    return [
        ChangeScanTask(
            task=ScanTask(
                file_path=f"{side}{number}",
                file_format="parquet",
                file_size_in_bytes=1,
                record_count=len(rows),
                start=0,
                length=1,
                spec_id=0,
                partition=(),
                data_sequence_number=1,
            )
        )
        for number, rows in enumerate(files)
    ]


@settings(
    max_examples=100 * WORK,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    deletes=FILES, inserts=FILES, at_a_time=st.sampled_from([1, 3, 1000]), size=st.integers(1, 5)
)
def test_as_many_equal_rows_are_left_out_on_both_sides(
    monkeypatch: pytest.MonkeyPatch,
    deletes: list[list[Any]],
    inserts: list[list[Any]],
    at_a_time: int,
    size: int,
) -> None:
    monkeypatch.setattr(carried_rows, "ROWS_AT_A_TIME", at_a_time)
    files = {f"d{i}": rows for i, rows in enumerate(deletes)}
    files |= {f"i{i}": rows for i, rows in enumerate(inserts)}

    def read(of: Sequence[ChangeScanTask], fields: Any) -> Iterator[pa.RecordBatch]:
        assert list(fields) == FIELDS
        for task in of:
            rows = files[task.task.file_path]
            for begin in range(0, len(rows), size):
                part = rows[begin : begin + size]
                columns = [pa.array([r[i] for r in part], pa.int64()) for i in (0, 1)]
                side = pa.array([task.task.file_path[0]] * len(part))
                yield pa.RecordBatch.from_arrays([*columns, side], ["a", "b", "side"])

    found = without_carried_rows(
        read,
        FIELDS,
        deletes=tasks("d", deletes),
        inserts=tasks("i", inserts),
        compared=2,
        sequence_number=2,
    )
    rows = [tuple(r.values()) for batch in found for r in batch.to_pylist()]
    assert [r[2] for r in rows] == sorted(r[2] for r in rows), "deletes come first"
    before, after = (Counter(r for rows in side for r in rows) for side in (deletes, inserts))
    assert Counter(r[:2] for r in rows if r[2] == "d") == before - after
    assert Counter(r[:2] for r in rows if r[2] == "i") == after - before


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("carried")
    return load_catalog("carried", type="hadoop", warehouse=str(folder))


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_copy_of_any_file_is_equal_to_it(catalog: TableCatalog, data: st.DataObject) -> None:
    table = a_history(data.draw, catalog, newest=3).table.refresh()
    scan = table.scan()
    every = [
        ChangeScanTask(task=replace(t, first_row_id=None, data_sequence_number=0, deletes=()))
        for t in scan.plan_files()
    ]
    gone = data.draw(st.integers(0, len(every)))

    def read(of: Sequence[ChangeScanTask], fields: Any) -> Iterator[pa.RecordBatch]:
        context = replace(scan.context, projection=Schema(fields=tuple(fields)))
        return (b for t in of for b in read_task(context, t.task, scan.io))

    found = without_carried_rows(
        read,
        table.schema.fields,
        deletes=every,
        inserts=every[gone:][::-1],
        compared=len(table.schema.fields),
        sequence_number=2,
    )
    rows = [r[ID] for batch in found for r in batch.to_pylist()]
    left_out = [r[ID] for b in read(every[:gone], table.schema.fields) for r in b.to_pylist()]
    assert sorted(rows) == sorted(left_out)


VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.int32(), [0, 1, -1, None]),
    (pa.float64(), [0.0, -0.0, 1.5, None, float("inf"), float("nan")]),
    (pa.float32(), [0.0, -0.0, 1.5, None]),
    (pa.decimal128(20, 2), [None, 0, 1, -1]),
    (pa.date32(), [None, 0, 1]),
    (pa.timestamp("ns", "UTC"), [None, 0, 1]),
    (pa.time64("us"), [None, 0, 1]),
    (pa.string(), [None, "", "a", "b" * 600, "\u00fc"]),
    (pa.large_binary(), [None, b"", b"\0", b"\0\0"]),
    (pa.binary(2), [None, b"ab", b"ba"]),
    (pa.null(), [None]),
    (
        pa.list_(pa.int64()),
        [None, [], [None], [None, None], [0], [1, 2], [2, 1], [1], [1, 2, None]],
    ),
    (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]),
        [None, {"x": None, "y": None}, {"x": None, "y": []}, {"x": 1, "y": ["a"]}],
    ),
    (pa.map_(pa.string(), pa.int64()), [None, [], [("a", 1)], [("a", None)], [("b", 1)]]),
    (
        pa.list_(pa.list_(pa.int32())),
        [[], [[]], [[], []], [[1], []], [[], [1]], [None, [1]], [[1, 2]], [[1], [2]]],
    ),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda v: str(v)[:12])
def test_rows_have_equal_hashes_if_all_values_are_equal(
    type_: pa.DataType, values: list[Any]
) -> None:
    every = pa.concat_arrays([pa.array([v], type_) for v in values] * 2)
    batch = pa.RecordBatch.from_arrays([every], ["v"])
    hashes = list(zip(*row_hashes(batch).tolist(), strict=True))
    assert hashes[: len(values)] == hashes[len(values) :]
    assert len(set(hashes)) == len(values)
    halves = (len({h[i] for h in hashes}) for i in (0, 1))
    assert list(halves) == [len(values)] * 2
    sliced = row_hashes(batch.slice(1)).tolist()
    assert list(zip(*sliced, strict=True)) == hashes[1:]


def test_columns_are_not_interchangeable() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array([2, 1])], ["a", "b"])
    first, second = zip(*row_hashes(batch).tolist(), strict=True)
    assert first != second
    assert row_hashes(batch.slice(0, 0)).shape == (2, 0)
