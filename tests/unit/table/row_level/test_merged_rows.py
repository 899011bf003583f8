"""`Table.upsert` and `Table.merge`: keys, the files that they skip, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.formats.parquet_reader import ParquetFileReader
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.table.row_level.merge_builder import RowMerge

COUNT = 400
"""The rows of a file, so many that a source's keys are compared by their range."""

DAY = datetime(1970, 1, 1)
VALUES: dict[str, tuple[str, pa.DataType, Callable[[int], Any]]] = {
    "long": ("BIGINT", pa.int64(), lambda i: i - 500),
    "int": ("INT", pa.int32(), lambda i: i - 500),
    "string": ("STRING", pa.string(), lambda i: f"{i:06}"),
    "decimal": ("DECIMAL(30,4)", pa.decimal128(30, 4), lambda i: Decimal(i - 500).scaleb(-2)),
    "date": ("DATE", pa.date32(), lambda i: date(1969, 1, 1) + timedelta(i)),
    "timestamp": ("TIMESTAMP", pa.timestamp("us", "UTC"), lambda i: DAY + timedelta(minutes=i)),
    "local": ("TIMESTAMP_NTZ", pa.timestamp("us"), lambda i: DAY + timedelta(minutes=i)),
}
OTHERS: dict[str, tuple[str, pa.DataType, Callable[[int], Any]]] = {
    "double": ("DOUBLE", pa.float64(), lambda i: i / 7),
    "binary": ("BINARY", pa.binary(), lambda i: f"{i:06}".encode()),
}


