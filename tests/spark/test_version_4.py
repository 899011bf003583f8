"""Tables of format version 4 with root manifests in SQL: statements compared with version 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases
from tests.support.rows import PlainRow, spark_rows

STATEMENTS = (
    "INSERT INTO {t} VALUES (1, 'a', 1.5), (2, 'b', 2.5), (3, 'a', null)",
    "INSERT INTO {t} VALUES (4, 'b', 4.5), (5, 'c', 5.5)",
    "DELETE FROM {t} WHERE id = 2",
    "UPDATE {t} SET x = 9 WHERE id IN (1, 5)",
    "MERGE INTO {t} t USING (SELECT * FROM VALUES (4, 'z'), (7, 'n') s(id, p)) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, s.p)",
    "ALTER TABLE {t} ADD COLUMN note STRING",
    "INSERT INTO {t} VALUES (8, 'a', 8.5, 'new'), (9, 'c', 9.5, 'new')",
    "DELETE FROM {t} WHERE p = 'a'",
    "INSERT OVERWRITE {t} SELECT id + 100, p, x, note FROM {t} WHERE p = 'c'",
    "CALL v4.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
    "INSERT INTO {t} VALUES (10, 'd', 0.5, null)",
    "CALL v4.system.rewrite_manifests(table => '{t}')",
)
READ = "SELECT {v}, *, _row_id, _last_updated_sequence_number FROM {t}"
LIMITS = {
    "as they are": {},
    "a small root": {
        "write.root.max-data-entries": "1",
        "write.root.max-delete-entries": "0",
        "commit.manifest.min-count-to-merge": "2",
    },
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("v4"), "v4") as session:
        yield session


@cases("mode", fast=["merge-on-read"], nightly=["copy-on-write"])
@pytest.mark.parametrize("limits", list(LIMITS))
def test_statements_have_the_rows_and_lineage_of_version_3(
    spark: SparkSession, lake: IcebergSession, limits: str, mode: str
) -> None:
    tables = {}
    for version in (3, 4):
        name = tables[version] = f"v4.db.s{version}_{limits[:2].strip()}_{mode[:4]}"
        properties = {
            "format-version": str(version),
            **{f"write.{op}.mode": mode for op in ("delete", "update", "merge")},
            **LIMITS[limits],
        }
        messages = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        spark.sql(
            f"CREATE TABLE {name} (id INT, p STRING, x DOUBLE) PARTITIONED BY (p) "
            f"TBLPROPERTIES ({messages})"
        )
    ids: dict[int, int] = {}
    for statement in STATEMENTS:
        for name in tables.values():
            spark.sql(statement.format(t=name))
        both = " UNION ALL ".join(READ.format(v=v, t=n) for v, n in tables.items())
        actual: dict[int, list[PlainRow]] = {v: [] for v in tables}
        for version, *values in spark_rows(spark.sql(both).collect()):
            actual[version].append(tuple(values))
        assert [r[:-2] + r[-1:] for r in actual[4]] == [r[:-2] + r[-1:] for r in actual[3]], (
            statement
        )
        # Version 3 skips row ids when manifests are rewritten, so the ids of new rows differ.
        for row, same in zip(actual[4], actual[3], strict=True):
            assert ids.setdefault(same[-2], row[-2]) == row[-2], statement
    assert len(set(ids.values())) == len(ids)
    for name in tables.values():
        portable = lake.table(name).scan().to_arrow()
        assert sorted(portable["id"].to_pylist()) == sorted(
            r["id"] for r in spark.sql(f"SELECT id FROM {name}").collect()
        )
    metadata = lake.table(tables[4]).metadata
    assert all(s.root_manifest and s.manifest_list is None for s in metadata.snapshots)
    for table in ("entries", "manifests", "files", "all_entries", "partitions", "snapshots"):
        counts = {v: _count(lake, n, table) for v, n in tables.items()}
        assert counts[4] > 0
        if table in ("files", "partitions"):
            assert counts[4] == counts[3], table
            assert spark.sql(f"SELECT * FROM {tables[4]}.{table}").count() == counts[4]
    ids_of_old = "SELECT {i} i, id FROM {t} VERSION AS OF {i}"
    every = [ids_of_old.format(i=s.snapshot_id, t=tables[4]) for s in metadata.snapshots]
    counted = Counter(r.i for r in spark.sql(" UNION ALL ".join(every)).collect())
    for snapshot in metadata.snapshots:
        total = int(snapshot.summary["total-records"]) - _deleted(snapshot.summary)
        assert counted[snapshot.snapshot_id] == total


def _count(lake: IcebergSession, name: str, table: str) -> int:
    return len(lake.table(name).metadata_table(table).to_arrow())


def _deleted(summary: object) -> int:
    assert hasattr(summary, "get")
    return int(summary.get("total-position-deletes", 0))


def test_upgraded_table_continues_in_version_4(spark: SparkSession, lake: IcebergSession) -> None:
    spark.sql(
        "CREATE TABLE v4.db.u (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES "
        "('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql("INSERT INTO v4.db.u VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    spark.sql("ALTER TABLE v4.db.u SET TBLPROPERTIES ('format-version' = '3')")
    spark.sql("DELETE FROM v4.db.u WHERE id = 1")
    spark.sql("ALTER TABLE v4.db.u SET TBLPROPERTIES ('format-version' = '4')")
    before = lake.table("v4.db.u").metadata
    assert all(s.root_manifest is None for s in before.snapshots)
    assert before.location.startswith("file:")
    spark.sql("INSERT INTO v4.db.u VALUES (4, 'b')")
    spark.sql("DELETE FROM v4.db.u WHERE id = 3")
    actual = spark.sql("SELECT id, _row_id FROM v4.db.u ORDER BY id").collect()
    assert [tuple(r) for r in actual] == [(2, 1), (4, 3)]
    after = lake.table("v4.db.u").metadata
    assert [s.root_manifest is not None for s in after.snapshots] == [False, False, True, True]
    for snapshot, count in zip(after.snapshots, (3, 2, 3, 2), strict=True):
        rows = spark.sql(f"SELECT * FROM v4.db.u VERSION AS OF {snapshot.snapshot_id}")
        assert rows.count() == count
    spark.sql(
        "CALL v4.system.expire_snapshots(table => 'db.u', retain_last => 1, "
        "older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    assert sorted(r["id"] for r in spark.table("v4.db.u").collect()) == [2, 4]
    folder = Path(after.location.removeprefix("file:"))
    assert list(folder.glob("metadata/*.avro")), "a manifest of before the upgrade is still needed"
    spark.sql("DROP TABLE v4.db.u PURGE")
    assert not list(folder.rglob("*.parquet"))
