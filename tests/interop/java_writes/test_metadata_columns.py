"""Metadata columns, such as a row's position and row lineage, equal Java's in every respect.

Row lineage: docs/conformance.md 14, 15, 18, 20, 21.
"""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import assert_read_alike, our_frame, our_rows
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

LINEAGE = "_row_id, _last_updated_sequence_number"


@pytest.mark.parametrize("delete_mode", ["copy-on-write", "merge-on-read"])
def test_row_lineage_through_every_kind_of_change(oracle: Oracle, delete_mode: str) -> None:
    name = f"java_sql.lineage.{delete_mode.replace('-', '_')}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, v INT) USING iceberg PARTITIONED BY (v) TBLPROPERTIES ("
        "'format-version' = '3', "
        + ", ".join(f"'write.{k}.mode' = '{delete_mode}'" for k in ("delete", "update", "merge"))
        + ")"
    )
    columns = f"id, {LINEAGE}"
    for change in (
        f"INSERT INTO {name} SELECT id, id % 2 FROM range(0, 10, 1, 1)",
        f"INSERT INTO {name} SELECT id, 0 FROM range(10, 15, 1, 1)",
        f"UPDATE {name} SET v = 1 WHERE id IN (2, 4, 12)",
        f"DELETE FROM {name} WHERE id IN (1, 10)",
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (3), (4), (50) AS u(id)) u "
        "ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = 9 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (50, 9)",
        f"CALL java_sql.system.rewrite_data_files(table => '{name.partition('.')[2]}', "
        "options => map('rewrite-all', 'true'))",
        f"INSERT INTO {name} VALUES (60, 9)",
        f"UPDATE {name} SET id = 61 WHERE id = 60",
    ):
        oracle.sql(change)
        java = oracle.sql(f"SELECT {columns} FROM {name}")
        rows = assert_read_alike(oracle, name, java, columns=columns)
    ids = [row[1] for row in rows]
    assert len(set(ids)) == len(ids) == 15
    assert spark_rows(our_frame(oracle, name, columns=columns).collect()) == rows


def test_row_lineage_of_a_table_upgraded_to_v3(oracle: Oracle) -> None:
    name = "java_hadoop.lineage.upgraded"
    oracle.sql(f"CREATE TABLE {name} (id INT) USING iceberg TBLPROPERTIES ('format-version' = '1')")
    oracle.sql(f"INSERT INTO {name} SELECT id FROM range(0, 5, 1, 1)")
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '2')")
    oracle.sql(f"INSERT INTO {name} SELECT id FROM range(5, 10, 1, 1)")
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    columns = f"id, {LINEAGE}"
    [[old]] = oracle.sql(f"SELECT snapshot_id FROM {name}.refs").collect()
    java = oracle.sql(f"SELECT {columns} FROM {name}")
    rows = assert_read_alike(oracle, name, java, columns=columns)
    assert all(row[1:] == (None, None) for row in rows)
    oracle.sql(f"INSERT INTO {name} VALUES (10)")
    now = oracle.sql(f"SELECT {columns} FROM {name}")
    rows = assert_read_alike(oracle, name, now, through_spark=True, columns=columns)
    assert sorted(row[1] for row in rows) == list(range(11))
    then = oracle.sql(f"SELECT {columns} FROM {name} VERSION AS OF {old}")
    assert_read_alike(oracle, name, then, columns=columns, snapshot_id=old)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_file_position_spec_and_partition(oracle: Oracle, version: int) -> None:
    name = f"java_hadoop.columns.all_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, ts TIMESTAMP, s STRING) USING iceberg "
        f"PARTITIONED BY (days(ts)) TBLPROPERTIES ('format-version' = '{version}')"
    )
    values = (
        "(1, TIMESTAMP '2026-01-01 05:00:00', 'a'), (2, TIMESTAMP '2026-01-01 06:00:00', 'b'), "
        "(3, TIMESTAMP '1969-12-31 23:00:00', null), (4, null, 'c')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(1, s) AS first")
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    oracle.sql(f"ALTER TABLE {name} DROP PARTITION FIELD days(ts)")
    oracle.sql(f"INSERT INTO {name} VALUES {values}")
    columns = "_partition, id, _file, _pos, _spec_id"
    java = oracle.sql(f"SELECT {columns} FROM {name}")
    rows = assert_read_alike(oracle, name, java, columns=columns)
    assert {row[4] for row in rows} == {0, 1, 2}
    frame = our_frame(oracle, name, columns=columns)
    assert [f.dataType for f in frame.schema] == [f.dataType for f in java.schema]
    assert spark_rows(frame.collect()) == rows
    deleted = "id, _deleted"
    assert_read_alike(oracle, name, oracle.sql(f"SELECT {deleted} FROM {name}"), columns=deleted)
    assert our_rows(oracle, name, columns="_pos,s", filter="id = 4 AND s = 'c'") == [(0, "c")] * 3
