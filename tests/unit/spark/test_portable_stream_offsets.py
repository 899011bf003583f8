"""A portable stream reads each row once, whatever Spark calls in which order, and after crashes.

The calls are those of Spark's runner: before 4.2, it does not say where a batch begins.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats import manifest_columns
from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.spark.data_source.source import IcebergDataSource
from iceberg_pyspark.spark.data_source.stream_reader import IcebergStreamReader
from iceberg_pyspark.storage.files.file_io import FileIO
from tests.amounts import WORK

Offset = dict[str, Any]

HAS_LIMITS = [True, False] if find_spec("pyspark.sql.streaming.datasource") else [False]
"""Whether Spark limits the batches; older releases never do."""


@dataclass
class Query:
    """A query as Spark runs it: with a log of offsets, and one of complete batches."""

    options: dict[str, str]
    has_limits: bool
    starts: list[Offset] = field(default_factory=list)
    ends: list[Offset] = field(default_factory=list)
    complete: int = 0
    ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = IcebergDataSource(self.options)
        self.schema = source.schema()
        self.source = pickle.dumps(source)
        self.start()

    def start(self) -> None:
        """Start the process of the query; what is not in a checkpoint is forgotten."""
        self.reader: Any = self.new_reader()
        self.executor: IcebergStreamReader = pickle.loads(pickle.dumps(self.new_reader()))
        self.at = self.reader.initialOffset() if not self.ends else self.ends[-1]
        if len(self.ends) > self.complete:
            begin = self.ends[-2] if len(self.ends) > 1 else self.reader.initialOffset()
            self.run(begin, self.ends[-1])
        elif self.ends:
            assert self.reader.partitions(self.ends[-1], self.ends[-1]) == []

    def new_reader(self) -> IcebergStreamReader:
        source: IcebergDataSource = pickle.loads(self.source)
        if self.has_limits:
            return source.streamReader(self.schema)  # type: ignore[return-value]
        new = source.streamReader(self.schema)
        old = IcebergStreamReader.__new__(IcebergStreamReader)
        old.__dict__.update(new.__dict__)
        return old

    def trigger(self, *, crashes: bool = False) -> bool:
        """Run a batch, or only plan it; return whether there is something to read."""
        if self.has_limits:
            limit = self.reader.getDefaultReadLimit()
            end = json.loads(json.dumps(self.reader.latestOffset(self.at, limit)))
        else:
            end = json.loads(json.dumps(self.reader.latestOffset()))
        if end == self.at:
            return False
        self.ends.append(end)
        if crashes:
            self.start()
        else:
            self.run(self.at, end)
        return True

    def run(self, begin: Offset, end: Offset) -> None:
        for partition in self.reader.partitions(begin, end):
            for batch in self.executor.read(pickle.loads(pickle.dumps(partition))):
                self.ids += batch.column(0).to_pylist()
        self.complete = len(self.ends)
        self.at = end
        self.reader.commit(end)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def new_table(folder: Path, name: str) -> Table:
    catalog = load_catalog("streams", type="hadoop", warehouse=str(folder))
    catalog.create_namespace("db")
    return catalog.create_table(f"db.{name}", "id BIGINT")


def change_spec(table: Table) -> None:
    specs = len(table.metadata.partition_specs)
    table.update_spec().add_field("id", f"bucket[{specs + 1}]").commit()


def add_column(table: Table) -> None:
    table.update_schema().add_column(f"c{len(table.schema.fields)}", "int").commit()


def compact(table: Table) -> None:
    table.maintenance().rewrite_data_files(options={"rewrite-all": True})


CHANGES: tuple[Callable[[Table], None], ...] = (change_spec, add_column, compact)


@settings(
    max_examples=10 * WORK,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), has_limits=st.sampled_from(HAS_LIMITS))
def test_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, has_limits: bool
) -> None:
    table = new_table(tmp_path_factory.mktemp("offsets"), "t")
    begin = data.draw(st.sampled_from(["earliest", "latest", "current"]))
    appended = 0

    def append() -> None:
        nonlocal appended
        for _ in range(data.draw(st.integers(1, 3))):
            table.refresh().append(rows(appended, appended + 1))
            appended += 2

    if data.draw(st.booleans()):
        append()
    options = {"path": table.location, "stream-from-snapshot": begin}
    if data.draw(st.booleans()):
        options["streaming-max-files-per-micro-batch"] = "1"
    note(f"{options}, limits of Spark: {has_limits}")
    before = appended if begin == "latest" else 0
    query = Query(options, has_limits)
    for step in data.draw(st.lists(st.sampled_from("aaccttt"), max_size=8)):
        note(step)
        if step == "a":
            append()
        elif step == "c":
            data.draw(st.sampled_from(CHANGES))(table.refresh())
        else:
            query.trigger(crashes=data.draw(st.booleans()))
            if data.draw(st.booleans()) and query.ends:
                query.start()
    while query.trigger():
        pass
    assert Counter(query.ids) == Counter(range(before, appended))


def reader_of(path: str, **options: str) -> IcebergStreamReader:
    named = {k.replace("_", "-"): v for k, v in options.items()}
    source = IcebergDataSource({"path": path, **named})
    return source.streamReader(source.schema())  # type: ignore[return-value]


def test_available_now_ends_at_the_table_as_it_was(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource")
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles  # noqa: PLC0415

    table = new_table(tmp_path, "t")
    for i in range(3):
        table.append(rows(i))
    reader: Any = reader_of(
        table.location,
        streaming_max_files_per_micro_batch="2",
        streaming_max_rows_per_micro_batch="1000",
    )
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    start = reader.initialOffset()
    # Trigger.Once reads everything
    assert reader.latestOffset(start, ReadAllAvailable())["position"] == 1
    reader.prepareForTriggerAvailableNow()
    table.append(rows(3))
    positions = []
    while (end := reader.latestOffset(start, ReadMaxFiles(2))) != start:
        positions.append(len(reader.partitions(start, end)))
        start = end
    assert sum(positions) == 2, "one partition of two files, and one of the third"
    assert end["snapshot_id"] == table.snapshots[2].snapshot_id
    assert reader.reportLatestOffset()["snapshot_id"] == table.snapshots[3].snapshot_id


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot_id": "1"}, "snapshot-id has no meaning for a stream"),
        ({"columns": "id"}, r"columns has no meaning for a stream: use select\(...\)"),
        ({"streaming_max_files_per_micro_batch": "0"}, "streaming-max-files-per-micro-batch"),
        ({"stream_from": "x"}, "unknown read option 'stream-from'"),
    ],
)
def test_refused_options(tmp_path: Path, options: dict[str, str], message: str) -> None:
    table = new_table(tmp_path, "t")
    table.append(rows(1))
    named = {k.replace("_", "-"): v for k, v in options.items()}
    source = IcebergDataSource({"path": table.location, **named})
    schema = IcebergDataSource({"path": table.location}).schema()
    with pytest.raises(InvalidRequestError, match=message):
        source.streamReader(schema) if "snapshot-id" not in named else reader_of(
            table.location, snapshot_id=str(table.snapshots[0].snapshot_id)
        )


def test_a_first_batch_that_does_not_say_where_it_begins(tmp_path: Path) -> None:
    table = new_table(tmp_path, "t")
    table.append(rows(1))
    end: Offset = {"version": 1, "scan_all_files": False, "position": 1}
    end["snapshot_id"] = table.snapshots[0].snapshot_id
    reader = reader_of(table.location)
    assert len(reader.partitions(reader.initialOffset(), end)) == 1
    reader = reader_of(table.location, stream_from_snapshot="latest")
    with pytest.raises(InvalidRequestError, match="stream-from-snapshot=latest may mean another"):
        reader.partitions(reader.initialOffset(), end)


def test_no_metadata_file_is_decoded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = Counter[str]()
    of_cache = DecodedCache.get_or_read

    def counted(self: DecodedCache[Any], io: FileIO, key: Hashable, read: Callable[[], Any]) -> Any:
        def decode() -> Any:
            decoded[repr(key)] += 1
            return read()

        return of_cache(self, io, key, decode)

    parse = vars(manifest_columns)["parse_manifest"]

    def parsed(data: bytes, location: str) -> Any:
        decoded[location] += 1
        return parse(data, location)

    monkeypatch.setattr(DecodedCache, "get_or_read", counted)
    monkeypatch.setattr(manifest_columns, "parse_manifest", parsed)
    table = new_table(tmp_path, "t")
    for i in range(4):
        table.append(rows(i))
    decoded.clear()
    limits = {"streaming-max-files-per-micro-batch": "1"}
    query = Query({"path": table.location, **limits}, has_limits=False)
    while query.trigger():
        pass
    assert query.ids == [0, 1, 2, 3]
    assert len(decoded) == 8, "a list and a manifest of each snapshot"
    assert set(decoded.values()) == {1}


def test_a_metadata_table_is_no_stream(tmp_path: Path) -> None:
    table = new_table(tmp_path, "t")
    with pytest.raises(InvalidRequestError, match="is a metadata table, which is no stream"):
        reader_of(f"{table.location}#files")


@pytest.mark.parametrize("has_limits", HAS_LIMITS)
def test_changes_are_read_once_whatever_crashes(tmp_path: Path, has_limits: bool) -> None:
    table = new_table(tmp_path, "t")
    table.append(rows(0, 1, 2))
    limits = {"streaming-max-files-per-micro-batch": "1"}
    query = Query({"path": f"{table.location}#changes", **limits}, has_limits=has_limits)
    assert query.trigger(crashes=True)
    assert query.ids == [0, 1, 2]
    table.overwrite(rows(0, 2, 5))
    table.append(rows(3))
    query.start()
    assert query.trigger()
    assert query.ids == [0, 1, 2, 1, 5]
    assert query.trigger(crashes=True)
    assert query.ids == [0, 1, 2, 1, 5, 3]
    assert not query.trigger()
    names = ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert query.schema.names == names
    with pytest.raises(InvalidRequestError, match="has no meaning for a stream of changes"):
        reader_of(f"{table.location}#changes", **{"streaming-overwrite-mode": "skip"})


def test_only_the_columns_of_the_schema_are_read(tmp_path: Path) -> None:
    table = new_table(tmp_path, "t")
    table.append(rows(7))
    source = IcebergDataSource({"path": table.location})
    schema = StructType().add("_file", "string", False).add("id", "long")
    reader: Any = source.streamReader(schema)
    start = reader.initialOffset()
    has_limits = hasattr(reader, "getDefaultReadLimit")
    end = reader.latestOffset(*((start, reader.getDefaultReadLimit()) if has_limits else ()))
    (partition,) = reader.partitions(start, end)
    (batch,) = reader.read(partition)
    assert batch.schema.names == ["_file", "id"]
    assert batch.column(1).to_pylist() == [7]
