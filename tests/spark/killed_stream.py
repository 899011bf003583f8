"""A program that streams a folder into a table, and kills itself in a batch if it is told to.

Arguments: a folder, how the rows are written, and one of `KILLS` or nothing. They are appended,
upserted in a merge mode, or a function of `foreachBatch` adds one to all rows and upserts the new
one: `batches`, and without the bridge `portable batches`. Each run adds one row to the source. The
last line of the output is JSON: the rows of the table, what is wrong with it, the epochs in its
history, and the number of files without a snapshot.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

KILLS = (
    "before files",
    "after files",
    "before swap",
    "after swap",
    "after commit",
    "before log",
    "executor",
    "worker",
)
"""Where the driver is killed in a batch; the last two kill a process of a task instead."""


def die(*_: object) -> None:
    """End this process and its JVM at once."""
    os.kill(JVM, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def dying(owner: Any, name: str, *, after: bool, call: int = 1) -> None:
    """Put an end before or after a call of a function."""
    function: Callable[..., Any] = getattr(owner, name)
    calls = itertools.count(1)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        is_last = next(calls) == call
        result = function(*arguments, **named) if after or not is_last else None
        if is_last:
            die()
        return result

    setattr(owner, name, wrapped)


def die_in_task(kind: str, marker: str) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow` that ends a process once, after its rows were written."""

    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        daemon = os.getppid()
        # the state and the parent follow the name in parentheses
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(executor if kind == "executor" else os.getpid(), 9)

    return passed


if __name__ == "__main__":
    from pyspark.sql import DataFrame

    from iceberg_pyspark import install
    from iceberg_pyspark.catalogs.sql.database_catalog import SqlCatalog
    from iceberg_pyspark.spark.portable import portable_run
    from iceberg_pyspark.spark.portable.format_table import FormatTable
    from iceberg_pyspark.spark.requests import write_requests
    from iceberg_pyspark.spark.row_level import execution, stream_upserts
    from iceberg_pyspark.spark.spark_table import portable_table
    from iceberg_pyspark.spark.write import command
    from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
    from tests.support.native_lake import sqlite_conf
    from tests.support.spark_sessions import start_session
    from tests.support.table_integrity import table_problems, unreferenced_files

    folder, how, point = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    (folder / "lake").mkdir(exist_ok=True)
    conf = sqlite_conf("lake", folder / "lake")
    if point in ("executor", "worker"):
        conf |= {"spark.master": "local-cluster[2,1,512]", "spark.executor.memory": "512m"}
    spark = start_session(folder / "spark", conf)
    session = install(spark)
    assert spark._jvm is not None
    JVM = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    spark.sql("create namespace if not exists lake.db")
    by_function = how.endswith("batches")
    mode = "merge-on-read" if how == "append" or by_function else how
    spark.sql(
        "create table if not exists lake.db.t (id bigint, v bigint) using iceberg "
        f"tblproperties ('format-version' = '3', 'write.merge.mode' = '{mode}')"
    )
    source = folder / "in"
    added = len(list(source.glob("*.parquet"))) if source.exists() else 0
    row = f"select bigint({added % 3 if how == mode else added}) id, bigint({added}) v"
    spark.sql(row).coalesce(1).write.mode("append").parquet(str(source))
    # the table is empty before the second batch, so the first change of the first one is no commit
    call = 2 if by_function and added > len(KILLS) else 1

    def change(batch: DataFrame, number: int) -> None:
        del number
        name = "lake.db.t"
        table = portable_table(spark, name) if how.startswith("portable") else session.table(name)
        table.update({"v": "v + 1"})
        table.upsert(batch, ["id"])
        if point == "before log":
            die()

    match point:
        case "before files" | "after files":
            dying(command, "write_rows", after=point == "after files", call=call)
            dying(execution, "run_job", after=point == "after files", call=call)
            dying(FormatTable, "write", after=point == "after files", call=call)
        case "before swap" | "after swap":
            dying(SqlCatalog, "_swap_table", after=point == "after swap", call=call)
            # its commit is in another process
            dying(FormatTable, "write", after=point == "after swap", call=call)
        case "after commit":
            dying(ResolvedWrite, "commit", after=True, call=call)
            dying(portable_run, "counts_in", after=False, call=call)
        case "before log":
            dying(write_requests, "write_epoch", after=True)
            dying(stream_upserts, "upsert_epoch", after=True)
    stream = spark.readStream.schema("id long, v long").option("maxFilesPerTrigger", 1)
    rows = stream.parquet(str(source))
    if point in ("executor", "worker"):
        rows = rows.mapInArrow(die_in_task(point, str(folder / point)), rows.schema)
    writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.trigger(availableNow=True)
    if how == mode:
        writer = writer.outputMode("update").option("upsert-keys", "id")
    query = writer.foreachBatch(change).start() if by_function else writer.toTable("lake.db.t")
    query.awaitTermination()
    found = sorted(tuple(row) for row in spark.table("lake.db.t").collect())
    table = session.table("lake.db.t")
    epochs = [s.summary.get("spark.sql.streaming.epochId") for s in table.snapshots]
    result = {
        "rows": found,
        "problems": table_problems(table),
        "epochs": [int(e) for e in epochs if e is not None],
        "files without a snapshot": len(unreferenced_files(table)),
    }
    spark.stop()
    sys.stdout.write(json.dumps(result) + "\n")
