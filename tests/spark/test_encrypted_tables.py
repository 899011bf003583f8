"""Encrypted tables in Spark: both paths, every change, and no plaintext file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.errors import InvalidRequestError
from tests.support.encrypted_tables import files_with, key_properties

SECRETS = ["secret", "PAR1", "PFA1", "Obj\x01", "iceberg.schema", "spark_schema"]
TABLE = "lake.db.t"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Yield the warehouse of the catalog `lake`, which has the keys, for a session of ours."""
    conf = {
        "spark.sql.catalog.lake": "iceberg_pyspark",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "wh"),
        **{f"spark.sql.catalog.lake.{k}": v for k, v in key_properties(tmp_path).items()},
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    session = install(spark)
    assert session.is_native
    yield tmp_path / "wh"
    session.uninstall()
    for key in conf:
        spark.conf.unset(key)


def create(spark: SparkSession, **properties: str) -> None:
    """Make a table of 3000 rows in several partitions, written by Spark's own writer."""
    pairs = {"format-version": "3", "encryption.key-id": "keyA", **properties}
    text = ", ".join(f"'{k}' = '{v}'" for k, v in pairs.items())
    spark.sql(
        f"create table {TABLE} (id bigint, part int, v string) partitioned by (part) "
        f"tblproperties ({text})"
    )
    spark.sql(f"insert into {TABLE} select id, int(id % 3), concat('secret', id) from range(3000)")


def rows(spark: SparkSession, where: str = "true") -> list[Any]:
    return [
        tuple(r) for r in spark.sql(f"select * from {TABLE} where {where} order by id").collect()
    ]


def expected(ids: Any) -> list[Any]:
    return [(i, i % 3, f"secret{i}") for i in ids]


def plan_of(spark: SparkSession, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().toString())


def test_spark_reads_and_writes_by_its_own_readers(spark: SparkSession, lake: Path) -> None:
    create(spark)
    plan = plan_of(spark, f"select * from {TABLE}")
    assert "IcebergPyParquetScan" in plan
    assert "MapInArrow" not in plan
    assert rows(spark) == expected(range(3000))
    assert rows(spark, "v = 'secret77'") == expected([77])
    spark.sql(f"delete from {TABLE} where id in (1, 2, 500)")
    spark.sql(f"update {TABLE} set v = 'secret changed' where id = 7")
    spark.sql(
        f"merge into {TABLE} t using (select 8L id union all select 9000L) s on t.id = s.id "
        "when matched then delete when not matched "
        "then insert (id, part, v) values (s.id, 0, 'secret new')"
    )
    ids = [i for i in range(3000) if i not in (1, 2, 500, 8)]
    right = [(i, p, "secret changed" if i == 7 else v) for i, p, v in expected(ids)]
    right.append((9000, 0, "secret new"))
    assert rows(spark) == right
    spark.sql("call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))")
    spark.sql("call lake.system.rewrite_manifests('db.t')")
    spark.sql("call lake.system.compute_table_stats('db.t')")
    assert rows(spark) == right
    assert files_with(lake, SECRETS) == []
    portable = spark.read.format("iceberg-py").option("native", "false")
    for key, value in key_properties(lake.parent).items():
        portable = portable.option(key, value)
    read = portable.load(str(lake / "db" / "t"))
    assert sorted(tuple(r) for r in read.collect()) == right


def test_no_key_is_in_a_plan_or_a_setting(spark: SparkSession, lake: Path) -> None:
    create(spark)
    keys = spark.sql(f"select key_metadata from {TABLE}.files").collect()
    texts = [plan_of(spark, f"select * from {TABLE} where id > 5")]
    texts += spark.sparkContext.getConf().toDebugString(), str(dict(spark.conf.getAll))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    assert hadoop.get("parquet.crypto.factory.class") is None
    assert len(keys) >= 3
    for row in keys:
        key = bytes(row[0])[2:18]
        for form in (key.hex(), str(list(key)), repr(key)):
            assert not any(form in text for text in texts)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "properties",
    [
        {"write.format.default": "avro"},
        {"encryption.data-key-length": "32", "write.spark.native-writer.enabled": "false"},
        {"write.delete.mode": "copy-on-write", "write.merge.mode": "copy-on-write"},
    ],
    ids=["avro", "python writes", "copy-on-write"],
)
def test_other_tables(spark: SparkSession, lake: Path, properties: dict[str, str]) -> None:
    create(spark, **properties)
    spark.sql(f"delete from {TABLE} where id < 10")
    assert rows(spark) == expected(range(10, 3000))
    assert files_with(lake, SECRETS) == []


