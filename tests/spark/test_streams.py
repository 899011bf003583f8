"""Streams of Iceberg tables, which are not supported yet: Spark's error says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.support.parameters import cases

ROWS = "id long"


def run_stream(stream: DataFrame, target: str, name: str, checkpoint: Path) -> None:
    writer = stream.writeStream.format(target).queryName("stream_of_table")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start(name) if name else writer.start()
    query.awaitTermination()


@cases("read_path", fast=["native"], nightly=["portable"], indirect=True)
@pytest.mark.usefixtures("read_path")
def test_streams_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.range(1).write.format("iceberg-py").mode("append").save(table)
    source = str(tmp_path / "source")
    spark.range(1).write.parquet(source)

    stream = spark.readStream.format("iceberg-py").load(table)
    with pytest.raises(StreamingQueryException, match="streaming reads of Iceberg tables are not"):
        run_stream(stream, "noop", "", tmp_path / "read")

    stream = spark.readStream.schema(ROWS).parquet(source)
    with pytest.raises(StreamingQueryException, match="streaming writes to Iceberg tables are not"):
        run_stream(stream, "iceberg-py", table, tmp_path / "write")
    assert spark.read.format("iceberg-py").load(table).count() == 1
