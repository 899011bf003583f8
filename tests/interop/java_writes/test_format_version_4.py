"""Tables that Java 1.12 writes as version 4: Parquet manifests with an Avro manifest list."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.session import install
from tests.support.oracle import Oracle
from tests.support.readings import (
    EVERY_READ,
    assert_filters_alike,
    assert_read_alike,
    our_frame,
    our_table,
)
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

COLUMNS = (
    "id BIGINT, s STRING, ts TIMESTAMP, ntz TIMESTAMP_NTZ, d DATE, n DECIMAL(9, 2), b BOOLEAN, "
    "f DOUBLE, bin BINARY, st STRUCT<a: INT, b: STRING>"
)
ROWS = (
    "SELECT id, if(id % 7 = 0, null, concat('s', id % 11)), "
    "timestamp '1969-12-31 20:00:00' + make_interval(0, 0, 0, 0, int(id)), "
    "timestamp_ntz '1969-12-31 23:59:59.999999' + make_interval(0, 0, 0, int(id)), "
    "date '1969-12-25' + int(id), cast(id - 10 AS DECIMAL(9, 2)) / 4, id % 2 = 0, "
    "if(id = 5, double('nan'), id / 3), cast(concat('x', id) AS BINARY), "
    "named_struct('a', cast(id AS INT), 'b', 'y') FROM range({first}, {end})"
)
PARTITIONINGS = {
    "plain": "",
    "transforms": "PARTITIONED BY (bucket(4, id), days(ts), truncate(2, s))",
    "values and times": "PARTITIONED BY (d, b, n, hours(ts), months(ntz))",
    "identity of times": "PARTITIONED BY (ts, ntz, bin)",
}
METADATA_TABLES = (
    *("entries", "files", "data_files", "delete_files", "manifests", "partitions", "snapshots"),
    *("all_entries", "all_files", "all_manifests", "history", "refs", "position_deletes"),
)


def create(oracle: Oracle, table: str, *, version: int = 4, partitioned_by: str = "") -> str:
    """Create a table; since version 4, Java requires a location with a scheme."""
    name = f"java_sql.version_4.{table}"
    oracle.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg {partitioned_by} "
        f"LOCATION 'file:{oracle.sql_warehouse}/version_4/{table}' TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')"
    )
    return name


@pytest.fixture(scope="module")
def java(oracle: Oracle) -> Oracle:
    install(oracle.spark)
    oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_sql.version_4")
    return oracle


def changed_table(oracle: Oracle, partitioning: str) -> str:
    """Return the name of a table with deletes; create it unless another test has."""
    number = list(PARTITIONINGS).index(partitioning)
    if oracle.spark.catalog.tableExists(f"java_sql.version_4.t{number}"):
        return f"java_sql.version_4.t{number}"
    name = create(oracle, f"t{number}", partitioned_by=PARTITIONINGS[partitioning])
    oracle.sql(f"INSERT INTO {name} {ROWS.format(first=0, end=20)}")
    oracle.sql(f"DELETE FROM {name} WHERE id % 5 = 1")
    oracle.sql(f"UPDATE {name} SET s = 'u' WHERE id IN (3, 4)")
    oracle.sql(f"INSERT INTO {name} {ROWS.format(first=30, end=33)}")
    oracle.sql(f"DELETE FROM {name} WHERE id % 5 = 2")
    return name


@pytest.mark.parametrize("partitioning", list(PARTITIONINGS))
def test_rows_lineage_filters_and_history_are_javas(java: Oracle, partitioning: str) -> None:
    name = changed_table(java, partitioning)
    folder = Path(our_table(java, name).location.removeprefix("file:"), "metadata")
    assert list(folder.glob("*-m*.parquet"))
    assert not list(folder.glob("*-m*.avro"))
    assert_read_alike(java, name, through_spark=True)
    filters = ["id = 8", "s = 'u'", "d < DATE '1970-01-01'", "n >= 1.5", "st.a > 30", "s IS NULL"]
    filters.append("ts >= TIMESTAMP '1970-01-01 00:00:00'")
    assert_filters_alike(
        java, name, filters, "id, _row_id, _last_updated_sequence_number, _file", natively=True
    )
    for snapshot in our_table(java, name).snapshots[:: 1 if EVERY_READ else 2]:
        old = java.spark.read.option("versionAsOf", snapshot.snapshot_id).table(name)
        assert_read_alike(java, name, old, snapshot_id=str(snapshot.snapshot_id))


@pytest.mark.parametrize(
    ("partitioning", "table"),
    [
        *[("transforms", table) for table in METADATA_TABLES],
        *[("plain", t) for t in ("files", "partitions", "manifests")],
    ],
)
def test_metadata_tables_are_javas(java: Oracle, partitioning: str, table: str) -> None:
    name = f"{changed_table(java, partitioning)}.{table}"
    ours, theirs = our_frame(java, name), java.spark.table(name)
    both = [column for column in theirs.columns if column in ours.columns]
    assert both
    # The maps have no order, and the readable metrics are derived from them.
    simple = [c for c in both if c not in ("readable_metrics", "column_sizes")]
    assert spark_rows(ours.select(*simple).collect()) == spark_rows(
        theirs.select(*simple).collect()
    )


def test_leaves_of_both_formats_are_read_after_an_upgrade(java: Oracle) -> None:
    name = create(java, "upgraded", version=3, partitioned_by="PARTITIONED BY (bucket(2, id))")
    java.sql(f"INSERT INTO {name} {ROWS.format(first=0, end=12)}")
    java.sql(f"DELETE FROM {name} WHERE id = 3")
    before = our_table(java, name).metadata.current_snapshot_id
    java.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '4')")
    assert_read_alike(java, name)
    java.sql(f"INSERT INTO {name} {ROWS.format(first=12, end=20)}")
    java.sql(f"DELETE FROM {name} WHERE id IN (4, 15)")
    folder = Path(our_table(java, name).location.removeprefix("file:"), "metadata")
    manifests = [r.path for r in java.sql(f"SELECT path FROM {name}.manifests").collect()]
    assert {Path(path).suffix for path in manifests} == {".avro", ".parquet"}
    assert list(folder.glob("*-m*.avro"))
    assert_read_alike(java, name)
    assert_filters_alike(java, name, ["id = 2", "id > 13"], "id, _row_id", natively=True)
    old = java.spark.read.option("versionAsOf", before).table(name)
    assert_read_alike(java, name, old, snapshot_id=str(before))


def test_equality_deletes_apply(java: Oracle) -> None:
    name = create(java, "keys")
    java.sql(f"INSERT INTO {name} {ROWS.format(first=0, end=12)}")
    java.write_equality_deletes(name, ["id"], [(2,), (3,)])
    java.sql(f"INSERT INTO {name} {ROWS.format(first=2, end=3)}")
    assert len(assert_read_alike(java, name, through_spark=EVERY_READ)) == 11


def test_many_files_in_one_manifest_are_planned_as_java_plans_them(java: Oracle) -> None:
    name = create(java, "many", partitioned_by="PARTITIONED BY (s, d)")
    java.sql(f"INSERT INTO {name} {ROWS.format(first=0, end=400)}")
    assert len(list(our_table(java, name).scan().plan_files())) == 400
    assert_read_alike(java, name)
    assert_filters_alike(java, name, ["d = DATE '1970-01-03'", "s = 's3' AND id < 50"])


def test_no_statement_of_ours_changes_it(java: Oracle) -> None:
    name = create(java, "guarded")
    java.sql(f"INSERT INTO {name} {ROWS.format(first=0, end=5)}")
    metadata = our_table(java, name).loaded.metadata_location.removeprefix("file:")
    spark, folder = java.spark, Path(f"{java.sql_warehouse}/version_4/guarded")
    # Copy the table to a path catalog, through which we could change it.
    shutil.copy(metadata, folder / "metadata/v1.metadata.json")
    spark.conf.set("spark.sql.catalog.v4", "iceberg_pyspark")
    spark.conf.set("spark.sql.catalog.v4.type", "hadoop")
    spark.conf.set("spark.sql.catalog.v4.warehouse", str(java.sql_warehouse))
    before = sorted(folder.rglob("*"))
    t = "v4.version_4.guarded"
    assert spark.table(t).count() == 5
    for statement in (
        f"INSERT INTO {t} SELECT * FROM {t}",
        f"INSERT OVERWRITE {t} SELECT * FROM {t}",
        f"DELETE FROM {t} WHERE id = 1",
        f"UPDATE {t} SET s = 'x'",
        f"MERGE INTO {t} a USING (SELECT 1L AS id) b ON a.id = b.id WHEN MATCHED THEN DELETE",
        f"TRUNCATE TABLE {t}",
        f"ALTER TABLE {t} ADD COLUMN x INT",
        f"ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
        f"ALTER TABLE {t} CREATE TAG x",
        "CALL v4.system.rewrite_data_files(table => 'version_4.guarded', "
        "options => map('rewrite-all', 'true'))",
        "CALL v4.system.expire_snapshots(table => 'version_4.guarded')",
        "CALL v4.system.remove_orphan_files(table => 'version_4.guarded')",
        f"DROP TABLE {t} PURGE",
    ):
        with pytest.raises((PySparkException, UnsupportedFeatureError), match="format version 4"):
            spark.sql(statement)
        assert sorted(folder.rglob("*")) == before, statement
    assert len(java.table_rows(name)) == 5


@pytest.mark.parametrize("partitioning", list(PARTITIONINGS))
def test_java_reads_a_copy_with_rewritten_paths(
    java: Oracle, partitioning: str, tmp_path: Path
) -> None:
    """Each column of a Parquet manifest, of every type, is written again as it was."""
    number = list(PARTITIONINGS).index(partitioning)
    table = our_table(java, changed_table(java, partitioning))
    done = table.maintenance().rewrite_table_path(
        source_prefix=table.location, target_prefix=f"file:{tmp_path}/copy"
    )
    assert done.file_list_location is not None
    with Path(done.file_list_location.removeprefix("file:")).open(newline="") as lines:
        for source, target in csv.reader(lines):
            path = Path(target.removeprefix("file:"))
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source.removeprefix("file:"), path)
    copy = f"version_4.copy{number}"
    latest = f"file:{tmp_path}/copy/metadata/{done.latest_version}"
    java.sql(f"CALL java_sql.system.register_table('{copy}', '{latest}')")
    columns = "*, _row_id, _last_updated_sequence_number"
    expected = java.sql(f"SELECT {columns} FROM java_sql.version_4.t{number}")
    actual = java.sql(f"SELECT {columns} FROM java_sql.{copy}")
    assert spark_rows(actual.collect()) == spark_rows(expected.collect())
    for row in java.sql(f"SELECT file_path FROM java_sql.{copy}.all_files").collect():
        assert row[0].startswith(f"file:{tmp_path}/copy/")
    assert_read_alike(java, f"java_sql.{copy}", through_spark=False)


def test_variants_whole_and_shredded(java: Oracle) -> None:
    name = "java_sql.version_4.variants"
    java.sql(
        f"CREATE TABLE {name} (id BIGINT, v VARIANT, z STRING) USING iceberg "
        f"LOCATION 'file:{java.sql_warehouse}/version_4/variants' TBLPROPERTIES ("
        "'format-version' = '4', 'write.delete.mode' = 'merge-on-read', "
        "'read.parquet.vectorization.enabled' = 'false')"
    )
    for shred in ("false", "true"):
        java.sql(
            f"ALTER TABLE {name} SET TBLPROPERTIES ('write.parquet.shred-variants' = '{shred}')"
        )
        java.sql(
            f"""INSERT INTO {name} SELECT id, parse_json(concat('{{"a": ', id, ', "s": [1]}}')), """
            "concat('z', id) FROM range(0, 9, 1, 1)"
        )
    java.sql(f"DELETE FROM {name} WHERE try_variant_get(v, '$.a', 'int') % 3 = 1")
    assert len(assert_read_alike(java, name)) == 12
    table = our_table(java, name)
    assert table.scan("variant_field(v, '$.a', 'int') = 3").count() == 2
    assert len(list(table.scan("variant_field(v, '$.a', 'int') > 8").plan_files())) == 1
