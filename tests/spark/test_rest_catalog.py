"""A REST catalog in Spark: SQL after install, and the data source without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import iceberg_pyspark as ice
from tests.support.streams import stream_and_check

pytestmark = pytest.mark.nightly


def test_sql_on_a_rest_catalog(spark: SparkSession, rest_uri: str) -> None:
    session = ice.install(spark)
    spark.conf.set("spark.sql.catalog.rest", "iceberg_pyspark")
    spark.conf.set("spark.sql.catalog.rest.type", "rest")
    spark.conf.set("spark.sql.catalog.rest.uri", rest_uri)
    try:
        spark.sql("CREATE NAMESPACE rest.db")
        spark.sql("CREATE TABLE rest.db.t (id BIGINT, v STRING) PARTITIONED BY (bucket(4, id))")
        spark.sql("INSERT INTO rest.db.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        spark.sql("CREATE TABLE rest.db.copy AS SELECT id, v FROM rest.db.t WHERE id > 1")
        spark.sql(
            "MERGE INTO rest.db.t t USING rest.db.copy s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged'"
        )
        spark.sql("ALTER TABLE rest.db.t ADD COLUMN w INT")
        spark.sql("ALTER TABLE rest.db.t RENAME TO db.renamed")
        rows = spark.sql("SELECT id, v, w FROM rest.db.renamed ORDER BY id").collect()
        assert [tuple(r) for r in rows] == [(1, "a", None), (3, "merged", None)]
        assert [r.tableName for r in spark.sql("SHOW TABLES IN rest.db").collect()] == [
            "copy",
            "renamed",
        ]
        spark.sql("CREATE OR REPLACE TABLE rest.db.copy AS SELECT 7 AS seven")
        assert spark.table("rest.db.copy").collect() == [(7,)]
        spark.sql("DROP TABLE rest.db.copy PURGE")
        spark.sql("DROP TABLE rest.db.renamed")
        assert spark.sql("SHOW TABLES IN rest.db").collect() == []
    finally:
        session.uninstall()


def test_the_data_source_on_a_rest_catalog(spark: SparkSession, rest_uri: str) -> None:
    options = {"catalog": "rest", "catalog.type": "rest", "catalog.uri": rest_uri}
    rows = spark.range(5).selectExpr("id", "id * 2 AS twice")
    rows.write.format("iceberg-py").options(**options).mode("append").save("plain.numbers")
    rows.write.format("iceberg-py").options(**options).mode("append").save("plain.numbers")
    read = spark.read.format("iceberg-py").options(**options).option("filter", "id = 4")
    assert [tuple(r) for r in read.load("plain.numbers").collect()] == [(4, 8), (4, 8)]
    catalog = ice.load_catalog("rest", type="rest", uri=rest_uri)
    assert catalog.load_table("plain.numbers").scan().count() == 10


def test_streams_of_a_rest_catalog(spark: SparkSession, rest_uri: str, tmp_path: Path) -> None:
    settings = {"": "iceberg_pyspark", ".type": "rest", ".uri": rest_uri}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.rest{key}", value)
    session = ice.install(spark)
    try:
        spark.sql("CREATE NAMESPACE rest.streams")
        stream_and_check(spark, "rest.streams", tmp_path)
        stream_and_check(spark, "rest.streams", tmp_path, first=4)
    finally:
        session.uninstall()
