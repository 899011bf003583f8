"""Checksums of Parquet pages: Spark's writer creates them, and both read paths verify them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.spark.session import IcebergSession

PREFIX = "spark.sql.catalog.sums"
ERRORS = (PySparkException, Py4JJavaError)
VALUE = 0x1122334455667788


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    folder = tmp_path_factory.mktemp("sums")
    spark.conf.set(PREFIX, "iceberg_pyspark")
    spark.conf.set(f"{PREFIX}.type", "hadoop")
    spark.conf.set(f"{PREFIX}.warehouse", str(folder))
    session = install(spark)
    spark.sql("create namespace sums.db")
    yield session
    session.uninstall()
    for key in (PREFIX, f"{PREFIX}.type", f"{PREFIX}.warehouse"):
        spark.conf.unset(key)


@pytest.fixture(params=[True, False], ids=["native writer", "pyarrow writer"])
def damaged(request: pytest.FixtureRequest, spark: SparkSession, lake: IcebergSession) -> Path:
    """Return the data file of `sums.db.t`, with one bit of its only value flipped."""
    spark.sql("drop table if exists sums.db.t")
    spark.sql(
        "create table sums.db.t (id bigint) "
        "tblproperties ('write.parquet.compression-codec' = 'uncompressed', "
        "'read.parquet.verify-checksum' = 'true')"
    )
    native = str(request.param).lower()
    frame = spark.sql(f"select {VALUE}L as id").coalesce(1)
    frame.writeTo("sums.db.t").option("native-writer-enabled", native).append()
    (row,) = spark.sql("select file_path from sums.db.t.files").collect()
    path = Path(row.file_path.removeprefix("file:"))
    data = bytearray(path.read_bytes())
    data[data.index(VALUE.to_bytes(8, "little"))] ^= 1
    path.write_bytes(bytes(data))
    for side in path.parent.glob(f".{path.name}.crc"):
        side.unlink()
    return path


def test_a_flipped_bit_is_found_on_the_native_path(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(ERRORS, match=damaged.name) as caught:
        spark.sql("select * from sums.db.t").collect()
    assert "checksum" in str(caught.value)


def test_a_flipped_bit_is_found_on_the_portable_path(spark: SparkSession, damaged: Path) -> None:
    table = str(damaged.parent.parent)
    portable = spark.read.format("iceberg-py").option("native", "false")
    with pytest.raises(ERRORS, match=r"read\.parquet\.verify-checksum") as caught:
        portable.load(table).collect()
    assert damaged.name in str(caught.value)
    off = portable.option("read.parquet.verify-checksum", "false")
    assert [row.id for row in off.load(table).collect()] == [VALUE ^ 1]


def test_switched_off_for_the_table_the_wrong_value_is_read(
    spark: SparkSession, damaged: Path
) -> None:
    spark.sql("alter table sums.db.t set tblproperties ('read.parquet.verify-checksum' = 'false')")
    assert [row.id for row in spark.sql("select * from sums.db.t").collect()] == [VALUE ^ 1]
