"""A mirror that applies the changes of a table by MERGE is equal to its source at all times.

The source gets random statements of Spark, in both modes; Spark reads both tables. One mirror
follows without Spark's streams, another is kept by a stream and restarts after each statement.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.change_feed.table_changes import TableChanges
from tests.amounts import WORK
from tests.support.native_lake import sqlite_lake

MODES = ("merge-on-read", "copy-on-write")
COLUMNS = "id bigint, v string, n struct<a: int, b: array<struct<c: string>>>"
ROWS = (
    "select id, concat('{v}', id) v, named_struct('a', int(id % 4), 'b', "
    "array(named_struct('c', '{v}'), null)) n from range({a}, {b})"
)
STATEMENTS = (
    "insert into {t} select * from ({rows}) r where r.id not in (select id from {t})",
    "delete from {t} where id % {n} = 0 and id > {a}",
    "update {t} set v = '{v}' where id % {n} = 1",
    "update {t} set n.a = n.a + 1 where id % {n} = 0",
    "merge into {t} t using ({rows}) s on t.id = s.id when matched and s.id % {n} = 0 then delete "
    "when matched then update set v = s.v when not matched then insert *",
    "insert overwrite {t} select id, case when id % {n} = 0 then '{v}' else v end, n from {t}",
    "call mirrored.system.rewrite_data_files('{t}', options => map('rewrite-all', 'true'))",
)
MERGE = (
    "merge into {mirror} m using last_changes c on m.id = c.id "
    "when matched and c._change_type = 'DELETE' then delete when matched then update set * "
    "when not matched and c._change_type = 'INSERT' then insert *"
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("mirrored"), "mirrored") as session:
        yield session


def apply(rows: DataFrame, mirror: str) -> None:
    """Apply the changes of some snapshots to a table with the key `id`."""
    last = f.max_by(f.struct("*"), f.struct("_change_ordinal", "_change_type")).alias("last")
    rows.groupBy("id").agg(last).select("last.*").createOrReplaceTempView("last_changes")
    rows.sparkSession.sql(MERGE.format(mirror=mirror))


def check_equal(spark: SparkSession, mirror: str, source: str, context: object) -> None:
    left, right = spark.table(mirror), spark.sql(f"select * from {source}")
    assert left.exceptAll(right).count() == 0, context
    assert right.exceptAll(left).count() == 0, context


@dataclass
class Stream:
    """A mirror that a stream keeps equal; each batch is compared with its last snapshot."""

    spark: SparkSession
    source: str
    mirror: str
    checkpoint: Path
    batches: int = 0

    def run(self, limit: int) -> None:
        stream = self.spark.readStream.option("streaming-max-files-per-micro-batch", limit)
        writer = stream.table(f"{self.source}.changes").writeStream.foreachBatch(self.batch)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def batch(self, rows: DataFrame, _number: int) -> None:
        apply(rows, self.mirror)
        if last := rows.orderBy(f.desc("_change_ordinal")).head(1):
            snapshot = last[0]["_commit_snapshot_id"]
            at = f"{self.source} version as of {snapshot}"
            check_equal(rows.sparkSession, self.mirror, at, snapshot)
            self.batches += 1


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_the_mirror_equals_its_source(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path, version: int, mode: str
) -> None:
    choose = random.Random(f"{version} {mode}")
    modes = ", ".join(f"'write.{c}.mode'='{mode}'" for c in ("delete", "update", "merge"))
    name = f"v{version}_{mode.replace('-', '_')}"
    source, mirror = f"mirrored.db.{name}", f"mirrored.db.{name}_mirror"
    streamed = Stream(spark, source, f"{mirror}_of_stream", tmp_path)
    for table in (source, mirror, streamed.mirror):
        spark.sql(
            f"create table {table} ({COLUMNS}) using iceberg "
            f"tblproperties ('format-version'='{version}', {modes})"
        )
    at: int | str = "earliest"
    seen = set()
    for step in range(8 * WORK):
        statement = choose.choice(STATEMENTS) if step else STATEMENTS[0]
        a = choose.randrange(40)
        rows = ROWS.format(v=f"s{step}_", a=a, b=a + 15)
        table = f"db.{name}" if statement.startswith("call") else source
        spark.sql(statement.format(t=table, rows=rows, a=a, v=f"u{step}", n=choose.choice([2, 3])))
        for changes in lake.table(source).follow(at, timeout=0):
            snapshot = changes.snapshot
            assert snapshot is not None
            result = changes.to_arrow()
            check_minimal(changes, result, version)
            if result.num_rows:  # Spark takes no empty Arrow table with nested columns
                apply(spark.createDataFrame(result), mirror)
            at = snapshot.snapshot_id
            seen.add(snapshot.operation)
        check_equal(spark, mirror, source, statement)
        if choose.randrange(2):
            streamed.run(choose.choice([1, 100]))
            check_equal(spark, streamed.mirror, source, statement)
    streamed.run(100)
    check_equal(spark, streamed.mirror, source, "at the end")
    assert streamed.batches > 1
    assert "overwrite" in seen


def check_minimal(changes: TableChanges, result: pa.Table, version: int) -> None:
    """Assert that compaction changes nothing, and that nothing is added as it was deleted."""
    assert changes.snapshot is not None
    assert not result.num_rows or changes.snapshot.operation != "replace"
    if version == 2:
        pairs = result.select(["id", "v", "n"]).to_pylist()
        assert len({str(r) for r in pairs}) == len(pairs)
