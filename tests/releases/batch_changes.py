"""Prints what changes in a function of `foreachBatch` leave in a table, as JSON.

Run with a folder, this changes one table in an installed session, and then another one as a client
of a server of this release, in another process. The last batch of each runs again in the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

import iceberg_pyspark as ice


def main() -> None:
    """Run both; with a server's address as the second argument, be its client."""
    folder = Path(sys.argv[1])
    settings = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": str(folder),
    }
    if len(sys.argv) == 3:
        spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
        options = {"catalog": "lake", **{f"catalog.{k}": v for k, v in settings.items()}}
        run_batches(spark, folder, lambda of: ice.install(of).table("db.client", **options))
        return
    from tests.support.native_lake import sqlite_conf  # noqa: PLC0415
    from tests.support.spark_sessions import (  # noqa: PLC0415
        connect_server,
        spark_environment,
        start_session,
    )

    catalog = ice.load_catalog("lake", **settings)
    catalog.create_namespace("db")
    properties = {"format-version": "3", "write.merge.mode": "merge-on-read"}
    for name in ("native", "client"):
        catalog.create_table(f"db.{name}", "id BIGINT, n BIGINT", properties=properties)
    session = start_session(folder / "spark", sqlite_conf("lake", folder))
    assert ice.install(session).is_native
    run_batches(session, folder, lambda of: ice.install(of).table("lake.db.native"))
    session.stop()
    with connect_server(folder / "server") as url:
        command = [sys.executable, "-m", "tests.releases.batch_changes", str(folder), url]
        subprocess.run(command, check=True, timeout=500, env=spark_environment())
    found: dict[str, Any] = {"release": pyspark.__version__}
    for name in ("native", "client"):
        table = catalog.load_table(f"db.{name}")
        rows = table.scan().to_arrow().to_pylist()
        entries = ("spark.sql.streaming.epochId", "iceberg-py.stream-change")
        found[name] = {
            "rows": sorted([row["id"], row["n"]] for row in rows),
            "changes": [[s.summary[e] for e in entries] for s in table.snapshots],
        }
    sys.stdout.write(json.dumps(found) + "\n")


def run_batches(spark: SparkSession, folder: Path, table_of: Callable[[Any], Any]) -> None:
    """Run a query that makes two changes in each of three batches, and its last batch again."""
    folder = folder / type(spark).__module__
    (folder / "in").mkdir(parents=True)

    def change(batch: DataFrame, number: int) -> None:
        del number
        table = table_of(batch.sparkSession)
        table.update({"n": "n + 1"})
        table.upsert(batch, ["id"])

    def run() -> None:
        rows = spark.readStream.schema("id long, n long").option("maxFilesPerTrigger", 1)
        writer = rows.parquet(str(folder / "in")).writeStream.foreachBatch(change)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    for i in range(3):
        rows = pa.table({"id": [i], "n": pa.array([0], pa.int64())})
        parquet.write_table(rows, folder / "in" / f"{i}.parquet")
        run()
    # as after a crash between the last change and Spark's own log of its batch
    for name in ("2", ".2.crc"):
        (folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    run()


if __name__ == "__main__":
    main()
