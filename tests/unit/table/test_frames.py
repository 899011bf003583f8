"""Scans and metadata tables go into the libraries that users have, and stop reading at a limit."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.planning.scan_tasks import ScanContext, ScanTask
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from iceberg_pyspark.table.reading import table_scan as scan_module

FILES = 5
ROWS_PER_FILE = 10


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT, s STRING")
    for n in range(FILES):
        ids = range(n * ROWS_PER_FILE, (n + 1) * ROWS_PER_FILE)
        table.append(pa.table({"id": list(ids), "s": [f"v{i}" for i in ids]}))
    return table


def test_a_scan_is_a_frame(table: ice.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    scan = table.scan("id >= 40", columns=["id"])
    ids = list(range(40, 50))
    assert sorted(scan.to_arrow()["id"].to_pylist()) == ids
    assert sorted(scan.to_pandas()["id"]) == ids
    assert sorted(scan.to_polars()["id"]) == ids
    assert sorted(polars.DataFrame(scan)["id"]) == ids
    assert sorted(pa.table(scan)["id"].to_pylist()) == ids
    query = "SELECT min(id), max(id), count(*) FROM ours"
    assert scan.to_duckdb("ours").sql(query).fetchall() == [(40, 49, 10)]
    connection = duckdb.connect()
    assert scan.to_duckdb("ours", connection) is connection
    assert connection.sql(query).fetchall() == [(40, 49, 10)]
    assert len(duckdb.from_arrow(scan, connection=connection).fetchall()) == 10


def test_a_table_and_a_metadata_table_are_frames(table: ice.Table) -> None:
    polars = pytest.importorskip("polars")
    assert len(polars.DataFrame(table)) == len(table.to_arrow()) == FILES * ROWS_PER_FILE
    assert len(table.to_pandas()) == len(table.to_polars()) == FILES * ROWS_PER_FILE
    files = table.metadata_table("files")
    assert len(files.to_polars()) == len(files.to_pandas()) == FILES
    assert table.inspect.files().num_rows == FILES


def test_batches_are_a_reader_that_reads_file_by_file(
    table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = _opened_data_files(monkeypatch)
    reader = table.scan().to_batches()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema.names == ["id", "s"]
    assert opened == set()
    reader.read_next_batch()
    assert len(opened) == 1
    assert sum(b.num_rows for b in reader) == (FILES - 1) * ROWS_PER_FILE
    assert len(opened) == FILES


@pytest.mark.parametrize("limit", [0, 1, 10, 11, 49, 50, 99])
def test_a_limit_reads_no_further(
    table: ice.Table, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    opened = _opened_data_files(monkeypatch)
    scan = table.scan(limit=limit)
    rows = min(limit, FILES * ROWS_PER_FILE)
    assert scan.to_arrow().num_rows == rows
    assert len(opened) == -(-rows // ROWS_PER_FILE)
    assert scan.count() == scan.known_count() == rows
    assert sum(b.num_rows for b in scan.to_batches()) == rows
    assert table.scan("id <> 7", limit=limit).count() == min(rows, 49)


def _opened_data_files(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    opened: set[str] = set()

    def read(
        context: ScanContext, task: ScanTask, io: FileIO, **options: bool
    ) -> Iterator[pa.RecordBatch]:
        opened.add(task.file_path)
        return read_task(context, task, io, **options)

    monkeypatch.setattr(scan_module, "read_task", read)
    return opened


def test_a_negative_limit_is_refused(table: ice.Table) -> None:
    with pytest.raises(InvalidRequestError, match="limit: expected 0 or more rows, not -1"):
        table.scan(limit=-1)


def test_each_way_to_choose_a_snapshot(table: ice.Table) -> None:
    second = table.snapshots[1]
    table.manage_snapshots().create_tag("two", second.snapshot_id).create_branch(
        "audit", second.snapshot_id
    ).commit()
    moment = datetime.fromtimestamp(second.timestamp_ms / 1000, timezone.utc)
    rows = 2 * ROWS_PER_FILE
    assert table.scan(snapshot_id=second.snapshot_id).count() == rows
    assert table.scan(tag="two").count() == rows
    assert table.scan(branch="audit").count() == rows
    assert table.scan(as_of=second.timestamp_ms).count() == rows
    assert table.scan(as_of=moment).count() == rows
    assert table.scan(as_of=moment.isoformat()).count() == rows
    with pytest.raises(InvalidRequestError, match="may be seconds or milliseconds"):
        table.scan(as_of=str(second.timestamp_ms))


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_missing_package_is_one_sentence(
    table: ice.Table, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    scan = table.scan()
    method = {"pandas": scan.to_pandas, "polars": scan.to_polars}.get(
        package, lambda: scan.to_duckdb("t")
    )
    with pytest.raises(UnsupportedFeatureError) as refusal:
        method()
    assert str(refusal.value) == (
        f"to_{package} needs the package {package}; run pip install {package}"
    )


def test_writes_return_their_snapshot(table: ice.Table) -> None:
    rows = pa.table({"id": [1], "s": ["a"]})
    appended = table.append(rows)
    assert appended == table.current_snapshot
    assert appended.summary["added-records"] == "1"
    table.manage_snapshots().create_branch("audit").commit()
    of_branch = table.append(rows, branch="audit")
    assert of_branch.snapshot_id == table.refs["audit"].snapshot_id
    assert of_branch != table.current_snapshot
    assert table.append(rows.slice(0, 0)) == table.current_snapshot
    assert table.overwrite(rows.slice(0, 0), dynamic=True) == table.current_snapshot
    overwritten = table.overwrite(rows)
    assert overwritten == table.current_snapshot
    assert overwritten.summary["deleted-records"] == "51"


def test_history_and_name(table: ice.Table) -> None:
    assert table.name == "db.t"
    assert [e.snapshot_id for e in table.history()] == [s.snapshot_id for s in table.snapshots]
    at_path = ice.load_table(table.location)
    assert ice.load_table(at_path.name).history() == table.history()


def test_inspect_has_each_metadata_table(table: ice.Table) -> None:
    inspect = table.inspect
    names = [n for n in dir(inspect) if not n.startswith("_")]
    assert sorted(names) == sorted(METADATA_TABLES)
    for name in names:
        expected = table.metadata_table(name).to_arrow()
        assert getattr(inspect, name)() == expected
    first = table.snapshots[0].snapshot_id
    assert inspect.files(snapshot_id=first).num_rows == 1


def test_duckdb_takes_geographies_as_bytes_and_geometries_by_their_mark(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    table = ice.load_catalog("none", type="memory").create_table(
        str(tmp_path / "t"),
        "g GEOMETRY, e GEOGRAPHY, s STRUCT<e: GEOGRAPHY>",
        properties={"format-version": "3"},
    )
    point = struct.pack("<BI2d", 1, 1, 1.0, 2.0)
    rows = [{"g": point, "e": point, "s": {"e": point}}]
    table.append(pa.Table.from_pylist(rows, schema=table.scan().to_arrow().schema))
    query = "SELECT left(typeof(g), 8), e, s.e FROM places"
    assert table.scan().to_duckdb("places").sql(query).fetchall() == [("GEOMETRY", point, point)]
