"""A program that copies a table into another one by a portable stream.

Arguments: a folder. Each run adds one row to the source, in a file of its own; a batch reads two
files at most, where Spark knows limits.
"""

from __future__ import annotations

import sys
from pathlib import Path

from iceberg_pyspark import load_catalog
from iceberg_pyspark.spark.data_source.stream_reader import IcebergStreamReader
from iceberg_pyspark.spark.data_source.stream_source import LimitedStreamReader
from tests.support.spark_sessions import start_session

folder = Path(sys.argv[1])
catalog = load_catalog("copy", type="hadoop", warehouse=str(folder / "lake"))
catalog.create_namespace("db", if_not_exists=True)
tables = catalog.list_tables("db")
if not tables:
    for name in ("db.source", "db.copy"):
        catalog.create_table(name, "id BIGINT")
spark = start_session(folder / "spark")
source, copy = (catalog.load_table(f"db.{name}") for name in ("source", "copy"))
added = source.scan().count()
row = spark.range(added, added + 1).coalesce(1).write.format("iceberg-py").mode("append")
row.save(source.location)
stream = spark.readStream.format("iceberg-py")
if LimitedStreamReader is not IcebergStreamReader:
    stream = stream.option("streaming-max-files-per-micro-batch", 2)
writer = stream.load(source.location).writeStream.format("iceberg-py").trigger(availableNow=True)
writer.option("checkpointLocation", str(folder / "checkpoint")).start(
    copy.location
).awaitTermination()
spark.stop()
