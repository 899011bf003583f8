"""Streams of Iceberg tables, read by Spark's own readers in batches that Python plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from tests.support.native_lake import sqlite_lake
from tests.support.streams import read_available, rows_in


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("streams"), "streams") as session:
        yield session


def test_a_stream_reads_each_appended_row_once(
    spark: SparkSession, lake: IcebergSession, tmp_path: Path
) -> None:
    spark.sql("create table streams.db.once (id bigint, v string) using iceberg")
    for i in range(3):
        spark.sql(f"insert into streams.db.once values ({i}, 'a{i}')")
    stream = spark.readStream.table("streams.db.once").where("id > 0")
    first = read_available(stream, tmp_path)
    assert rows_in(first.batches) == [(1, "a1"), (2, "a2")]
    assert read_available(stream, tmp_path).batches == []
    spark.sql("insert into streams.db.once values (9, 'b')")
    assert rows_in(read_available(stream, tmp_path).batches) == [(9, "b")]
