"""One checkpoint of a stream, used by Iceberg's Java connector and by us in turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.streams import copy_of_first_batches, read_available, read_until_now

OURS, JAVAS = "lake", "java_hadoop"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as both:
        yield both


def read(lake: Oracle, catalog: str, checkpoint: Path, **options: Any) -> list[list[int]]:
    """Read what is there by one of the connectors; return the ids of each batch."""
    reader = lake.spark.readStream
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    table = f"{catalog}.db.{checkpoint.name}"
    run = read_available(reader.table(table).select("id"), checkpoint)
    return [sorted(row[0] for row in batch) for batch in run.batches]


def append(lake: Oracle, catalog: str, name: str, *ids: int) -> None:
    values = ", ".join(f"({i})" for i in ids)
    lake.sql(f"insert into {catalog}.db.{name} select /*+ coalesce(1) */ * from values {values}")


def write(lake: Oracle, catalog: str, source: Path, checkpoint: Path, table: str) -> None:
    """Append what a folder has got to a table, by one of the connectors."""
    stream = lake.spark.readStream.schema("id long").parquet(str(source))
    writer = stream.writeStream.format("iceberg").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.toTable(f"{catalog}.db.{table}").awaitTermination()


@pytest.mark.nightly
def test_a_sink_passes_between_the_connectors(lake: Oracle, tmp_path: Path) -> None:
    """Each batch is in the table once, also if the other connector runs it again."""
    lake.sql("create table java_hadoop.db.sink (id bigint) using iceberg")
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for i, catalog in enumerate([JAVAS, OURS, OURS, JAVAS, JAVAS, OURS]):
        other = OURS if catalog == JAVAS else JAVAS
        lake.spark.range(i, i + 1).coalesce(1).write.mode("append").parquet(str(source))
        write(lake, catalog, source, checkpoint, "sink")
        (checkpoint / "commits" / str(i)).unlink()
        (checkpoint / "commits" / f".{i}.crc").unlink(missing_ok=True)
        write(lake, other, source, checkpoint, "sink")
        rows = lake.table_rows("java_hadoop.db.sink")
        assert [row[0] for row in rows] == list(range(i + 1))
        lake.sql(
            "call lake.system.expire_snapshots(table => 'db.sink', "
            "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
        )


def test_a_checkpoint_passes_between_the_connectors(lake: Oracle, tmp_path: Path) -> None:
    checkpoint = tmp_path / "passed"
    lake.sql("create namespace if not exists java_hadoop.db")
    lake.sql("create table java_hadoop.db.passed (id bigint) using iceberg")
    append(lake, JAVAS, "passed", 1)
    assert read(lake, JAVAS, checkpoint) == [[1]]
    append(lake, OURS, "passed", 2)
    assert read(lake, OURS, checkpoint) == [[2]]
    append(lake, OURS, "passed", 3)
    append(lake, JAVAS, "passed", 4)
    limit = {"streaming_max_files_per_micro_batch": 1}
    assert read(lake, JAVAS, checkpoint, **limit) == [[3], [4]]
    assert read(lake, OURS, checkpoint) == []
    append(lake, JAVAS, "passed", 5)
    assert read(lake, OURS, checkpoint, **limit) == [[5]]
    assert read(lake, JAVAS, checkpoint) == []


@pytest.mark.nightly
@pytest.mark.parametrize("merges", ["2", "100"])
def test_both_read_the_same_batches(lake: Oracle, tmp_path: Path, merges: str) -> None:
    """The batches of a limited stream are equal, and each connector goes on after any of them."""
    name = f"batches_{merges}"
    lake.sql(
        f"create table java_hadoop.db.{name} (id bigint, p int) using iceberg partitioned by (p) "
        f"tblproperties ('commit.manifest.min-count-to-merge' = '{merges}')"
    )
    for i, catalog in enumerate([JAVAS, OURS, JAVAS, OURS, JAVAS]):
        lake.sql(f"insert into {catalog}.db.{name} select id + {10 * i}, id % 3 from range(6)")
    for limits in (
        {"streaming_max_files_per_micro_batch": 2},
        {"streaming_max_rows_per_micro_batch": 5},
        {"streaming_max_files_per_micro_batch": 4, "streaming_max_rows_per_micro_batch": 3},
    ):
        batches = {}
        for catalog, other in ((JAVAS, OURS), (OURS, JAVAS)):
            checkpoint = tmp_path / catalog / str(limits) / name
            batches[catalog] = read(lake, catalog, checkpoint, **limits)
            for count in (1, len(batches[catalog]) // 2, len(batches[catalog]) - 1):
                part = tmp_path / f"{catalog}-{limits}-{count}" / name
                copy_of_first_batches(checkpoint, part, count)
                assert read(lake, other, part, **limits) == batches[catalog][count:]
        assert batches[OURS] == batches[JAVAS]


@pytest.mark.nightly
def test_the_connector_goes_on_where_our_stream_has_passed_a_compaction(
    lake: Oracle, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "compacted"
    lake.sql("create table java_hadoop.db.compacted (id bigint) using iceberg")
    append(lake, JAVAS, "compacted", 1)
    append(lake, JAVAS, "compacted", 2)
    assert read(lake, JAVAS, checkpoint) == [[1, 2]]
    lake.sql(
        "call java_hadoop.system.rewrite_data_files(table => 'db.compacted', "
        "options => map('rewrite-all', 'true'))"
    )
    assert read(lake, OURS, checkpoint) == []
    lake.sql(
        "call java_hadoop.system.expire_snapshots(table => 'db.compacted', "
        "older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)"
    )
    append(lake, OURS, "compacted", 3)
    # with AvailableNow, the connector begins at the first offset, whose snapshot has expired
    stream = lake.spark.readStream.table("java_hadoop.db.compacted")
    assert read_until_now(stream, checkpoint) == [(3,)]
    append(lake, JAVAS, "compacted", 4)
    assert read(lake, OURS, checkpoint) == [[4]]


@pytest.mark.nightly
def test_the_connector_goes_on_after_a_stream_that_began_with_the_table(
    lake: Oracle, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "begun"
    lake.sql(
        "create table java_hadoop.db.begun (id bigint) using iceberg tblproperties "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    append(lake, JAVAS, "begun", 1, 2, 3)
    append(lake, JAVAS, "begun", 4)
    lake.sql("delete from java_hadoop.db.begun where id = 2")
    lake.sql("delete from java_hadoop.db.begun where id = 4")
    assert read(lake, OURS, checkpoint, stream_from_snapshot="current") == [[1, 3]]
    append(lake, JAVAS, "begun", 5)
    skip = {"streaming_skip_delete_snapshots": True, "streaming_skip_overwrite_snapshots": True}
    assert read(lake, JAVAS, checkpoint, **skip) == [[5]]
    append(lake, JAVAS, "begun", 6)
    assert read(lake, OURS, checkpoint) == [[6]]
