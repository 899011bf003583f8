"""A program that streams a folder into a table, and kills itself in a batch if it is told to.

Arguments: a folder, and `before files`, `before commit`, `after commit` or nothing. Each run adds
one row to the source. The last line of the output has the ids in the table.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iceberg_pyspark.spark.write import command
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from tests.support.native_lake import sqlite_conf
from tests.support.spark_sessions import start_session


def die(*_: object) -> None:
    """End this process and its JVM at once."""
    os.kill(JVM, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def dying(function: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """Return the function with an end before or after it."""

    def wrapped(*arguments: Any, **named: Any) -> Any:
        if after:
            function(*arguments, **named)
        die()

    return wrapped


folder, point = Path(sys.argv[1]), sys.argv[2]
(folder / "lake").mkdir(exist_ok=True)
spark = start_session(folder / "spark", sqlite_conf("lake", folder / "lake"))
import iceberg_pyspark as ice  # noqa: E402

ice.install(spark)
assert spark._jvm is not None
JVM = int(spark._jvm.java.lang.ProcessHandle.current().pid())
spark.sql("create namespace if not exists lake.db")
spark.sql("create table if not exists lake.db.t (id bigint) using iceberg")
source = folder / "in"
added = len(list(source.glob("*.parquet"))) if source.exists() else 0
spark.range(added, added + 1).coalesce(1).write.mode("append").parquet(str(source))
if point == "before files":
    command.write_rows = dying(command.write_rows, after=False)
if point == "before commit":
    command.write_rows = dying(command.write_rows, after=True)
if point == "after commit":
    ResolvedWrite.commit = dying(ResolvedWrite.commit, after=True)  # type: ignore[method-assign]
writer = spark.readStream.schema("id long").parquet(str(source)).writeStream
writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
writer.toTable("lake.db.t").awaitTermination()
rows = spark.table("lake.db.t").collect()
spark.stop()
sys.stdout.write(",".join(sorted(str(row.id) for row in rows)) + "\n")
