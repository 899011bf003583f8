"""Streams into Iceberg tables: one snapshot for each batch, and each batch exactly once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
from iceberg_pyspark.changes.outcomes import unknown
from iceberg_pyspark.errors import CatalogUnavailableError
from iceberg_pyspark.spark.session import IcebergSession
from tests.spark.killed_stream import KILLS
from tests.support.frames import data_files
from tests.support.native_lake import sqlite_lake
from tests.support.python_daemons import SERVER
from tests.support.spark_sessions import ROOT, spark_environment
from tests.support.table_integrity import table_problems

PROGRAM = "tests.spark.killed_stream"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("sinks"), "sinks") as session:
        yield session


def add(spark: SparkSession, folder: Path, *rows: tuple[int, str]) -> None:
    """Add a file to the folder that a stream reads."""
    spark.createDataFrame(list(rows), "id long, k string").coalesce(1).write.mode("append").parquet(
        str(folder)
    )


def source(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:
    return spark.readStream.schema("id long, k string").options(**options).parquet(str(folder))


def write_available(
    stream: DataFrame, table: str, checkpoint: Path, mode: str = "append", **options: str
) -> list[int]:
    """Write what there is; return the number of rows that each batch has written, as Spark says."""
    writer = stream.writeStream.format("iceberg").outputMode(mode).trigger(availableNow=True)
    for name, value in options.items():
        writer = writer.option(name.replace("_", "-"), value)
    query = writer.option("checkpointLocation", str(checkpoint)).toTable(table)
    try:
        query.awaitTermination()
    finally:
        query.stop()
    progress = [json.loads(p.json) for p in query.recentProgress]
    return [p["sink"]["numOutputRows"] for p in progress if "addBatch" in p["durationMs"]]


def epochs(spark: SparkSession, table: str) -> list[tuple[str, str]]:
    rows = spark.sql(
        "select operation, summary['spark.sql.streaming.epochId'] e, "
        f"summary['spark.sql.streaming.queryId'] q from {table}.snapshots "
        "where summary['spark.sql.streaming.queryId'] is not null order by committed_at"
    ).collect()
    assert len({row.q for row in rows}) <= 1
    return [(row.operation, row.e) for row in rows]


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.table(table).collect())


def forget_last_batch(checkpoint: Path) -> None:
    """Make Spark run the last batch again, as after a crash between its commit and the log."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def test_each_batch_is_one_snapshot_and_is_written_once(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.t (id bigint, k string) using iceberg partitioned by (k)")

    def write() -> list[int]:
        return write_available(source(spark, tmp_path / "in"), "sinks.db.t", tmp_path / "c")

    add(spark, tmp_path / "in", (1, "a"), (2, "b"))
    assert write() == [2]
    add(spark, tmp_path / "in", (3, "a"))
    assert write() == [1]
    assert ids(spark, "sinks.db.t") == [1, 2, 3]
    assert epochs(spark, "sinks.db.t") == [("append", "0"), ("append", "1")]
    location = Path(lake.table("sinks.db.t").location.removeprefix("file:"))
    before = data_files(location)
    forget_last_batch(tmp_path / "c")
    assert write() == [0]
    assert ids(spark, "sinks.db.t") == [1, 2, 3]
    assert data_files(location) == before, "the batch wrote files again"
    forget_last_batch(tmp_path / "c")
    spark.sql("insert into sinks.db.t values (4, 'b')")
    lake.table("sinks.db.t").maintenance().expire_snapshots(older_than=1 << 52, retain_last=1)
    assert epochs(spark, "sinks.db.t") == []
    assert write() == [0]
    assert ids(spark, "sinks.db.t") == [1, 2, 3, 4]


