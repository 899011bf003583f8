"""Tables after Java's maintenance: rewritten files and manifests, expired snapshots, moved rows."""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import EVERY_READ, assert_read_alike, our_rows, our_scan, our_table

pytestmark = pytest.mark.nightly


def test_rewrites_and_expiry_one_after_the_other(oracle: Oracle) -> None:
    catalog, table = "java_sql", "maintenance.all"
    name = f"{catalog}.{table}"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p INT, v STRING) USING iceberg PARTITIONED BY (p) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = "
        "'merge-on-read', 'commit.manifest.min-count-to-merge' = '3')"
    )
    for start in range(0, 50, 10):
        oracle.sql(
            f"INSERT INTO {name} SELECT id, id % 2, concat('v', id) "
            f"FROM range({start}, {start + 10}, 1, 1)"
        )
    oracle.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    oracle.sql(f"UPDATE {name} SET v = 'new' WHERE id % 10 = 4")
    oracle.write_equality_deletes(name, ["id"], [(5,), (15,)], (1,))
    expected = oracle.table_rows(name)
    assert len(expected) == 43
    tables = f"table => '{table}'"
    for call in (
        f"rewrite_position_delete_files({tables}, options => map('rewrite-all', 'true'))",
        f"rewrite_manifests({tables})",
        f"rewrite_data_files({tables}, where => 'p = 1', options => map('rewrite-all', 'true'))",
        f"rewrite_data_files({tables}, strategy => 'sort', sort_order => 'v', "
        "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))",
        f"expire_snapshots({tables}, older_than => TIMESTAMP '2100-01-01', retain_last => 1)",
        f"compute_table_stats({tables})",
        f"compute_partition_stats({tables})",
    ):
        oracle.sql(f"CALL {catalog}.system.{call}").collect()
        assert our_rows(oracle, name) == expected, call
    assert_read_alike(oracle, name, through_spark=True)
    assert len(our_table(oracle, name).snapshots) == 1
    statistics = our_scan(oracle, name, filter="p = 0 AND v > 'v4'").describe().statistics
    assert statistics.data_files == 2
    assert statistics.data_files_kept == 1
    assert statistics.delete_files == 0
    assert our_scan(oracle, name).count() == 43


def test_overwrites_truncates_and_replaced_tables(oracle: Oracle) -> None:
    name = "java_hadoop.maintenance.replaced"
    oracle.sql(f"CREATE TABLE {name} (id INT, p INT) USING iceberg PARTITIONED BY (p)")
    oracle.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    oracle.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        oracle.sql(f"INSERT OVERWRITE {name} VALUES (10, 1), (30, 3)")
    finally:
        oracle.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert [row[0] for row in assert_read_alike(oracle, name)] == [2, 10, 30]
    oracle.sql(f"DELETE FROM {name} WHERE p = 3")
    assert len(assert_read_alike(oracle, name)) == 2
    oracle.sql(f"REPLACE TABLE {name} USING iceberg PARTITIONED BY (q) AS SELECT 'x' AS id, 5 AS q")
    assert assert_read_alike(oracle, name, through_spark=EVERY_READ) == [("x", 5)]
    first = our_table(oracle, name).snapshots[0]
    old = oracle.sql(f"SELECT * FROM {name} VERSION AS OF {first.snapshot_id}")
    assert len(assert_read_alike(oracle, name, old, snapshot_id=str(first.snapshot_id))) == 2
    oracle.sql(f"TRUNCATE TABLE {name}")
    assert assert_read_alike(oracle, name) == []


def test_branches_published_by_write_audit_publish(oracle: Oracle) -> None:
    name = "java_sql.maintenance.staged"
    oracle.sql(
        f"CREATE TABLE {name} (id INT) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1)")
    oracle.spark.conf.set("spark.wap.id", "job-1")
    try:
        oracle.sql(f"INSERT INTO {name} VALUES (2)")
    finally:
        oracle.spark.conf.unset("spark.wap.id")
    assert assert_read_alike(oracle, name) == [(1,)]
    staged = next(
        s for s in our_table(oracle, name).snapshots if s.summary.get("wap.id") == "job-1"
    )
    java = oracle.sql(f"SELECT * FROM {name} VERSION AS OF {staged.snapshot_id}")
    assert_read_alike(oracle, name, java, snapshot_id=str(staged.snapshot_id))
    oracle.sql(f"INSERT INTO {name} VALUES (3)")
    oracle.sql(
        f"CALL java_sql.system.cherrypick_snapshot('maintenance.staged', {staged.snapshot_id})"
    )
    assert assert_read_alike(oracle, name) == [(1,), (2,), (3,)]