@pytest.mark.nightly
def test_what_would_add_plaintext_files_is_refused(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    create(spark)
    rows_before = rows(spark)
    folder = str(tmp_path / "plain")
    spark.sql(f"select * from {TABLE}").write.parquet(folder)
    properties = "map('format-version', '3', 'encryption.key-id', 'keyA')"
    for call in (
        f"snapshot(source_table => 'spark_catalog.default.plain', table => 'db.s', "
        f"properties => {properties})",
        f"rewrite_table_path(table => 'db.t', source_prefix => '{lake}', target_prefix => '/b')",
        "compute_partition_stats(table => 'db.t')",
    ):
        spark.sql("drop table if exists spark_catalog.default.plain")
        spark.sql(f"create table spark_catalog.default.plain using parquet location '{folder}'")
        with pytest.raises(Exception, match="encrypted"):
            spark.sql(f"call lake.system.{call}")
    spark.sql("drop table spark_catalog.default.plain")
    assert rows(spark) == rows_before
    assert files_with(lake, SECRETS) == []


@pytest.mark.nightly
def test_new_tables_and_streams(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    properties = "'format-version' = '3', 'encryption.key-id' = 'keyA'"
    query = "select id, int(id % 3) part, concat('secret', id) v from range(2000)"
    spark.sql(f"create table {TABLE} tblproperties ({properties}) as {query}")
    for verb in ("create", "replace"):
        spark.sql(f"{verb} table lake.db.r tblproperties ({properties}) as {query}")
    columns = "(id bigint, part int, v string)"
    spark.sql(f"create table lake.db.copy {columns} tblproperties ({properties})")
    for _ in range(2):
        stream = spark.readStream.table(TABLE).writeStream.trigger(availableNow=True)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.toTable("lake.db.copy").awaitTermination()
        spark.sql(f"insert into {TABLE} values (5000, 0, 'secret late')")
    copied = spark.sql("select count(*), max(id) from lake.db.copy").collect()
    assert [tuple(row) for row in copied] == [(2001, 5000)]
    changes = spark.sql("select count(*) from lake.db.t.changes").collect()
    assert changes[0][0] > 2000
    assert files_with(lake, SECRETS) == []


def test_equality_deletes_are_encrypted_and_converted(spark: SparkSession, lake: Path) -> None:
    create(spark)
    table = install(spark).table(TABLE)
    keys = spark.sql("select id, int(id % 3) part, double(id) d from range(5, 9)")
    table.write_equality_deletes(keys, ["id", "part"])
    contents = spark.sql(f"select distinct content from {TABLE}.delete_files").collect()
    assert [row[0] for row in contents] == [2]
    expected_rows = expected(i for i in range(3000) if not 5 <= i < 9)
    assert rows(spark) == expected_rows
    portable = spark.read.format("iceberg-py").option("native", "false")
    for key, value in key_properties(lake.parent).items():
        portable = portable.option(key, value)
    assert portable.load(str(lake / "db" / "t")).count() == len(expected_rows)
    spark.sql("call lake.system.rewrite_equality_deletes('db.t')")
    formats = spark.sql(f"select distinct content, file_format from {TABLE}.delete_files")
    assert [tuple(row) for row in formats.collect()] == [(1, "PUFFIN")]
    assert rows(spark) == expected_rows
    assert files_with(lake, SECRETS) == []
    spark.sql(f"alter table {TABLE} add columns (d double)")
    with pytest.raises(InvalidRequestError, match=r"except float, .*, not d; name"):
        install(spark).table(TABLE).write_equality_deletes(keys, ["d", "part"])