@pytest.mark.nightly
def test_a_batch_that_was_rolled_back_is_written_again(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.back (id bigint, k string) using iceberg")
    for i in range(2):
        add(spark, tmp_path / "in", (i, "a"))
        write_available(source(spark, tmp_path / "in"), "sinks.db.back", tmp_path / "c")
    first = lake.table("sinks.db.back").snapshots[0].snapshot_id
    spark.sql(f"call sinks.system.rollback_to_snapshot('db.back', {first})")
    forget_last_batch(tmp_path / "c")
    write_available(source(spark, tmp_path / "in"), "sinks.db.back", tmp_path / "c")
    assert ids(spark, "sinks.db.back") == [0, 1]


@pytest.mark.nightly
def test_two_queries_into_one_table(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    """One query appends, the other upserts, at the same time; each batch is there once."""
    spark.sql("create table sinks.db.two (id bigint, k string) using iceberg")
    count, queries = 8, {}
    for name in ("a", "u"):
        for i in range(count):
            add(spark, tmp_path / name, (i if name == "a" else -1 - i % 3, f"{name}{i}"))
    for name, mode in (("a", "append"), ("u", "update")):
        writer = source(spark, tmp_path / name, maxFilesPerTrigger=1).writeStream.outputMode(mode)
        if mode == "update":
            writer = writer.option("upsert-keys", "id")
        writer = writer.option("checkpointLocation", str(tmp_path / f"c-{name}"))
        queries[name] = writer.trigger(availableNow=True).toTable("sinks.db.two")
    for query in queries.values():
        query.awaitTermination()
    upserted = [(-1 - i % 3, f"u{i}") for i in range(count - 3, count)]
    assert rows_of(spark, "sinks.db.two") == sorted(
        [*((i, f"a{i}") for i in range(count)), *upserted], key=str
    )
    epoch = "summary['spark.sql.streaming.epochId']"
    found = spark.sql(
        f"select summary['spark.sql.streaming.queryId'] q, sort_array(collect_list(int({epoch}))) "
        f"from sinks.db.two.snapshots where {epoch} is not null group by 1"
    ).collect()
    numbers = list(range(count))
    assert {row[0]: row[1] for row in found} == {q.id: numbers for q in queries.values()}


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_batch_whose_outcome_is_unknown(
    spark: SparkSession,
    lake: IcebergSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    is_done: bool,
) -> None:
    """The query ends; the next run finds out whether the batch was committed."""
    table = f"sinks.db.lost_{mode}_{is_done}"
    spark.sql(
        f"create table {table} (id bigint, k string) using iceberg tblproperties "
        "('commit.status-check.min-wait-ms' = '1', 'commit.status-check.max-wait-ms' = '1')"
    )
    options = {"upsert_keys": "id"} if mode == "update" else {}
    add(spark, tmp_path / "in", (1, "a"))
    write_available(source(spark, tmp_path / "in"), table, tmp_path / "c", mode, **options)
    add(spark, tmp_path / "in", (2, "b"))
    swap, load = SqlCatalog._swap_table, SqlCatalog.load_table
    is_down = False

    def lose_the_answer(*arguments: Any) -> Any:
        nonlocal is_down
        if is_done:
            swap(*arguments)
        is_down = True
        return unknown("table", CatalogUnavailableError("the answer is lost"))

    def load_if_up(catalog: SqlCatalog, identifier: TableIdentifier) -> LoadedTable:
        if is_down:
            raise CatalogUnavailableError("the catalog is down")
        return load(catalog, identifier)

    with monkeypatch.context() as patches:
        patches.setattr(SqlCatalog, "_swap_table", lose_the_answer)
        patches.setattr(SqlCatalog, "load_table", load_if_up)
        with pytest.raises(StreamingQueryException, match="the commit may have succeeded"):
            write_available(source(spark, tmp_path / "in"), table, tmp_path / "c", mode, **options)
    assert is_down
    spark.sql(f"refresh table {table}")
    assert ids(spark, table) == ([1, 2] if is_done else [1])
    write_available(source(spark, tmp_path / "in"), table, tmp_path / "c", mode, **options)
    assert ids(spark, table) == [1, 2]
    assert [e for _, e in epochs(spark, table)] == ["0", "1"]
    assert table_problems(lake.table(table)) == []


@pytest.mark.nightly
def test_complete_mode_replaces_all_rows_and_keeps_the_state(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.counts (k string, n bigint) using iceberg")

    def run(rows: int = 2) -> list[tuple[str, int]]:
        counts = source(spark, tmp_path / "in").groupBy("k").agg(f.count("*").alias("n"))
        assert write_available(counts, "sinks.db.counts", tmp_path / "c", "complete") == [rows]
        return sorted((row.k, row.n) for row in spark.table("sinks.db.counts").collect())

    add(spark, tmp_path / "in", (1, "a"), (2, "b"))
    assert run() == [("a", 1), ("b", 1)]
    add(spark, tmp_path / "in", (3, "a"))
    assert run() == [("a", 2), ("b", 1)]
    forget_last_batch(tmp_path / "c")
    assert run(0) == [("a", 2), ("b", 1)]
    add(spark, tmp_path / "in", (4, "b"))
    assert run() == [("a", 2), ("b", 2)]
    assert [e for _, e in epochs(spark, "sinks.db.counts")] == ["0", "1", "2"]


@pytest.mark.nightly
def test_a_watermark_goes_on_when_its_batch_is_skipped(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.windows (start timestamp, n bigint) using iceberg")

    def run() -> list[tuple[str, int]]:
        times = source(spark, tmp_path / "in").withColumn("ts", f.timestamp_seconds("id"))
        windows = times.withWatermark("ts", "1 minute").groupBy(f.window("ts", "1 hour"))
        counts = windows.count().select(f.col("window.start"), f.col("count").alias("n"))
        write_available(counts, "sinks.db.windows", tmp_path / "c")
        rows = spark.sql("select string(start) s, n from sinks.db.windows order by 1").collect()
        return [(row.s, row.n) for row in rows]

    add(spark, tmp_path / "in", (0, "a"), (10, "a"))
    assert run() == []
    add(spark, tmp_path / "in", (2 * 3600, "a"))
    first = [("1970-01-01 00:00:00", 2)]
    assert run() == first
    forget_last_batch(tmp_path / "c")
    assert run() == first
    add(spark, tmp_path / "in", (4 * 3600, "a"))
    assert run() == [*first, ("1970-01-01 02:00:00", 1)]


@pytest.mark.nightly
def test_branches_options_and_modes(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.o (id bigint, k string) using iceberg")
    spark.sql("insert into sinks.db.o values (0, 'main')")
    spark.sql("alter table sinks.db.o create branch b")
    add(spark, tmp_path / "in", (1, "a"))
    stream = source(spark, tmp_path / "in")
    write_available(stream, "sinks.db.o", tmp_path / "b", branch="b")
    assert ids(spark, "sinks.db.o") == [0]
    assert ids(spark, "sinks.db.o.branch_b") == [0, 1]
    write_available(stream, "sinks.db.o", tmp_path / "b2", branch="b", fanout_enabled="true")
    assert ids(spark, "sinks.db.o.branch_b") == [0, 1, 1]
    write_available(stream, "sinks.db.made", tmp_path / "made")
    assert ids(spark, "sinks.db.made") == [1]
    with pytest.raises(Exception, match="unknown write option 'fanout'"):
        write_available(stream, "sinks.db.o", tmp_path / "unknown", fanout="true")
    with pytest.raises(Exception, match="upsert-keys is for streams with outputMode"):
        write_available(stream, "sinks.db.o", tmp_path / "keys", upsert_keys="id")


def upsert(
    spark: SparkSession, tmp_path: Path, table: str, *rows: tuple[int | None, str], **options: str
) -> None:
    """Upsert what the folder of a table has got."""
    folder = tmp_path / table
    if rows:
        add(spark, folder, *rows)  # type: ignore[arg-type]
    write_available(source(spark, folder), table, tmp_path / f"{table}-c", "update", **options)


def rows_of(spark: SparkSession, table: str) -> list[tuple[int | None, str]]:
    return sorted((tuple(row) for row in spark.table(table).collect()), key=str)


def test_a_row_in_update_mode_replaces_the_row_of_its_key(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.u (id bigint not null, k string) using iceberg")
    with pytest.raises(Exception, match=r"set the option upsert-keys .*SET IDENTIFIER FIELDS"):
        upsert(spark, tmp_path, "sinks.db.u", (1, "a"), (2, "b"))
    spark.sql("alter table sinks.db.u set identifier fields id")
    upsert(spark, tmp_path, "sinks.db.u")
    upsert(spark, tmp_path, "sinks.db.u", (2, "B"), (3, "c"))
    expected = [(1, "a"), (2, "B"), (3, "c")]
    assert rows_of(spark, "sinks.db.u") == expected
    assert [e for _, e in epochs(spark, "sinks.db.u")] == ["0", "1"]
    forget_last_batch(tmp_path / "sinks.db.u-c")
    spark.sql("delete from sinks.db.u where id = 3")
    upsert(spark, tmp_path, "sinks.db.u")
    assert rows_of(spark, "sinks.db.u") == expected[:2], "the batch was written again"
    with pytest.raises(Exception, match=r"2 rows have the key `id` = 4, .*aggregate by the key"):
        upsert(spark, tmp_path, "sinks.db.u", (4, "d"), (4, "e"))
    assert rows_of(spark, "sinks.db.u") == expected[:2]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_upserts_are_merges(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, version: int, mode: str
) -> None:
    """Rows of a branch are those of a model after each batch; the key has two columns and nulls."""
    table = f"sinks.db.up_{version}_{mode[:4]}"
    spark.sql(
        f"create table {table} (id bigint, k string, v int) using iceberg partitioned by (k) "
        f"tblproperties ('format-version'='{version}', 'write.merge.mode'='{mode}')"
    )
    spark.sql(f"alter table {table} create branch b")
    model: dict[tuple[int, str], int] = {}
    without_key: list[tuple[int | None, str | None, int]] = []
    folder = tmp_path / "in"
    for batch in range(4):
        keys = {((7 * i + batch) % 20, "xyz"[(i + batch) % 3]) for i in range(12)}
        rows = [(i, k, batch) for i, k in keys]
        nulls = [(None, "x", batch), (None, "x", batch), (batch, None, batch)]
        frame = spark.createDataFrame([*rows, *nulls], "id long, k string, v int")
        frame.coalesce(2).write.mode("append").parquet(str(folder))
        stream = spark.readStream.schema(frame.schema).parquet(str(folder))
        options = {"branch": "b", "upsert_keys": "ID, k"}
        written = write_available(stream, table, tmp_path / "c", "update", **options)
        assert written == [len(rows) + len(nulls)]
        model.update({(i, k): v for i, k, v in rows})
        without_key += nulls
        expected = [*((i, k, v) for (i, k), v in model.items()), *without_key]
        found = [tuple(row) for row in spark.table(f"{table}.branch_b").collect()]
        assert sorted(found, key=str) == sorted(expected, key=str)
    assert spark.table(table).count() == 0
    assert [e for _, e in epochs(spark, table)] == ["0", "1", "2", "3"]


@pytest.mark.nightly
@pytest.mark.parametrize("state_format", [1, 2])
def test_counts_in_update_mode(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, state_format: int
) -> None:
    """A stateful query sends the groups that have changed, and runs again with the same state."""
    table = f"sinks.db.counted_{state_format}"
    spark.sql(f"create table {table} (k string, n bigint) using iceberg")
    sizes: dict[str, int] = {}
    name = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    provider = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(provider)
    assert before is not None
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set(name, str(state_format))
    if state_format == 2:
        spark.conf.set(provider, rocks)
    try:
        for batch, keys in enumerate(["ab", "bc", "c", "aab"]):
            add(spark, tmp_path / "in", *((i, k) for i, k in enumerate(keys)))
            counts = source(spark, tmp_path / "in").groupBy("k").agg(f.count("*").alias("n"))
            for again in (False, True):
                if again:
                    forget_last_batch(tmp_path / "c")
                else:
                    for k in keys:
                        sizes[k] = sizes.get(k, 0) + 1
                write_available(counts, table, tmp_path / "c", "update", upsert_keys="k")
                assert {row.k: row.n for row in spark.table(table).collect()} == sizes
            assert len(epochs(spark, table)) == batch + 1
    finally:
        spark.conf.unset(name)
        spark.conf.set(provider, before)


@pytest.mark.nightly
def test_keys_that_cannot_be_compared(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql(
        "create table sinks.db.nested (s struct<id: bigint, v: string>, l array<int>) using iceberg"
    )
    add(spark, tmp_path / "in", (1, "a"))
    stream = source(spark, tmp_path / "in").selectExpr(
        "named_struct('id', id, 'v', k) s", "array(1) l"
    )
    for keys, message in (
        ("none", "no column 'none'"),
        ("l", "cannot have the column l of type list<int>"),
        ("l.element", "cannot have the column l.element"),
        ("s", "cannot have the column s"),
    ):
        with pytest.raises(Exception, match=message):
            write_available(stream, "sinks.db.nested", tmp_path / keys, "update", upsert_keys=keys)
    for i in range(2):
        add(spark, tmp_path / "in", (2, f"b{i}"))
        keep = {"upsert_keys": "s.id"}
        write_available(stream, "sinks.db.nested", tmp_path / "c", "update", **keep)
    rows = spark.sql("select s.id, s.v from sinks.db.nested").collect()
    assert sorted(map(tuple, rows)) == [(1, "a"), (2, "b1")]


def test_a_query_that_cannot_start_leaves_no_table(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    add(spark, tmp_path / "in", (1, "a"))
    counts = source(spark, tmp_path / "in").groupBy("k").count()
    with pytest.raises(AnalysisException, match="output mode: append"):
        write_available(counts, "sinks.db.none", tmp_path / "c")
    assert not spark.catalog.tableExists("sinks.db.none")
    stream = source(spark, tmp_path / "in")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query = writer.partitionBy("k").toTable("sinks.db.some")
    try:
        assert lake.table("sinks.db.some").spec.fields[0].name == "k"
        query.processAllAvailable()
    finally:
        query.stop()
    assert ids(spark, "sinks.db.some") == [1]
    spark.sql("alter table sinks.db.some create branch b")
    write_available(stream, "sinks.db.some.branch_b", tmp_path / "b")
    assert ids(spark, "sinks.db.some.branch_b") == [1, 1]
    assert ids(spark, "sinks.db.some") == [1]
    for name, message in (
        ("sinks.db.some.branch_c", "has no branch or tag 'c'"),
        ("sinks.no.t", "SCHEMA_NOT_FOUND"),
    ):
        with pytest.raises(Exception, match=message):
            write_available(stream, name, tmp_path / name)


@pytest.mark.nightly
def test_a_stream_from_a_table_into_another(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table sinks.db.from (id bigint, k string) using iceberg")
    spark.sql("create table sinks.db.to (id bigint, k string) using iceberg")
    for i in range(3):
        spark.sql(f"insert into sinks.db.from values ({i}, 'v')")
        stream = spark.readStream.table("sinks.db.from")
        write_available(stream, "sinks.db.to", tmp_path / "c")
        assert ids(spark, "sinks.db.to") == list(range(i + 1))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "how", ["append", "copy-on-write", "merge-on-read", "batches", "portable batches"]
)
def test_processes_that_are_killed_in_a_batch(tmp_path: Path, how: str) -> None:
    """Each row is in the table once, if the driver is killed at each point of a batch in turn.

    Each run adds a row, completes what the run before it has left, and is killed in a batch.
    """
    environment = spark_environment()
    # else Spark's Python daemon is no child of the executor
    environment.pop(SERVER, None)
    kills = ("", *KILLS[:-2], *KILLS[:-2], *KILLS[-2:], "")
    for kill in kills:
        done = subprocess.run(
            [sys.executable, "-m", PROGRAM, str(tmp_path), how, kill],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        dies = kill in KILLS[:-2]
        assert done.returncode == (-signal.SIGKILL if dies else 0), done.stderr[-3000:]
        assert kill not in KILLS[-2:] or (tmp_path / kill).exists()
    result = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(f"{how}: {result}\n")
    last = len(kills) - 1
    by_key = [[i, max(v for v in range(last + 1) if v % 3 == i)] for i in range(3)]
    appended = [[i, i] for i in range(last + 1)]
    assert result["problems"] == []
    if how.endswith("batches"):
        # the first change of the first batch has no rows
        assert result["rows"] == [[i, last] for i in range(last + 1)]
        assert result["epochs"] == [0, *(i for i in range(1, last + 1) for _ in range(2))]
        return
    assert result["rows"] == (appended if how == "append" else by_key)
    assert result["epochs"] == list(range(last + 1))
