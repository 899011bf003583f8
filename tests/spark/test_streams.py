"""Streams of Iceberg tables, read by Spark's own readers in batches that Python plans.

Which rows a batch has is tested without Spark (`tests/unit/table/reading/test_append_stream*.py`);
these tests are about what Spark does with the batches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from iceberg_pyspark.spark.data_source.open_stream import OpenStream
from iceberg_pyspark.spark.session import _BRIDGE_SESSIONS, IcebergSession
from tests.support.frames import create_path_table
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.streams import offsets_of, read_available, rows_in

START = {"version": 1, "snapshot_id": -1, "position": -1, "scan_all_files": False}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("streams"), "streams") as session:
        yield session


@pytest.fixture
def table(spark: SparkSession, lake: IcebergSession, request: pytest.FixtureRequest) -> str:
    """Return the name of a new table with the columns id and v, and the rows 0 to 2."""
    name = "streams.db." + re.sub(r"\W", "_", request.node.name)[:60]
    spark.sql(f"create table {name} (id bigint, v string) using iceberg")
    for i in range(3):
        insert(spark, name, i)
    return name


def insert(spark: SparkSession, table: str, *ids: int) -> None:
    """Append a file with these rows."""
    values = ", ".join(f"({i}, 'v{i}')" for i in ids)
    spark.sql(f"insert into {table} (id, v) select /*+ coalesce(1) */ * from values {values}")


def ids_of(batches: list[list[tuple[Any, ...]]]) -> list[int]:
    return sorted(row[0] for batch in batches for row in batch)


def stream_of(spark: SparkSession, table: str, **options: Any) -> DataFrame:
    reader = spark.readStream
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    return reader.table(table)


def snapshots(spark: SparkSession, table: str) -> list[int]:
    rows = spark.sql(f"select snapshot_id from {table}.snapshots order by committed_at").collect()
    return [row[0] for row in rows]


def test_a_stream_reads_each_appended_row_once(
    spark: SparkSession, table: str, lake: IcebergSession, tmp_path: Path
) -> None:
    stream = stream_of(spark, table).where("id > 0").select("id")
    first = read_available(stream, tmp_path)
    assert rows_in(first.batches) == [(1,), (2,)]
    assert first.progress[0]["numInputRows"] == 2
    assert first.progress[0]["sources"][0]["metrics"] == {
        "numFilesOutstanding": "0",
        "numRowsOutstanding": "0",
        "numBytesOutstanding": "0",
    }
    assert read_available(stream, tmp_path).batches == []
    insert(spark, table, 9)
    assert rows_in(read_available(stream, tmp_path).batches) == [(9,)]
    head = snapshots(spark, table)[-1]
    assert offsets_of(tmp_path)[-1] == {
        "version": 1,
        "snapshot_id": head,
        "position": 1,
        "scan_all_files": False,
        "complete": True,
    }


@pytest.mark.nightly
def test_only_the_columns_and_files_of_the_query_are_read(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    query = running(stream_of(spark, table).select("v").where("v > 'v1'"), tmp_path)
    query.processAllAvailable()
    plan = query._jsq.explainInternal(True)
    query.stop()
    assert "ReadSchema: struct<v:string>" in plan
    assert "IcebergPyParquetScan(1 files)" in plan


def running(
    stream: DataFrame, checkpoint: Path, rows: list[Any] | None = None, mode: str = "append"
) -> StreamingQuery:
    """Start a query that reads a stream as it comes, and collects its rows."""

    def collect(batch: DataFrame, _id: int) -> None:
        if rows is not None:
            rows.extend(tuple(row) for row in batch.collect())
        else:
            batch.count()

    writer = stream.writeStream.foreachBatch(collect).outputMode(mode)
    return writer.option("checkpointLocation", str(checkpoint)).start()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"streaming_max_files_per_micro_batch": 2}, [2, 2, 1]),
        ({"streaming_max_rows_per_micro_batch": 3}, [3, 2]),
        ({"streaming_max_bytes_per_micro_batch": 1}, [1, 1, 1, 1, 1]),
        (
            {"streaming_max_files_per_micro_batch": 4, "streaming_max_rows_per_micro_batch": 2},
            [2, 2, 1],
        ),
        ({}, [5]),
    ],
)
def test_limits_of_a_batch(
    spark: SparkSession, table: str, tmp_path: Path, options: Mapping[str, int], sizes: list[int]
) -> None:
    insert(spark, table, 3)
    insert(spark, table, 4)
    limited = stream_of(spark, table, **options)
    run = read_available(limited, tmp_path / "now")
    assert [len(batch) for batch in run.batches] == sizes
    assert ids_of(run.batches) == [0, 1, 2, 3, 4]
    # Trigger.Once reads everything in one batch
    assert [len(b) for b in read_available(limited, tmp_path / "once", once=True).batches] == [5]


@pytest.mark.nightly
def test_a_batch_is_planned_once(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan, ends = OpenStream.scan, []

    def counted(stream: OpenStream, start: Any, end: Any, projection: Any) -> Any:
        ends.append(end)
        return scan(stream, start, end, projection)

    monkeypatch.setattr(OpenStream, "scan", counted)
    stream = stream_of(spark, table, streaming_max_files_per_micro_batch=1)
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert len(ends) == len(set(ends)) == 3


def test_where_a_stream_begins(spark: SparkSession, table: str, tmp_path: Path) -> None:
    first, second, third = snapshots(spark, table)
    spark.sql(f"delete from {table} where id = 0")
    spark.sql(f"alter table {table} create tag t as of version {second}")
    head = spark.sql(
        f"select cast(unix_millis(committed_at) as string) from {table}.snapshots "
        f"where snapshot_id = {third}"
    ).collect()[0][0]
    skip = {"streaming_skip_delete_snapshots": True, "streaming_skip_overwrite_snapshots": True}
    for name, options, rows in (
        ("oldest", {}, [0, 1, 2]),
        ("earliest", {"stream_from_snapshot": "earliest"}, [0, 1, 2]),
        ("latest", {"stream_from_snapshot": "latest"}, []),
        ("current", {"stream_from_snapshot": "current"}, [1, 2]),
        ("id", {"stream_from_snapshot": first}, [1, 2]),
        ("tag", {"stream_from_snapshot": "t"}, [2]),
        ("time", {"stream_from_timestamp": head}, [2]),
        ("future", {"stream_from_timestamp": 1 << 50}, []),
    ):
        stream = stream_of(spark, table, **options, **skip)
        run = read_available(stream, tmp_path / name)
        assert ids_of(run.batches) == rows, name
    insert(spark, table, 7)
    for name in ("latest", "current", "id"):
        options = {"stream_from_snapshot": first if name == "id" else name}
        stream = stream_of(spark, table, **options, **skip)
        assert ids_of(read_available(stream, tmp_path / name).batches) == [7], name


@pytest.mark.nightly
def test_a_stream_of_an_empty_table_waits_for_rows(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table streams.db.empty (id bigint, v string) using iceberg")
    for begin in ("earliest", "latest", "current"):
        stream = stream_of(spark, "streams.db.empty", stream_from_snapshot=begin)
        run = read_available(stream, tmp_path / begin)
        assert run.batches == []
        first = tmp_path / begin / "sources" / "0" / "offsets" / "0"
        assert json.loads(first.read_text()) == START
    insert(spark, "streams.db.empty", 1)
    for begin in ("earliest", "latest", "current"):
        stream = stream_of(spark, "streams.db.empty", stream_from_snapshot=begin)
        assert ids_of(read_available(stream, tmp_path / begin).batches) == [1]


@pytest.mark.nightly
def test_a_stream_of_a_branch(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spark.sql(f"alter table {table} create branch b")
    insert(spark, f"{table}.branch_b", 5)
    insert(spark, table, 6)
    by_name = read_available(stream_of(spark, f"{table}.branch_b"), tmp_path / "name")
    assert ids_of(by_name.batches) == [0, 1, 2, 5]
    by_option = read_available(stream_of(spark, table, branch="b"), tmp_path / "option")
    assert ids_of(by_option.batches) == [0, 1, 2, 5]
    assert ids_of(read_available(stream_of(spark, table), tmp_path / "main").batches) == [
        0,
        1,
        2,
        6,
    ]


@pytest.mark.nightly
def test_a_stream_goes_on_after_maintenance(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    stream = stream_of(spark, table)
    assert ids_of(read_available(stream, tmp_path).batches) == [0, 1, 2]
    spark.sql(
        f"call streams.system.rewrite_data_files(table => '{table}', "
        "options => map('rewrite-all', 'true'))"
    )
    assert read_available(stream, tmp_path).batches == []
    spark.sql(
        f"call streams.system.expire_snapshots(table => '{table}', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    insert(spark, table, 3)
    assert ids_of(read_available(stream, tmp_path).batches) == [3]
    renamed = table + "_renamed"
    spark.sql(f"alter table {table} rename to {renamed}")
    insert(spark, renamed, 4)
    assert ids_of(read_available(stream_of(spark, renamed), tmp_path).batches) == [4]


@pytest.mark.nightly
def test_unread_snapshots_that_expired_end_the_stream(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    read_available(stream_of(spark, table), tmp_path)
    insert(spark, table, 3)
    insert(spark, table, 4)
    spark.sql(
        f"call streams.system.expire_snapshots(table => '{table}', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    with pytest.raises(StreamingQueryException, match=r"has expired.*stream-from-snapshot: earlie"):
        read_available(stream_of(spark, table), tmp_path)


@pytest.mark.nightly
def test_snapshots_that_change_rows(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spark.sql(f"insert overwrite {table} values (8, 'new')")
    insert(spark, table, 9)
    with pytest.raises(StreamingQueryException, match=r"overwrites rows.*streaming-overwrite-mode"):
        read_available(stream_of(spark, table), tmp_path / "fail")
    for mode, rows in (("skip", [0, 1, 2, 9]), ("added-files-only", [0, 1, 2, 8, 9])):
        stream = stream_of(spark, table, streaming_overwrite_mode=mode)
        assert ids_of(read_available(stream, tmp_path / mode).batches) == rows
    spark.sql(f"delete from {table} where id = 8")
    skip = {"streaming_skip_overwrite_snapshots": True}
    with pytest.raises(StreamingQueryException, match="streaming-skip-delete-snapshots"):
        read_available(stream_of(spark, table, **skip), tmp_path / "delete")
    stream = stream_of(spark, table, streaming_skip_delete_snapshots=True, **skip)
    assert ids_of(read_available(stream, tmp_path / "skip-both").batches) == [0, 1, 2, 9]


@pytest.mark.nightly
def test_the_schema_changes_while_a_query_runs(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    rows: list[Any] = []
    query = running(stream_of(spark, table), tmp_path, rows)
    query.processAllAvailable()
    spark.sql(f"alter table {table} add column w int")
    spark.sql(f"alter table {table} rename column v to text")
    spark.sql(f"insert into {table} values (3, 'three', 3)")
    query.processAllAvailable()
    assert sorted(rows) == [(0, "v0"), (1, "v1"), (2, "v2"), (3, "three")]
    query.stop()
    stream = stream_of(spark, table)
    assert stream.columns == ["id", "text", "w"]
    query = running(stream, tmp_path, rows)
    spark.sql(f"alter table {table} alter column w type bigint")
    spark.sql(f"insert into {table} values (4, 'four', {1 << 40})")
    with pytest.raises(StreamingQueryException, match=r"column w changed.*restart the query"):
        query.processAllAvailable()
    assert rows_in(read_available(stream_of(spark, table), tmp_path).batches) == [
        (4, "four", 1 << 40)
    ]


@pytest.mark.nightly
def test_a_dropped_column_ends_the_query_that_reads_it(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    rows: list[Any] = []
    query = running(stream_of(spark, table).select("id"), tmp_path / "id", rows)
    both = running(stream_of(spark, table), tmp_path / "both")
    query.processAllAvailable()
    both.processAllAvailable()
    spark.sql(f"alter table {table} drop column v")
    spark.sql(f"insert into {table} values (3)")
    query.processAllAvailable()
    query.stop()
    assert sorted(rows) == [(0,), (1,), (2,), (3,)]
    with pytest.raises(StreamingQueryException, match=r"column v was dropped.*restart the query"):
        both.processAllAvailable()


@pytest.mark.nightly
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_state_over_each_file_format(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, file_format: str
) -> None:
    name = f"streams.db.state_{file_format}"
    spark.sql(
        f"create table {name} (k string, ts timestamp, n int) using iceberg "
        f"tblproperties ('write.format.default' = '{file_format}')"
    )
    spark.sql(f"insert into {name} values ('a', timestamp '2026-01-01 00:00:00', 1)")
    stream = spark.readStream.table(name)
    counts = stream.groupBy("k").agg(f.sum("n"))
    run = read_available(counts, tmp_path / "complete", mode="complete")
    assert run.batches == [[("a", 1)]]
    assert run.progress[0]["numInputRows"] == 1
    spark.sql(
        f"insert into {name} values ('a', timestamp '2026-01-02 00:00:00', 2), "
        "('b', timestamp '2026-01-02 00:00:00', 3)"
    )
    run = read_available(counts, tmp_path / "complete", mode="complete")
    assert rows_in(run.batches) == [("a", 3), ("b", 3)]
    windows = stream.withWatermark("ts", "1 hour").groupBy(f.window("ts", "1 hour")).count()
    windows = windows.select(f.col("window.start").cast("string"), "count")
    run = read_available(windows, tmp_path / "windows")
    assert rows_in(run.batches) == [("2026-01-01 00:00:00", 1)]
    distinct = stream.dropDuplicates(["k"]).select("k")
    assert rows_in(read_available(distinct, tmp_path / "distinct").batches) == [("a",), ("b",)]
    other = spark.createDataFrame([("b", "x")], "k string, x string")
    joined = stream.join(other, "k").select("k", "n", "x")
    assert rows_in(read_available(joined, tmp_path / "join").batches) == [("b", 3, "x")]
    twice = stream.alias("l").join(stream.alias("r"), f.expr("l.k = r.k")).select("l.n", "r.n")
    assert rows_in(read_available(twice, tmp_path / "self").batches) == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
        (3, 3),
    ]


@pytest.mark.nightly
@cases("version", fast=[], nightly=["2", "3"])
def test_deleted_rows_are_not_in_the_table_that_a_stream_begins_with(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, version: str
) -> None:
    name = f"streams.db.deletes_{version}"
    spark.sql(
        f"create table {name} (id bigint, v string) using iceberg tblproperties "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    insert(spark, name, 0, 1, 2)
    insert(spark, name, 3, 4)
    spark.sql(f"delete from {name} where id in (1, 3)")
    stream = stream_of(
        spark, name, stream_from_snapshot="current", streaming_max_files_per_micro_batch=1
    )
    run = read_available(stream, tmp_path)
    assert sorted(len(b) for b in run.batches) == [1, 2]
    assert ids_of(run.batches) == [0, 2, 4]
    insert(spark, name, 5)
    assert ids_of(read_available(stream, tmp_path).batches) == [5]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["iceberg", "iceberg-py"])
def test_the_format_as_a_stream(
    spark: SparkSession, table: str, lake: IcebergSession, tmp_path: Path, name: str
) -> None:
    def read(target: str, checkpoint: str, **options: str) -> list[int]:
        reader = spark.readStream.format(name)
        for key, value in options.items():
            reader = reader.option(key.replace("_", "-"), value)
        run = read_available(reader.load(target), tmp_path / checkpoint)
        assert sum(p["numInputRows"] for p in run.progress) == sum(map(len, run.batches))
        return ids_of(run.batches)

    assert read(table, "by-name") == [0, 1, 2]
    assert read(table, "limits", streaming_max_files_per_micro_batch="1") == [0, 1, 2]
    spark.sql(f"alter table {table} create branch b")
    insert(spark, f"{table}.branch_b", 5)
    assert read(table, "branch", branch="b") == [0, 1, 2, 5]
    path = tmp_path / "table"
    create_path_table(path, "id BIGINT, v STRING", [{"id": 1, "v": "a"}])
    assert read(str(path), "by-path") == [1]
    assert read(str(path), "by-path") == []
    warehouse = {"catalog.type": "hadoop", "catalog.warehouse": str(tmp_path / "warehouse")}
    spark.createDataFrame([(4, "d")], "id long, v string").write.format("iceberg-py").options(
        **warehouse
    ).mode("append").save("db.t")
    assert read("db.t", "by-options", **warehouse) == [4]
    insert(spark, table, 6)
    assert read(table, "by-name") == [6]


def test_options_that_a_stream_would_ignore_are_refused(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    for option, hint in (
        ("start-snapshot-id", "stream-from-snapshot"),
        ("filter", r"where\(...\)"),
        ("streaming_max_file_per_micro_batch", "known: .*streaming-max-files-per-micro-batch"),
    ):
        value = "1" if option.startswith("streaming") else snapshots(spark, table)[0]
        with pytest.raises(Exception, match=hint):
            read_available(stream_of(spark, table, **{option: value}), tmp_path / option)
    with pytest.raises(Exception, match="metadata table"):
        read_available(spark.readStream.table(f"{table}.files"), tmp_path / "files")
    location = spark.sql(f"describe extended {table}").where("col_name = 'Location'").first()
    assert location is not None
    for number, name in enumerate([table, location.data_type]):
        reader = spark.readStream.format("iceberg-py").option("stream-from-snapshots", "latest")
        with pytest.raises(Exception, match=r"did you mean stream-from-snapshot\?"):
            read_available(reader.load(name), tmp_path / f"misspelt-{number}")


@pytest.mark.nightly
def test_a_stream_is_forgotten_when_its_query_ends(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    query = running(stream_of(spark, table), tmp_path)
    query.processAllAvailable()
    assert len(_BRIDGE_SESSIONS.streams) == 1
    query.stop()
    assert len(_BRIDGE_SESSIONS.streams) == 0
