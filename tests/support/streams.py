"""Run streams until they have read what is there, and collect their batches."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql


@dataclass(frozen=True)
class StreamRun:
    """What one run of a stream has read."""

    batches: list[list[tuple[Any, ...]]]
    """The rows of each batch that had any."""

    progress: list[dict[str, Any]]
    """Spark's reports of the batches."""


def read_available(
    stream: DataFrame, checkpoint: Path, *, once: bool = False, mode: str = "append"
) -> StreamRun:
    """Run a stream with Trigger.AvailableNow, or Trigger.Once, to its end."""
    batches: list[list[tuple[Any, ...]]] = []

    def collect(batch: DataFrame, _id: int) -> None:
        rows = [tuple(row) for row in batch.collect()]
        if rows:
            batches.append(rows)

    writer = stream.writeStream.foreachBatch(collect).outputMode(mode)
    writer = writer.option("checkpointLocation", str(checkpoint))
    trigger = writer.trigger(once=True) if once else writer.trigger(availableNow=True)
    query = trigger.start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return StreamRun(batches, [json.loads(p.json) for p in query.recentProgress])


def read_until_now(stream: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Run a stream that would go on until it has read what is there; return its rows, sorted."""
    rows: list[tuple[Any, ...]] = []

    def collect(batch: DataFrame, _id: int) -> None:
        rows.extend(tuple(row) for row in batch.collect())

    writer = stream.writeStream.foreachBatch(collect)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return sorted(rows)


def copy_of_first_batches(checkpoint: Path, copy: Path, count: int) -> None:
    """Copy a checkpoint as it was after some batches."""
    shutil.copytree(checkpoint, copy)
    for folder in ("offsets", "commits"):
        for file in (copy / folder).iterdir():
            number = file.name.lstrip(".").partition(".")[0]
            if number.isdecimal() and int(number) >= count:
                file.unlink()


def rows_in(batches: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Return the rows of all batches, sorted."""
    return sorted(row for batch in batches for row in batch)


def offsets_of(checkpoint: Path) -> list[dict[str, Any]]:
    """Return the offset of the first source that each batch in a checkpoint ends at."""
    folder = checkpoint / "offsets"
    numbers = sorted(int(f.name) for f in folder.iterdir() if f.name.isdecimal())
    return [json.loads((folder / str(n)).read_text().splitlines()[2]) for n in numbers]


def stream_and_check(spark: SparkSession, namespace: str, folder: Path, first: int = 0) -> None:
    """Stream four new rows from one table of a namespace into others, and check these.

    The next call begins with `first` four higher, and goes on with the checkpoints in the folder.
    """
    if first == 0:
        spark.sql(f"create table {namespace}.source (id bigint, k bigint) using iceberg")
        spark.sql(f"create table {namespace}.newest (id bigint, k bigint) using iceberg")
    rows = f"select /*+ coalesce(1) */ id, id % 2 from range({first}, {first + 4})"
    spark.sql(f"insert into {namespace}.source {rows}")
    stream = spark.readStream.table(f"{namespace}.source")
    newest = stream.groupBy("k").agg(sql.max("id").alias("id"))
    for frame, table, mode in ((stream, "copy", "append"), (newest, "newest", "update")):
        writer = frame.writeStream.outputMode(mode).trigger(availableNow=True)
        if mode == "update":
            writer = writer.option("upsert-keys", "k")
        writer = writer.option("checkpointLocation", str(folder / table))
        writer.toTable(f"{namespace}.{table}").awaitTermination()
    copy = spark.table(f"{namespace}.copy").collect()
    assert sorted(tuple(row) for row in copy) == [(i, i % 2) for i in range(first + 4)]
    kept = spark.table(f"{namespace}.newest").collect()
    assert sorted(tuple(row) for row in kept) == [(first + 2, 0), (first + 3, 1)]
