"""Partition statistics of Java and this package: equal rows; each builds on the other's file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.changes.changes import RemovePartitionStatistics
from iceberg_pyspark.changes.outcomes import Done
from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

EPOCH = date(1970, 1, 1)
CALL = "CALL {catalog}.system.compute_partition_stats(table => 'parts.{name}'{more})"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.parts")
        yield native_oracle


def make(lake: Oracle, name: str, version: int) -> str:
    table = f"java_hadoop.parts.{name}"
    lake.sql(
        f"CREATE TABLE {table} (id BIGINT, p STRING, d DATE) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    add(lake, table, 0)
    return table


def add(lake: Oracle, table: str, first: int) -> None:
    lake.sql(
        f"INSERT INTO {table} SELECT id, nullif('p' || id % 4, 'p3'), "
        f"date_add(date'1969-12-30', cast(id % 3 as int)) FROM range({first}, {first + 20})"
    )


def compute(lake: Oracle, catalog: str, name: str, more: str = "") -> tuple[object, list[Any]]:
    done = lake.sql(CALL.format(catalog=catalog, name=name, more=more))
    return done.schema, [row[0] for row in done.collect()]


def forget(table: Table) -> None:
    """Remove all partition statistics from the table metadata."""
    table.refresh()
    removed = [
        RemovePartitionStatistics(f.snapshot_id) for f in table.metadata.partition_statistics
    ]
    done = table.catalog.commit_table(table.identifier, [], removed)
    assert isinstance(done, Done)


def rows(table: Table) -> list[dict[str, Any]]:
    result = table.refresh().partition_statistics()
    assert result is not None
    columns: list[dict[str, Any]] = result.to_pylist()
    return columns


def java_rows(lake: Oracle, name: str) -> list[tuple[Any, ...]]:
    """Return the current snapshot's statistics as Java's reader returns them."""
    jvm = lake.spark._jvm
    assert jvm is not None
    java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lake.spark._jsparkSession, f"java_hadoop.parts.{name}"
    )
    java.refresh()
    anything = jvm.java.lang.Class.forName("java.lang.Object")
    scan = java.newPartitionStatisticsScan().useSnapshot(java.currentSnapshot().snapshotId()).scan()
    result, one = [], scan.iterator()
    while one.hasNext():
        s = one.next()
        p = s.partition()
        result.append(
            (
                [str(p.get(i, anything)) for i in range(p.size())],
                s.specId(),
                s.dataRecordCount(),
                s.dataFileCount(),
                s.totalDataFileSizeInBytes(),
                s.positionDeleteRecordCount(),
                s.positionDeleteFileCount(),
                s.equalityDeleteRecordCount(),
                s.equalityDeleteFileCount(),
                s.totalRecords(),
                s.lastUpdatedAt(),
                s.lastUpdatedSnapshotId(),
                s.dvCount(),
            )
        )
    return result


def as_java_rows(result: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return our statistics in the form of `java_rows`, with a date as its days since 1970."""
    out = []
    for row in result:
        values = [
            "None" if v is None else str((v - EPOCH).days if isinstance(v, date) else v)
            for v in row["partition"].values()
        ]
        out.append((values, *(v for n, v in row.items() if n != "partition")))
    return out


@pytest.mark.parametrize("version", [2, 3])
def test_the_same_rows(lake: Oracle, version: int) -> None:
    name = f"same{version}"
    table = make(lake, name, version)
    ours = our_table(lake, table)

    def in_turns() -> None:
        """Compute full statistics with Java and then with this package; the rows must be equal."""
        forget(ours)
        schema, [java_file] = compute(lake, "java_hadoop", name)
        java = rows(ours)
        assert compute(lake, "lake", name)[1] == [java_file], "what is there stays"
        forget(ours)
        our_schema, [file] = compute(lake, "lake", name)
        assert (our_schema, rows(ours)) == (schema, java)
        assert file != java_file
        assert java_rows(lake, name) == as_java_rows(rows(ours))

    in_turns()
    steps = [("lake", "java_hadoop"), ("java_hadoop", "lake")]
    if FULL_WORK:
        steps.append(("lake", "lake"))
    for number, (before, after) in enumerate(steps):
        forget(ours)
        compute(lake, before, name)
        add(lake, table, 100 * number)
        lake.sql(f"DELETE FROM {table} WHERE id % 10 = {number}")
        if number == 0:
            lake.sql(f"ALTER TABLE {table} ADD PARTITION FIELD d")
        if number == 1:
            lake.sql(f"DELETE FROM {table} WHERE p = 'p1'")
        compute(lake, after, name)
        incremental = rows(ours)
        forget(ours)
        compute(lake, "java_hadoop", name)
        full = rows(ours)
        # A full computation has no row for a partition whose files were removed earlier.
        assert [r for r in incremental if r["data_file_count"]] == [
            r for r in full if r["data_file_count"]
        ]
        in_turns()


def test_tables_without(lake: Oracle) -> None:
    lake.sql("CREATE TABLE java_hadoop.parts.plain USING iceberg AS SELECT 1 id")
    lake.sql("CREATE TABLE java_hadoop.parts.none (id BIGINT) USING iceberg PARTITIONED BY (id)")
    for catalog in ("java_hadoop", "lake"):
        assert compute(lake, catalog, "none")[1] == []
        with pytest.raises(Exception, match="partitioned"):
            compute(lake, catalog, "plain")
