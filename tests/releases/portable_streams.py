"""Streams of the data source alone, on any release of Spark, classic or by Spark Connect.

`python -m tests.releases.portable_streams FOLDER [URL]` prints one line of JSON, which
`test_portable_streams.py` checks.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tests.support.spark_sessions import start_session

FORMAT = "iceberg-py"


class Program:
    """The steps, on tables in one folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.source = str(folder / "source")

    def append(self, table: str, *ids: int) -> None:
        rows = self.spark.createDataFrame([(i, i % 2) for i in ids], "id long, p int")
        rows.coalesce(1).write.format(FORMAT).mode("append").save(table)

    def stream(self, **options: str) -> DataFrame:
        return self.spark.readStream.format(FORMAT).options(**options).load(self.source)

    def run(self, stream: DataFrame, target: str, name: str, mode: str = "append") -> None:
        writer = stream.writeStream.format(FORMAT).outputMode(mode).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.folder / name))
        query = writer.start(target)
        query.awaitTermination()

    def rows(self, table: str) -> list[list[Any]]:
        frame = self.spark.read.format(FORMAT).load(table)
        return sorted(list(row) for row in frame.collect())

    def epochs(self, table: str) -> list[str]:
        snapshots = self.spark.read.format(FORMAT).load(f"{table}#snapshots")
        epoch = "summary['spark.sql.streaming.epochId']"
        return [
            row[0] for row in snapshots.where(f"{epoch} is not null").selectExpr(epoch).collect()
        ]

    def copied_exactly_once(self) -> dict[str, Any]:
        copy = str(self.folder / "copy")
        for i in range(3):
            self.append(self.source, 2 * i, 2 * i + 1)
        self.append(copy)
        self.run(self.stream(), copy, "copying")
        self.append(self.source, 6)
        self.run(self.stream(), copy, "copying")
        commits = self.folder / "copying" / "commits"
        for name in ("1", ".1.crc"):
            (commits / name).unlink(missing_ok=True)
        self.run(self.stream(), copy, "copying")
        return {"ids": [row[0] for row in self.rows(copy)], "epochs": self.epochs(copy)}

    def limited(self) -> dict[str, Any]:
        """Copy by AvailableNow with at most one file a batch, twice."""
        copy = str(self.folder / "limited")
        self.append(copy)
        stream = self.stream(**{"streaming-max-files-per-micro-batch": "1"})
        found = []
        for _ in range(2):
            self.run(stream, copy, "limiting")
            found.append([row[0] for row in self.rows(copy)])
        return {"ids": found, "epochs": self.epochs(copy)}

    def counted(self) -> list[list[Any]]:
        counts = str(self.folder / "counts")
        stream = self.stream().groupBy("p").agg(sql.count("*").alias("n"))
        self.spark.createDataFrame([], "p int, n long").write.format(FORMAT).mode("append").save(
            counts
        )
        self.run(stream, counts, "counting", "complete")
        self.append(self.source, 7)
        self.run(stream, counts, "counting", "complete")
        return self.rows(counts)

    def followed(self) -> list[int]:
        """Copy in a query that runs while the table gets rows and a column."""
        copy = str(self.folder / "followed")
        self.append(copy)
        limits = {"streaming-max-files-per-micro-batch": "1", "stream-from-snapshot": "current"}
        writer = self.stream(**limits).writeStream.format(FORMAT).trigger(processingTime="1 second")
        query = writer.option("checkpointLocation", str(self.folder / "following")).start(copy)
        try:
            self.wait(lambda: len(self.rows(copy)) == 8)
            self.append(self.source, 8)
            self.wait(lambda: len(self.rows(copy)) == 9)
        finally:
            query.stop()
        return [row[0] for row in self.rows(copy)]

    def wait(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not is_done():
            assert time.monotonic() < deadline, "the query does not go on"
            time.sleep(0.5)

    def error(self, run: Callable[[], object]) -> str:
        try:
            run()
        except PySparkException as e:
            return str(e)
        return ""

    def refused(self) -> dict[str, str]:
        missing, out = str(self.folder / "missing"), str(self.folder / "out")
        self.append(out)
        counts = self.stream().groupBy("p").count().withColumnRenamed("count", "id")
        errors = {
            "missing": self.error(lambda: self.run(self.stream(), missing, "a")),
            "update": self.error(lambda: self.run(counts, out, "b", "update")),
            "option": self.error(lambda: self.run(self.stream(filter="id > 1"), out, "c")),
        }
        rows = self.spark.createDataFrame([(0, 0)], "id long, p int")
        rows.write.format(FORMAT).mode("overwrite").save(self.source)
        errors["overwrite"] = self.error(lambda: self.run(self.stream(), out, "d"))
        return errors


def main() -> None:
    folder = Path(sys.argv[1])
    url = sys.argv[2] if len(sys.argv) > 2 else None
    if url is None:
        spark = start_session(folder / "session")
    else:
        spark = SparkSession.builder.remote(url).getOrCreate()
    program = Program(spark, folder)
    results = {
        "release": spark.version,
        "session": type(spark).__module__,
        "copied": program.copied_exactly_once(),
        "limited": program.limited(),
        "counted": program.counted(),
        "followed": program.followed(),
        "refused": program.refused(),
    }
    sys.stdout.write(f"{json.dumps(results)}\n")


if __name__ == "__main__":
    main()
