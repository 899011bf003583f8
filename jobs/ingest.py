"""Ingest files into an Iceberg table: once in one commit, or as a stream, each file exactly once.

    spark-submit --conf spark.log.level=WARN jobs/ingest.py \\
        --from parquet /data/in --to db.events --partitioned-by "days(ts)"

The job reads Parquet, CSV or JSON with Spark, writes with the data source `iceberg-py`, and prints
what was committed. The first run creates the table. The exit codes are those of `iceberg-py`.

With `--stream CHECKPOINT`, a run ingests the files that came since the last run with this
checkpoint, a folder that is kept, and `--every SECONDS` goes on until it is stopped. A run may be
killed at any time.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table as RichTable

from iceberg_pyspark.command_line.group import exit_code_of
from iceberg_pyspark.command_line.terminal_session import spark_errors
from iceberg_pyspark.errors import NoSuchTableError
from iceberg_pyspark.spark.data_source.table_access import open_table
from iceberg_pyspark.spark.job_progress import run_with_progress
from iceberg_pyspark.spec.snapshots import MAIN

_POLL_SECONDS = 0.5
_OF_COMMIT = {
    "rows added": "added-records",
    "files added": "added-data-files",
    "bytes added": "added-files-size",
    "rows removed": "deleted-records",
    "files removed": "deleted-data-files",
}
_IN_ALL = {"rows in all": "total-records", "files in all": "total-data-files"}


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ingest.py", description="Ingest Parquet, CSV or JSON files into an Iceberg table."
    )
    parser.add_argument(
        "--from",
        dest="source",
        nargs=2,
        required=True,
        metavar=("FORMAT", "PATH"),
        help="parquet, csv or json, and the file or folder to read",
    )
    parser.add_argument(
        "--to", required=True, metavar="TABLE", help="db.events, or a path with a '/'"
    )
    parser.add_argument(
        "--mode", choices=("append", "overwrite", "overwrite-partitions"), default="append"
    )
    parser.add_argument(
        "--partitioned-by",
        metavar="LIST",
        help="for a new table: days(ts), bucket(16, id), truncate(4, s), years(..), months(..), "
        "hours(..) or plain columns, separated by commas",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the write (catalog.uri=..., target-file-size-bytes=...); repeatable",
    )
    parser.add_argument(
        "--read-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of Spark's reader (header=true, inferSchema=true, ...); repeatable",
    )
    parser.add_argument("--schema", metavar="DDL", help="schema of the input, as Spark writes it")
    parser.add_argument(
        "--stream",
        metavar="CHECKPOINT",
        help="ingest each file of the folder once, in batches; this folder remembers which",
    )
    parser.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="with --stream: go on, and look for new files so often (default: end after the last)",
    )
    arguments = parser.parse_args(argv)
    if arguments.stream is None and arguments.every is not None:
        parser.error("--every is for a stream: add --stream CHECKPOINT")
    if arguments.stream is not None and arguments.mode != "append":
        parser.error(f"--stream appends rows: leave out --mode {arguments.mode}")
    if arguments.source[0] not in ("parquet", "csv", "json"):
        parser.error(f"--from: format is parquet, csv or json, got '{arguments.source[0]}'")
    for text in (*arguments.option, *arguments.read_option):
        if "=" not in text:
            parser.error(f"'{text}' is not KEY=VALUE")
    return arguments


def quiet(spark: SparkSession) -> None:
    """Keep the hundreds of INFO lines that spark-submit prints out of the progress bar."""
    with contextlib.suppress(PySparkException):  # a Connect client cannot set the server's log
        spark.sparkContext.setLogLevel("WARN")


def read_options(arguments: argparse.Namespace) -> dict[str, str]:
    options: dict[str, str] = {}
    if arguments.stream is not None:
        # else a text that does not fit the schema would become null
        options["mode"] = "FAILFAST"
    if arguments.source[0] == "csv" and not arguments.read_option and not arguments.schema:
        options |= {"header": "true", "inferSchema": "true"}
    return options | dict(text.split("=", 1) for text in arguments.read_option)


def read_input(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    file_format, path = arguments.source
    reader = spark.read.format(file_format).options(**read_options(arguments))
    if arguments.schema:
        reader = reader.schema(arguments.schema)
    return reader.load(path)


def write(frame: DataFrame, arguments: argparse.Namespace) -> None:
    writer = frame.write.format("iceberg-py").options(**write_options(arguments))
    if arguments.mode == "overwrite-partitions":
        writer = writer.option("overwrite-mode", "dynamic")
    writer.mode("append" if arguments.mode == "append" else "overwrite").save(arguments.to)


def start_stream(spark: SparkSession, arguments: argparse.Namespace) -> StreamingQuery:
    """Create the table if it does not exist, and start the stream."""
    files = read_input(spark, arguments)
    try:
        open_table(arguments.to, table_options(arguments))
    except NoSuchTableError:
        write(files.limit(0), arguments)
    file_format, path = arguments.source
    reader = spark.readStream.format(file_format).options(**read_options(arguments))
    writer = reader.schema(files.schema).load(path).writeStream.format("iceberg-py")
    writer = writer.options(**write_options(arguments), checkpointLocation=arguments.stream)
    if arguments.every is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(arguments.every * 1000)} milliseconds")
    return writer.start(arguments.to)


def follow(query: StreamingQuery, console: Console) -> dict[str, int]:
    """Print a line for each batch until the query ends; return the number of batches and rows."""
    last, batches, rows = -1, 0, 0
    try:
        is_running = True
        while is_running:
            is_running = not query.awaitTermination(_POLL_SECONDS)  # type: ignore[arg-type]
            for batch in query.recentProgress:
                number, count = batch["batchId"], batch["numInputRows"]
                if count and number > last:
                    last, batches, rows = number, batches + 1, rows + count
                    seconds = batch["durationMs"]["triggerExecution"] / 1000
                    line = f"  batch {number}  {count:,} rows  {seconds:.1f} s"
                    console.print(line, highlight=False)
    finally:
        query.stop()
    return {"batches": batches, "rows added": rows}


def table_options(arguments: argparse.Namespace) -> dict[str, str]:
    return dict(text.split("=", 1) for text in arguments.option)


def write_options(arguments: argparse.Namespace) -> dict[str, str]:
    options = table_options(arguments)
    if arguments.partitioned_by:
        options["partitioned-by"] = arguments.partitioned_by
    return options


def summarize(
    console: Console,
    arguments: argparse.Namespace,
    seconds: float,
    streamed: Mapping[str, int] | None,
) -> None:
    options = table_options(arguments)
    metadata = open_table(arguments.to, options).metadata
    snapshot = metadata.ref_snapshot(options.get("branch", MAIN))
    counts = dict(_IN_ALL) if streamed is not None else {**_OF_COMMIT, **_IN_ALL}
    grid = RichTable.grid(padding=(0, 2))
    grid.add_row("table", arguments.to)
    grid.add_row("location", metadata.location)
    grid.add_row("snapshot", f"{snapshot.snapshot_id} ({snapshot.operation})")
    for name, count in (streamed or {}).items():
        grid.add_row(name, f"{count:,}")
    for name, key in counts.items():
        if key in snapshot.summary:
            grid.add_row(name, f"{int(snapshot.summary[key]):,}")
    grid.add_row("seconds", f"{seconds:.1f}")
    console.print(grid, highlight=False, soft_wrap=True)


def main(argv: list[str]) -> int:
    arguments = parse_arguments(argv)
    console = Console()
    spark = SparkSession.builder.appName(f"ingest {arguments.to}").getOrCreate()
    if console.is_terminal and spark.conf.get("spark.log.level", None) is None:
        quiet(spark)

    def work() -> dict[str, int] | None:
        if arguments.stream is not None:
            return follow(start_stream(spark, arguments), console)
        write(read_input(spark, arguments), arguments)
        return None

    def ingest() -> None:
        start_s = time.monotonic()
        with spark_errors():
            source = f"{arguments.source[0]} {arguments.source[1]}"
            streamed = run_with_progress(spark, console, f"{source} → {arguments.to}", work)
            summarize(console, arguments, time.monotonic() - start_s, streamed)

    return exit_code_of(ingest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
