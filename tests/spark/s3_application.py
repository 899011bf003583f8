"""A Spark application on tables in S3 that records everything a person could read of it.

It runs as a separate process: its JVM has Hadoop's file system for S3 if jars are given, and
this package's loggers are at DEBUG. The caller searches the process's output for secrets.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import iceberg_pyspark
from iceberg_pyspark.storage.open_storage import open_storage
from tests.amounts import FULL_WORK
from tests.support.native_lake import plan_of
from tests.support.spark_sessions import start_session

LAYOUTS = {
    "folders": "'a' = 'b'",
    "flat": "'write.object-storage.enabled' = 'true', "
    "'write.object-storage.partitioned-paths' = 'false'",
}
if FULL_WORK:
    # Folders below a hash, which tests/interop/test_sql_writes.py compares with Java's.
    LAYOUTS["hashed"] = "'write.object-storage.enabled' = 'true'"
WRITERS = ("native", "python")
NATIVE = "spark.sql.iceberg.native-writer-enabled"
COLUMNS = (
    "(id BIGINT, v STRING, ts TIMESTAMP, at TIMESTAMP, plain TIMESTAMP_NTZ, bin BINARY, "
    "day DATE, born DATE, seen TIMESTAMP, flag BOOLEAN)"
)
PARTITIONING = (
    "v, hours(ts), at, plain, bin, months(day), years(born), days(seen), flag, bucket(2, id)"
)
ROWS = """
    SELECT id, if(k = 0, null, concat('é /=+', k)) v, timestamp_seconds(k * 3000000 - 3600) ts,
    timestamp_micros(k * 1500000 - 1000000) at,
    cast(timestamp_micros(k * 1500000) as timestamp_ntz) plain, encode(concat('b', k), 'utf-8') bin,
    date_add(DATE'1969-12-01', k * 300) day, date_add(DATE'1969-12-01', k * 300) born,
    timestamp_seconds(k * 3000000 - 3600) seen, k = 1 flag
    FROM (SELECT id, int(id % 3) k FROM range(0, 300, 1, 2))
