"""Snapshot expiry and orphan removal equal Java's: the same snapshots, files and counts."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.table.maintenance.removal.expire_snapshots import ExpiredSnapshots
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.readings import our_table, snapshot_ids

pytestmark = pytest.mark.nightly

COUNTS = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)
REFS = ("main", "first", "side")


def make(oracle: Oracle, name: str, version: int) -> Table:
    """Create a table with Java: deletes, branches, tags, statistics and rewritten manifests."""
    catalog, _, rest = name.partition(".")
    oracle.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
    )
    for start in (0, 4, 8):
        values = ", ".join(f"({i}, '{'ab'[i % 2]}')" for i in range(start, start + 4))
        oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.sql(f"ALTER TABLE {name} CREATE TAG first AS OF VERSION {snapshot_ids(oracle, name)[0]}")
    oracle.sql(f"DELETE FROM {name} WHERE id = 5")
    oracle.sql(f"CALL {catalog}.system.compute_table_stats('{rest}')")
    oracle.sql(f"CALL {catalog}.system.rewrite_manifests('{rest}')")
    oracle.sql(
        f"ALTER TABLE {name} CREATE BRANCH side RETAIN 9 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS"
    )
    oracle.sql(f"DELETE FROM {name} WHERE p = 'a'")
    oracle.sql(f"INSERT INTO {name}.branch_side VALUES (20, 'c')")
    oracle.sql(f"INSERT OVERWRITE {name} VALUES (30, 'b'), (31, 'c')")
    return our_table(oracle, name)


def call(oracle: Oracle, name: str, arguments: str) -> dict[str, Any]:
    catalog, _, rest = name.partition(".")
    [row] = oracle.sql(f"CALL {catalog}.system.expire_snapshots('{rest}', {arguments})").collect()
    return row.asDict()


def files_of(table: Table) -> set[str]:
    result = (p for p in Path(table.location).rglob("*") if p.is_file())
    return {str(p) for p in result if p.suffix in (".parquet", ".avro", ".puffin", ".stats")}


def counts_of(done: ExpiredSnapshots) -> dict[str, int]:
    return {name: getattr(done, name) for name in COUNTS}


@pytest.mark.parametrize(("catalog", "version"), [("java_hadoop", 2), ("java_sql", 3)])
def test_java_does_what_we_plan(oracle: Oracle, catalog: str, version: int) -> None:
    name = f"{catalog}.same_expiry.planned_{version}"
    table = make(oracle, name, version)
    now = int(time.time() * 1000)
    ids = snapshot_ids(oracle, name)
    for arguments, ours in (
        (f"snapshot_ids => array({ids[1]}L)", {"snapshot_ids": [ids[1]]}),
        (
            f"older_than => timestamp_millis({now}), retain_last => 2",
            {"older_than": now, "retain_last": 2},
        ),
        (
            f"older_than => timestamp_millis({now}), clean_expired_metadata => true",
            {"older_than": now, "clean_expired_metadata": True},
        ),
    ):
        before = files_of(table)
        plan = table.maintenance().expire_snapshots(dry_run=True, **ours)
        done = call(oracle, name, arguments)
        assert counts_of(plan) == done, arguments
        assert list(done) == list(COUNTS)
        deleted = before - files_of(table)
        assert len(deleted) == sum(done.values())
        table.refresh()
        assert plan.expired_snapshots_count == len(ids) - len(table.snapshots)
        ids = [s.snapshot_id for s in table.snapshots]
        assert table.maintenance().expire_snapshots(**ours) == ExpiredSnapshots()
    assert set(table.refs) == set(REFS)


@pytest.mark.parametrize(("catalog", "version"), [("java_hadoop", 3), ("java_sql", 2)])
def test_java_finds_nothing_left_to_do(
    oracle: Oracle, java: JavaTables, catalog: str, version: int
) -> None:
    name = f"{catalog}.same_expiry.done_{version}"
    table = make(oracle, name, version)
    now = int(time.time() * 1000)
    rows = [java.rows(name, ref=ref) for ref in REFS]
    before = files_of(table)
    done = table.maintenance().expire_snapshots(older_than=now)
    assert sum(counts_of(done).values()) == len(before - files_of(table)) > 5
    assert call(oracle, name, f"older_than => timestamp_millis({now})") == dict.fromkeys(COUNTS, 0)
    assert [java.rows(name, ref=ref) for ref in REFS] == rows


def test_java_finds_the_same_orphans(oracle: Oracle) -> None:
    name = "java_hadoop.same_expiry.orphans"
    catalog, _, rest = name.partition(".")
    table = make(oracle, name, 2)
    folder = Path(table.location)
    for file in ("data/p=a/x.parquet", "data/_hidden/x", "data/.x.crc", "metadata/x.avro", "y/z"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    past = time.time() - 4 * 86_400
    for path in filter(Path.is_file, folder.rglob("*")):
        os.utime(path, (past, past))
    ours = table.maintenance().remove_orphan_files(dry_run=True).orphan_file_locations
    call = f"CALL {catalog}.system.remove_orphan_files(table => '{rest}', dry_run => true)"
    theirs = [row["orphan_file_location"] for row in oracle.sql(call).collect()]
    assert sorted(ours) == sorted(path.removeprefix("file:") for path in theirs)
    assert len(ours) == 3
    assert table.maintenance().remove_orphan_files().deleted_files_count == 3
    assert oracle.sql(call).collect() == []