@pytest.fixture
def catalog(tmp_path: Path) -> ice.TableCatalog:
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which each reading of a data file is added."""
    files: list[object] = []
    batches = ParquetFileReader.batches

    def recorded(self: ParquetFileReader, *args: Any) -> Any:
        files.append(self)
        return batches(self, *args)

    monkeypatch.setattr(ParquetFileReader, "batches", recorded)
    return files


@pytest.mark.parametrize("kind", [*VALUES, *OTHERS])
def test_files_beyond_the_keys_are_not_read(
    catalog: ice.TableCatalog, opened: list[object], kind: str
) -> None:
    sql, type_, value = (VALUES | OTHERS)[kind]
    table = catalog.create_table(
        "db.t", f"k {sql}, v STRING", properties={"write.merge.mode": "merge-on-read"}
    )

    def rows(first: int, count: int, v: str) -> pa.Table:
        keys = pa.array([value(i) for i in range(first, first + count)], type_)
        return pa.table({"k": keys, "v": [v] * count})

    for start in range(0, 4 * COUNT, COUNT):
        table.append(rows(start, COUNT, "old"))
    changes = table.upsert(rows(COUNT + 50, 300, "new"), "k")
    assert (changes.updated, changes.inserted) == (300, 0)
    assert len(opened) == (1 if kind in VALUES else 4)
    opened.clear()
    few = pa.concat_tables([rows(5, 1, "few"), rows(3 * COUNT, 2, "few")])
    assert table.upsert(few, "k").updated == 3
    assert len(opened) == 2 if kind in VALUES else len(opened) > 4
    assert table.scan("v <> 'old'").count() == 303


def test_the_identifier_fields_are_the_keys(catalog: ice.TableCatalog) -> None:
    table = catalog.create_table("db.t", "a BIGINT NOT NULL, b STRING NOT NULL, v INT")
    fields = [("a", pa.int64()), ("b", pa.string()), ("v", pa.int32())]
    schema = pa.schema([pa.field(name, type_, name == "v") for name, type_ in fields])
    rows = pa.table({"a": [1, 1], "b": ["x", "y"], "v": pa.array([1, 2], pa.int32())}, schema)
    with pytest.raises(InvalidRequestError, match="has no identifier fields"):
        table.upsert(rows)
    table.update_schema().set_identifier_fields("a", "b").commit()
    assert table.upsert(rows).inserted == 2
    assert table.upsert(rows.slice(1)).updated == 1
    merged = table.merge(rows).when_matched_update({"v": "t.v + s.v"}).execute()
    assert merged.updated == 2
    renamed = rows.rename_columns(["of_a", "b", "v"])
    merge = table.merge(renamed, {"a": "of_a", "b": "b"}).when_matched_update({"v": "s.v"})
    assert merge.when_not_matched_insert({"a": "of_a", "b": "b"}).execute().updated == 2


def test_a_name_with_a_backtick_only_in_conditions(catalog: ice.TableCatalog) -> None:
    table = catalog.create_table("db.t", "id BIGINT, `a``b` BIGINT, v STRING")
    table.append(pa.table({"id": [1, 2, 3], "a`b": [1, 2, 3], "v": ["x", "y", "z"]}))
    merge = table.merge(pa.table({"id": [1, 2]}), "id")
    merge.when_matched_delete("t.`a``b` = 1").when_not_matched_by_source_update(
        {"a`b": 9}, "`a``b` = 3"
    ).execute()
    expected = [{"id": 2, "a`b": 2, "v": "y"}, {"id": 3, "a`b": 9, "v": "z"}]
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == sorted(expected, key=str)


def test_what_is_refused(catalog: ice.TableCatalog) -> None:
    table = catalog.create_table("db.t", "id BIGINT, v INT, l ARRAY<INT>")
    rows = pa.table({"id": [1, 1], "v": pa.array([1, 2], pa.int32())})
    one = rows.slice(1)
    table.append(one)

    def update(*clause: Any, source: pa.Table = one) -> RowMerge:
        return table.merge(source, "id").when_matched_update(*clause)

    wrong: list[tuple[str, Callable[[], object]]] = [
        ("several rows with the key {'id': 1}", lambda: table.upsert(rows, "id")),
        ("several rows of the source match one row", lambda: update(source=rows).execute()),
        ("no column w", lambda: table.upsert(one.append_column("w", [[1]]), "id")),
        ("column 'v' twice", lambda: table.upsert(one.append_column("v", one["v"]), "id")),
        ("the source has no column id", lambda: table.upsert(one.select(["v"]), ["id"])),
        (
            "the key 'l' is no column of a simple type",
            lambda: table.upsert(
                one.append_column("l", pa.array([[1]], pa.list_(pa.int32()))), ["l"]
            ),
        ),
        ("the key 'x' is no column", lambda: table.upsert(one, "x")),
        ("name at least one key column", lambda: table.upsert(one, [])),
        (
            "column 'id' is string",
            lambda: table.upsert(one.set_column(0, "id", pa.array(["1"])), "id"),
        ),
        ("a merge needs a clause", lambda: table.merge(one, "id").execute()),
        ("only the last clause", lambda: update().when_matched_delete()),
        (
            "sets no column of the table",
            lambda: (
                table.merge(one.select(["id"]).rename_columns(["x"]), {"id": "x"})
                .when_matched_update()
                .execute()
            ),
        ),
        ("is a value of type int32; write a comparison", lambda: update({"v": 1}, "t.v").execute()),
        ("'s.y > 1' cannot be evaluated", lambda: update({"v": 1}, "s.y > 1").execute()),
        (
            "'v' cannot be evaluated",
            lambda: table.merge(one, "id").when_matched_update({"v": "v"}).execute(),
        ),
    ]
    for message, act in wrong:
        with pytest.raises(InvalidRequestError) as raised:
            act()
        assert message in str(raised.value)
    assert len(table.refresh().snapshots) == 1


_SOURCE_OF_MANY_ROWS = """
import json, sys, tracemalloc
import numpy as np, pyarrow as pa
import iceberg_pyspark as ice
from iceberg_pyspark.arrow import row_sources
from iceberg_pyspark.table.row_level import keyed_merge

row_sources._MEMORY_BYTES = keyed_merge._KEYS_BYTES = 16 * 2**20
rows, size = 8_000_000, 500_000
catalog = ice.load_catalog("lake", type="hadoop", warehouse=sys.argv[1])
catalog.create_namespace("db")
table = catalog.create_table("db.t", "id BIGINT, v INT")
table.append(pa.table({"id": np.arange(0, 2 * rows, 4)}))

def batches():
    order = np.random.default_rng(1).permutation(rows // size)
    for i in order.tolist():  # each batch has keys of the whole range
        ids = np.arange(i, rows, rows // size)
        yield pa.record_batch({"id": ids, "v": np.full(len(ids), 1, np.int32)})

pool = pa.default_memory_pool()
tracemalloc.start()
changes = table.upsert(batches(), "id")
peak = tracemalloc.get_traced_memory()[1]
print(json.dumps([changes.updated, changes.inserted, peak / 2**20, pool.max_memory() / 2**20]))
"""


@pytest.mark.nightly
def test_the_memory_of_an_upsert_does_not_grow_with_its_source(tmp_path: Path) -> None:
    """The keys alone would take 192 MB, and sorting them twice as much."""
    command = [sys.executable, "-c", _SOURCE_OF_MANY_ROWS, str(tmp_path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    updated, inserted, ours, arrow = json.loads(done.stdout)
    assert (updated, inserted) == (2_000_000, 6_000_000)
    assert ours < 96
    assert arrow < 256
