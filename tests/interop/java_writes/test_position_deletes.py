"""Rows that Java deleted by position: v2 files of both granularities, v3 deletion vectors."""

from __future__ import annotations

import pytest

from iceberg_pyspark.planning.scan_tasks import DeleteFileRef
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    EVERY_READ,
    assert_filters_alike,
    assert_read_alike,
    our_scan,
    rows_alike,
)

METADATA_COLUMNS = ("_file", "_pos")


def delete_files(oracle: Oracle, name: str) -> dict[str, DeleteFileRef]:
    """Return the delete files of our plan by path and offset."""
    return {
        f"{delete.file_path}@{delete.content_offset}": delete
        for task in our_scan(oracle, name).plan_files()
        for delete in task.deletes
    }


def create_table(oracle: Oracle, name: str, version: int, granularity: str) -> None:
    """Create a table that uses merge-on-read and whose files have many row groups."""
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING, v DOUBLE, s STRUCT<x: INT, y: STRING>) "
        "USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.granularity' = '{granularity}', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
        "'write.merge.mode' = 'merge-on-read', 'write.parquet.row-group-size-bytes' = '1', "
        "'write.parquet.row-group-check-min-record-count' = '20')"
    )
    for start in (0, 100):
        oracle.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('p', id % 2), id / 2, "
            f"named_struct('x', cast(id AS INT), 'y', 's') FROM range({start}, {start + 100})"
        )


@cases(
    ("version", "granularity"),
    fast=[(2, "partition"), (3, "file")],
    nightly=[(2, "file")],
    ids=str,
)
def test_delete_update_and_merge_on_read(oracle: Oracle, version: int, granularity: str) -> None:
    name = f"java_hadoop.positions.mor_{version}_{granularity}"
    create_table(oracle, name, version, granularity)
    oracle.sql(f"DELETE FROM {name} WHERE id % 10 IN (3, 4) OR id BETWEEN 20 AND 45")
    oracle.sql(f"UPDATE {name} SET v = -v, s.y = null WHERE id % 10 = 5 AND p = 'p1'")
    oracle.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (0, 'p0'), (7, 'p1'), (300, 'p0') "
        "AS u(id, p)) u ON t.id = u.id AND t.p = u.p WHEN MATCHED AND t.id = 7 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = 1000 "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (u.id, u.p)"
    )
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 140
    deletes = delete_files(oracle, name).values()
    assert all(d.is_deletion_vector == (version == 3) for d in deletes)
    assert deletes
    # Splits begin inside a file, and filters skip row groups; positions still count from the file's
    # start.
    columns = ", ".join(["id", *METADATA_COLUMNS])
    filters = ["id >= 150", "v < 0", "s.x = 18", "p = 'p1' AND id > 95"]
    assert_filters_alike(oracle, name, filters, columns, natively=True)
    everything = oracle.sql(f"SELECT {columns} FROM {name}")
    split = {"columns": columns, "split-size": "1"}
    assert_read_alike(oracle, name, everything, through_spark=version == 3, **split)
    assert our_scan(oracle, name).count() == 140


@pytest.mark.nightly
def test_old_position_deletes_of_an_upgraded_table_apply_until_a_vector_replaces_them(
    oracle: Oracle,
) -> None:
    """Old position deletes apply until a vector replaces them (docs/conformance.md 32, 34)."""
    name = "java_sql.positions.upgraded"
    create_table(oracle, name, 2, "partition")
    oracle.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    oracle.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    assert len(assert_read_alike(oracle, name)) == 180
    oracle.sql(f"DELETE FROM {name} WHERE id IN (1, 3, 5)")
    assert len(assert_read_alike(oracle, name, through_spark=EVERY_READ)) == 178
    kinds = {d.is_deletion_vector for d in delete_files(oracle, name).values()}
    assert kinds == {True, False}
    by_task = [
        {d.is_deletion_vector for d in task.deletes}
        for task in our_scan(oracle, name).plan_files()
        if any(d.is_deletion_vector for d in task.deletes)
    ]
    assert by_task == [{True}]
    oracle.sql(f"INSERT INTO {name} (id, p) VALUES (3, 'p1')")
    assert (3, "p1", None, None) in assert_read_alike(oracle, name)


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_position_deletes_written_by_the_java_api(oracle: Oracle, version: int) -> None:
    name = f"java_hadoop.positions.api_{version}"
    create_table(oracle, name, version, "file")
    files = sorted(oracle.data_files(name))
    for p in ("p0", "p1"):
        first, second = [f for f in files if f"/p={p}/" in f]
        oracle.write_position_deletes(name, [(first, 0), (first, 49), (second, 17)], (p,))
    rows = assert_read_alike(oracle, name)
    assert len(rows) == 194
    oracle.sql(f"DELETE FROM {name} WHERE p = 'p0'")
    assert len(assert_read_alike(oracle, name)) == 97
    assert our_scan(oracle, name).count() == 97
    assert len(rows_alike(oracle, name, columns="id", filter="v >= 0")) == 97
