"""A program that copies a table by a native and by a portable stream, on executors elsewhere.

Arguments: a folder. It prints the ids in both copies, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import iceberg_pyspark as ice

folder = Path(sys.argv[1])
spark = SparkSession.builder.config("spark.sql.catalog.lake", "iceberg_pyspark").getOrCreate()
spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
spark.conf.set("spark.sql.catalog.lake.warehouse", str(folder))
ice.install(spark)
spark.sql("CREATE NAMESPACE lake.db")
for name in ("source", "native", "portable"):
    spark.sql(f"CREATE TABLE lake.db.{name} (id BIGINT, v STRING) USING iceberg")


def copied(native: str) -> list[int]:
    name = "native" if native == "true" else "portable"
    stream = spark.readStream.format("iceberg-py").option("native", native)
    writer = stream.load(str(folder / "db" / "source")).writeStream.format("iceberg-py")
    writer = writer.option("native", native).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    writer.start(str(folder / "db" / name)).awaitTermination()
    return sorted(row.id for row in spark.table(f"lake.db.{name}").collect())


found: dict[str, list[list[int]]] = {"true": [], "false": []}
for batch in range(2):
    ids = spark.range(100 * batch, 100 * batch + 100, numPartitions=4)
    ids.selectExpr("id", "CAST(id AS STRING) AS v").writeTo("lake.db.source").append()
    for native, copies in found.items():
        copies.append(copied(native))
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
sys.stdout.write(json.dumps({"executors": executors, "copies": found}) + "\n")
spark.stop()
