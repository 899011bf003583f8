"""A query that runs for days holds no more memory and files than after its first batches."""

from __future__ import annotations

import gc
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import datafusion  # noqa: F401  # decodes large manifests: otherwise loaded meanwhile
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.data_source.open_stream import OpenStream
from iceberg_pyspark.storage.lru_map import LruMap
from tests.amounts import WORK
from tests.support.native_lake import sqlite_lake

BATCHES = 100 * WORK
POLLS = 1000 * WORK
WARM_UP = 60


@dataclass(frozen=True)
class Held:
    """What the driver's two processes hold."""

    objects: int
    heap: int
    files: int

    @classmethod
    def now(cls, spark: SparkSession) -> Held:
        assert spark._jvm is not None
        runtime = spark._jvm.java.lang.Runtime.getRuntime()
        for _ in range(3):
            runtime.gc()
            gc.collect()
        # what caches hold is bounded
        for cache in [o for o in gc.get_objects() if isinstance(o, LruMap)]:
            cache.clear()
        gc.collect()
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()
        return cls(
            objects=len(gc.get_objects()),
            heap=runtime.totalMemory() - runtime.freeMemory(),
            files=sum(len(os.listdir(f"/proc/{p}/fd")) for p in (os.getpid(), pid)),
        )


@pytest.mark.nightly
@pytest.mark.parametrize("sink", ["noop", "append", "update"])
def test_many_batches_and_polls_hold_nothing(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sink: str,
) -> None:
    polls = threading.Semaphore(0)
    refresh = OpenStream.refresh

    def counted(stream: OpenStream) -> None:
        refresh(stream)
        polls.release()

    monkeypatch.setattr(OpenStream, "refresh", counted)
    with sqlite_lake(spark, tmp_path, "long") as session:
        spark.sql(
            "create table long.db.t (id bigint) using iceberg tblproperties "
            "('write.metadata.delete-after-commit.enabled' = 'true', "
            "'write.metadata.previous-versions-max' = '2')"
        )
        table = session.table("long.db.t")
        spark.sql("create table long.db.to (id bigint) using iceberg")
        writer = spark.readStream.table("long.db.t").writeStream
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        if sink == "noop":
            query = writer.format("noop").start()
        else:
            if sink == "update":
                writer = writer.option("upsert-keys", "id")
            query = writer.outputMode(sink).toTable("long.db.to")

        def batches(first: int, last: int) -> None:
            for i in range(first, last):
                table.append(pa.table({"id": [i]}))
                query.processAllAvailable()
                if i % 20 == 0:
                    for each in (table, session.table("long.db.to")):
                        each.maintenance().expire_snapshots(older_than=1 << 52, retain_last=1)

        batches(0, WARM_UP)
        before = Held.now(spark)
        batches(WARM_UP, WARM_UP + BATCHES)
        for _ in range(POLLS):
            assert polls.acquire(timeout=60)
        after = Held.now(spark)
        assert query.exception() is None
        query.stop()
    sys.stdout.write(f"{before}\n{after}\n")
    assert after.objects - before.objects < 2000
    # Spark keeps the plans of the last 1,000 statements, and a MERGE is several
    assert sink == "update" or after.heap - before.heap < 16 << 20
    assert after.files - before.files < 10
