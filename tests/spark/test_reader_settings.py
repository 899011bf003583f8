"""Settings of Spark's own readers of files change no row of a table."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import Table, install
from tests.support.frames import append_rows, create_path_table, load, rows_of
from tests.support.native_lake import plan_of
from tests.support.spark_settings import configured

SETTINGS = {
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.parquet.recordLevelFilter.enabled": "true",
}

ORC_SETTINGS = {
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.orc.enableNestedColumnVectorizedReader": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.impl": "hive",
    "spark.sql.orc.mergeSchema": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Create a table whose column `was` has the name that another column had in the file."""
    columns = "id BIGINT, was INT, d DOUBLE, day DATE, at TIMESTAMP_NTZ, bin BINARY, l ARRAY<INT>"
    values = {"d": 1.5, "day": dt.date(900, 1, 1), "at": dt.datetime(900, 1, 1), "bin": b"b"}
    new_table = create_path_table(tmp_path / "t", columns)
    append_rows(new_table, [{"id": i, "was": i, "l": [i], **values} for i in range(3)])
    new_table.update_schema().rename_column("was", "now").add_column("was", "string").commit()
    return new_table


@pytest.mark.parametrize(
    "settings",
    [SETTINGS, {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"}],
    ids=["rows", "nested"],
)
def test_settings_of_parquet_change_no_rows(
    spark: SparkSession, table: Table, settings: dict[str, str]
) -> None:
    session = install(spark)
    try:
        expected = rows_of(spark, table.location, {"native": "false"})
        with configured(spark, settings):
            frame = load(spark, table.location)
            assert "IcebergPyParquetScan" in plan_of(frame)
            assert rows_of(spark, table.location) == expected
            old = frame.filter("d = 1.5 and now = 1 and day = date'0900-01-01' and was is null")
            assert [row.id for row in old.collect()] == [1]
    finally:
        session.uninstall()


@pytest.mark.nightly
def test_settings_of_orc_change_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"write.format.default": "orc", "format-version": "3"}
    columns = "id BIGINT, d DOUBLE, s STRUCT<a: INT>, l ARRAY<STRING>, day DATE, no DECIMAL(38, 9)"
    table = create_path_table(tmp_path / "t", columns, properties=properties)
    values = {"s": {"a": 1}, "l": ["x"], "day": dt.date(1900, 1, 1), "no": decimal.Decimal("1.5")}
    for first in (0, 3):
        append_rows(table, [{"id": first + i, "d": i * 1.5, **values} for i in range(3)])
    session = install(spark)
    try:
        expected = rows_of(spark, table.location, {"native": "false"})
        with configured(spark, ORC_SETTINGS):
            assert "IcebergPyOrcScan" in plan_of(load(spark, table.location))
            assert rows_of(spark, table.location) == expected
            first_file = min(task.file_path for task in table.scan().plan_files())
            file = Path(first_file.removeprefix("file:"))
            file.unlink()
            with pytest.raises((PySparkException, Py4JJavaError), match=file.name):
                rows_of(spark, table.location)
            file.write_bytes(b"x" * 500)
            with pytest.raises((PySparkException, Py4JJavaError), match=file.name):
                rows_of(spark, table.location)
    finally:
        session.uninstall()


def test_the_bytes_of_local_files_are_read_by_the_task_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Other threads would read them, which takes longer, and Spark would not count them."""
    install(spark)
    frame = spark.range(200_000).selectExpr("id", "uuid() AS text")
    frame.write.format("iceberg-py").mode("append").save(str(tmp_path / "t"))
    size = sum(file.stat().st_size for file in (tmp_path / "t" / "data").iterdir())
    before = input_bytes(spark)
    load(spark, tmp_path / "t").selectExpr("max(id)", "max(text)").collect()
    assert input_bytes(spark) - before > size / 2
    with configured(spark, {"parquet.hadoop.vectored.io.enabled": "true"}):
        before = input_bytes(spark)
        load(spark, tmp_path / "t").selectExpr("max(id)", "max(text)").collect()
        assert input_bytes(spark) - before < size / 2, "the setting of a session wins"


def input_bytes(spark: SparkSession) -> int:
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalInputBytes() for i in range(executors.size()))
