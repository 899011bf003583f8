"""Streams by the data source alone: where Iceberg is not installed in the session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark import Table, load_table
from tests.support.streams import offsets_of

PORTABLE = {"native": "false"}
HAS_LIMITS = pytest.mark.skipif("sys.modules.get('pyspark.sql.streaming.datasource') is None")


def append(spark: SparkSession, path: Path, *ids: int) -> None:
    rows = spark.createDataFrame([(i, f"v{i}") for i in ids], "id long, v string").coalesce(1)
    rows.write.format("iceberg-py").options(**PORTABLE).mode("append").save(str(path))


def source(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    named = {k.replace("_", "-"): str(v) for k, v in options.items()}
    return spark.readStream.format("iceberg-py").options(**PORTABLE, **named).load(str(path))


def sink(stream: DataFrame, table: Path, checkpoint: Path, **options: str) -> None:
    writer = stream.writeStream.format("iceberg-py").options(**PORTABLE, **options)
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
