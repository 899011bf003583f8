"""Run streams of an installed session: tables in, appends, upserts and a new table out.

`python -m tests.releases.native_streams FOLDER` prints one line of JSON, which
`test_native_streams.py` checks.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import iceberg_pyspark as ice
from tests.support.native_lake import sqlite_conf
from tests.support.spark_sessions import start_session


class Program:
    """The steps, on the tables of a catalog."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def stream(self) -> DataFrame:
        return self.spark.readStream.table("lake.db.source")

    def append(self, first: int, last: int) -> None:
        rows = f"select /*+ coalesce(1) */ id, id % 2 from range({first}, {last})"
        self.spark.sql(f"insert into lake.db.source {rows}")

    def run(self, stream: DataFrame, table: str, mode: str = "append", **options: str) -> Any:
        checkpoint = self.folder / f"{table}-checkpoint"
        writer = stream.writeStream.outputMode(mode).trigger(availableNow=True).options(**options)
        query = writer.option("checkpointLocation", str(checkpoint)).toTable(f"lake.db.{table}")
        query.awaitTermination()
        return query.lastProgress

    def run_again(self, stream: DataFrame, table: str, mode: str, **options: str) -> None:
        """Run as after a crash between the commit of the last batch and Spark's own log of it."""
        log = self.folder / f"{table}-checkpoint" / "commits"
        last = max(int(file.name) for file in log.glob("[0-9]*"))
        for name in (str(last), f".{last}.crc"):
            (log / name).unlink(missing_ok=True)
        self.run(stream, table, mode, **options)

    def rows(self, table: str) -> list[list[Any]]:
        return sorted(list(row) for row in self.spark.table(f"lake.db.{table}").collect())

    def result(self) -> dict[str, Any]:
        self.spark.sql("create table lake.db.source (id bigint, p bigint) using iceberg")
        self.spark.sql("create table lake.db.counts (p bigint, n bigint) using iceberg")
        self.spark.sql("create table lake.db.all (p bigint, n bigint) using iceberg")
        counts = self.stream().groupBy("p").agg(sql.count("*").alias("n"))
        keys = {"upsert-keys": "p"}
        for first in (0, 3):
            self.append(first, first + 3)
            progress = self.run(self.stream(), "copy")
            self.run(counts, "counts", "update", **keys)
            self.run(counts, "all", "complete")
        self.run_again(self.stream(), "copy", "append")
        self.run_again(counts, "counts", "update", **keys)
        try:
            self.run(counts, "none")
        except pyspark.errors.AnalysisException as e:
            refused = str(e)
        tables = self.spark.sql("show tables in lake.db").collect()
        return {
            "release": pyspark.__version__,
            "copy": self.rows("copy"),
            "counts": self.rows("counts"),
            "all": self.rows("all"),
            "refused": refused,
            "tables": sorted(row.tableName for row in tables),
            "rows in": progress["numInputRows"],
        }


def main() -> None:
    folder = Path(sys.argv[1])
    spark = start_session(folder / "spark", sqlite_conf("lake", folder))
    assert ice.install(spark).is_native
    spark.sql("create namespace lake.db")
    result = Program(spark, folder).result()
    spark.stop()
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