"""
_S3A = "org.apache.hadoop.fs.s3a"


class Application:
    """The application; `shown` and `results` collect visible texts and results by name."""

    def __init__(self, folder: Path, arguments: dict[str, Any]) -> None:
        """Take the store's `properties`, a `warehouse`, `jars`, and the regex `hiding`."""
        self.folder = folder
        self.properties: dict[str, str] = arguments["properties"]
        self.warehouse: str = arguments["warehouse"]
        self.shown: dict[str, str] = {}
        self.results: dict[str, Any] = {}
        self._log = io.StringIO()
        logging.getLogger("iceberg_pyspark").addHandler(logging.StreamHandler(self._log))
        (folder / "events").mkdir()
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder / 'events'}",
            "spark.eventLog.compress": "false",
            "spark.log.level": "INFO",
            "spark.redaction.regex": arguments["hiding"],
        }
        if arguments["jars"]:
            settings["spark.jars"] = ",".join(arguments["jars"])
        self.spark = start_session(folder, settings)
        logging.getLogger("iceberg_pyspark").setLevel(logging.DEBUG)

    def run(self) -> None:
        """Write and read through the catalog and through the portable path, then cause failures."""
        iceberg_pyspark.install(self.spark)
        self.spark.conf.set("spark.sql.catalog.bucket", "iceberg_pyspark")
        for key, value in {
            **self.properties,
            "type": "hadoop",
            "warehouse": self.warehouse,
        }.items():
            self.spark.conf.set(f"spark.sql.catalog.bucket.{key}", value)
        self.spark.sql("CREATE NAMESPACE bucket.db")
        self.spark.sql("CREATE TABLE bucket.db.t (id BIGINT, v STRING)")
        self.spark.sql("INSERT INTO bucket.db.t SELECT id, concat('v', id) FROM range(1000)")
        self.spark.sql("DELETE FROM bucket.db.t WHERE id % 10 = 3")
        self.query("catalog", self.spark.table("bucket.db.t").where("id >= 500"))
        options = {
            "catalog": "given",
            "native": "false",
            "catalog.type": "hadoop",
            "catalog.warehouse": self.warehouse,
            **self.properties,
        }
        portable = self.spark.read.format("iceberg-py").options(**options).load("db.t")
        self.query("portable", portable.where("id >= 500"))
        self.writes()
        wrong = {**options, "s3.secret-access-key": f"{self.properties['s3.secret-access-key']}x"}
        read = self.spark.read.format("iceberg-py").options(**wrong)
        self.fails("wrong key", lambda: read.load("db.t").collect())
        path = {k: v for k, v in wrong.items() if not k.startswith("catalog")}
        table = f"{self.warehouse}/db/t"
        self.fails("path", lambda: iceberg_pyspark.load_table(table, **path).scan().to_arrow())
        # A Spark read by path needs its own credentials; otherwise a cloud service is asked.
        own = ("fs.s3a.aws.credentials.provider", f"{_S3A}.SimpleAWSCredentialsProvider")
        plain = self.spark.read.schema("id long").option(*own)
        self.fails("no keys", lambda: plain.parquet(self.results["file"]).collect())
        self.shown["python log"] = self._log.getvalue()
        self.spark.stop()
        files = [f for f in (self.folder / "events").rglob("*") if f.is_file()]
        self.shown["event log"] = "".join(f.read_text("utf-8", "replace") for f in files)

    def writes(self) -> None:
        """Write the same rows with Spark's writer and with Python, in tables of every layout."""
        for layout, properties in LAYOUTS.items():
            for writer in WRITERS:
                name = f"bucket.db.{layout}_{writer}"
                self.spark.sql(
                    f"CREATE TABLE {name} {COLUMNS} PARTITIONED BY ({PARTITIONING}) "
                    f"TBLPROPERTIES ({properties})"
                )
                self.spark.conf.set(NATIVE, str(writer == "native").lower())
                self.spark.sql(f"INSERT INTO {name} {ROWS}")
                if layout == "folders":
                    self.spark.sql(f"INSERT INTO {name} {ROWS} WHERE id < 0")
                self.results[f"{layout} {writer}"] = self.written(name)
        self.spark.conf.set(NATIVE, "true")
        failing = "bucket.db.folders_native"
        before = self.objects(failing)
        bad = "if(id = 299, cast(raise_error('bad row') as bigint), id)"
        self.fails(
            "bad row",
            lambda: self.spark.sql(
                f"INSERT INTO {failing} SELECT {bad} id, * EXCEPT (id) FROM ({ROWS})"
            ),
        )
        self.results["left by a failed job"] = sorted(set(self.objects(failing)) - set(before))

    def written(self, name: str) -> dict[str, Any]:
        """Return the rows of a table, and the paths, writers and metrics of its data files."""
        entries = self.spark.table(f"{name}.files").collect()
        places = {e.file_path: e.partition.asDict() if "partition" in e else {} for e in entries}
        loaded = iceberg_pyspark.load_table(
            f"{self.warehouse}/db/{name.rpartition('.')[2]}", **self.properties
        )
        writers = set()
        for path in places:
            with loaded.io.open_input(path) as file:
                writers.add(pq.read_metadata(file).created_by.split()[0])
        metrics = [
            (str(e.partition) if "partition" in e else "", e.record_count, e.lower_bounds,
             e.upper_bounds, e.null_value_counts) for e in entries
        ]  # fmt: skip
        return {
            "rows": sorted(str(row) for row in self.spark.table(name).collect()),
            "paths": sorted(places),
            "known": sorted(str(k) for k in metrics),
            "writers": sorted(writers),
        }

    def objects(self, name: str) -> list[str]:
        """Return all objects in a table's data folder."""
        location = f"{self.warehouse}/db/{name.rpartition('.')[2]}"
        io = open_storage(location, self.properties)
        return sorted(f.location for f in io.list_files(f"{location}/data"))

    def query(self, name: str, frame: DataFrame) -> None:
        """Record the rows of a query, its plan, and its explanation."""
        self.results[f"{name} plan"] = plan_of(frame)
        self.results[f"{name} ids"] = sorted(row.id for row in frame.collect())
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            frame.explain(mode="extended")
        self.shown[f"{name} explained"] = shown.getvalue() + repr(frame)
        if name == "catalog":
            file = str(frame.select("_file").first()[0])  # type: ignore[index]
            self.results["file"] = file.replace("s3://", "s3a://")

    def fails(self, name: str, action: Any) -> None:
        """Record the error that a person sees when a request fails."""
        try:
            action()
        except Exception as e:  # noqa: BLE001 - of Spark, py4j and ours: all are shown
            self.shown[f"error {name}"] = f"{e!r} {''.join(traceback.format_exception(e))}"
            return
        raise AssertionError(f"{name} did not fail")


def main(folder: Path) -> None:
    """Run with the folder's `given.json`; write the results into `shown.json`."""
    application = Application(folder, json.loads((folder / "given.json").read_text("utf-8")))
    application.run()
    messages = {"shown": application.shown, "found": application.results}
    (folder / "shown.json").write_text(json.dumps(messages), encoding="utf-8")
