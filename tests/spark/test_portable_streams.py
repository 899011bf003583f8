"""Streams by the data source alone: where Iceberg is not installed in the session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import Table, load_table
from iceberg_pyspark.spark.session import IcebergSession
from tests.spark.portable_copy import KNOWS_LIMITS
from tests.support.native_lake import sqlite_lake
from tests.support.spark_sessions import run_driver
from tests.support.streams import offsets_of

PORTABLE = {"native": "false"}
HAS_LIMITS = pytest.mark.skipif("sys.modules.get('pyspark.sql.streaming.datasource') is None")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("portable")
    with sqlite_lake(spark, folder, "portable") as session:
        yield session


def append(spark: SparkSession, path: Path, *ids: int) -> None:
    rows = spark.createDataFrame([(i, f"v{i}") for i in ids], "id long, v string").coalesce(1)
    rows.write.format("iceberg-py").options(**PORTABLE).mode("append").save(str(path))


def source(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    named = PORTABLE | {k.replace("_", "-"): str(v) for k, v in options.items()}
    return spark.readStream.format("iceberg-py").options(**named).load(str(path))


def sink(stream: DataFrame, table: Path, checkpoint: Path, **options: str) -> None:
    writer = stream.writeStream.format("iceberg-py").options(**PORTABLE | options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start(str(table))
    query.awaitTermination()


def ids_of(table: Table) -> list[int]:
    return sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())


def epochs(table: Table) -> list[int]:
    summaries = [s.summary for s in table.refresh().snapshots]
    return [int(s[k]) for s in summaries if (k := "spark.sql.streaming.epochId") in s]


def run_last_batch_again(checkpoint: Path) -> None:
    """Forget that the last batch of a checkpoint is complete."""
    last = max(int(f.name) for f in (checkpoint / "commits").iterdir() if f.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def test_a_table_is_copied_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    path, copy, checkpoint = tmp_path / "t", tmp_path / "copy", tmp_path / "checkpoint"
    for i in range(3):
        append(spark, path, 2 * i, 2 * i + 1)
    append(spark, copy)
    stream = source(spark, path)
    sink(stream, copy, checkpoint)
    table = load_table(str(copy))
    assert ids_of(table) == list(range(6))
    assert set(offsets_of(checkpoint)[0]) >= {"version", "snapshot_id", "position", "begin"}
    append(spark, path, 6)
    # the restarted query goes on from its checkpoint
    sink(stream, copy, checkpoint)
    assert ids_of(table) == list(range(7))
    run_last_batch_again(checkpoint)
    before = len(table.snapshots)
    sink(stream, copy, checkpoint)
    assert ids_of(table) == list(range(7))
    assert (len(table.snapshots), epochs(table)) == (before, [0, 1])


def test_options_of_streams_are_refused_by_a_batch_read(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    append(spark, tmp_path / "t", 1)
    option = "streaming-max-files-per-micro-batch"
    for native in ("false", "true"):
        reader = spark.read.format("iceberg-py").options(**{"native": native, option: "1"})
        frame = reader.load(str(tmp_path / "t"))
        for run in (frame.collect, frame.count):
            with pytest.raises(PySparkException, match=f"{option} is for streams.*readStream"):
                run()
        with pytest.raises(PySparkException, match=f"{option} is for streams"):
            reader.load(f"{tmp_path / 't'}#snapshots").collect()


@pytest.mark.nightly
@pytest.mark.parametrize("first", ["true", "false"])
def test_a_checkpoint_goes_on_with_the_other_path(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, first: str
) -> None:
    """A query changes between native and portable streams, also before its last batch again."""
    path, copy, checkpoint = tmp_path / "t", tmp_path / "copy", tmp_path / "checkpoint"
    append(spark, copy)
    append(spark, path, 0)
    other = {"true": "false", "false": "true"}[first]
    table = load_table(str(copy))
    for i, native in enumerate((first, other, other, first, other, first)):
        # without limits, Spark reads nothing after a batch that a portable stream repeats
        repeats = i and i % 2 == 0 and native == "false" and not KNOWS_LIMITS
        for _ in range(2 if repeats else 1):
            sink(source(spark, path, native=native), copy, checkpoint, native=native)
        assert ids_of(table) == list(range(i + 1))
        if i % 2:
            run_last_batch_again(checkpoint)
        append(spark, path, i + 1)
    assert epochs(table) == list(range(6))


@pytest.mark.nightly
def test_streams_run_on_executors_in_other_processes(tmp_path: Path) -> None:
    program = Path(__file__).parent / "clustered_streams.py"
    output = run_driver(
        tmp_path / "spark", program, str(tmp_path / "lake"), master="local-cluster[2,1,1024]"
    )
    copies = [list(range(100)), list(range(200))]
    assert json.loads(output.splitlines()[-1]) == {
        "executors": 2,
        "copies": {"true": copies, "false": copies},
    }
