"""Ingest files into an Iceberg table, in one commit.

    spark-submit --conf spark.log.level=WARN jobs/ingest.py \\
        --from parquet /data/in --to db.events --partitioned-by "days(ts)"

The job reads Parquet, CSV or JSON with Spark, writes with the data source `iceberg-py`, and prints
what was committed. The first run creates the table. The exit codes are those of `iceberg-py`.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table as RichTable

from iceberg_pyspark.command_line.group import exit_code_of
from iceberg_pyspark.command_line.terminal_session import spark_errors
from iceberg_pyspark.spark.data_source.table_access import open_table
from iceberg_pyspark.spark.job_progress import run_with_progress
from iceberg_pyspark.spec.snapshots import MAIN


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
    arguments = parser.parse_args(argv)
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


def read_input(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    file_format, path = arguments.source
    reader = spark.read.format(file_format)
    if file_format == "csv" and not arguments.read_option and not arguments.schema:
        reader = reader.options(header="true", inferSchema="true")
    for text in arguments.read_option:
        key, value = text.split("=", 1)
        reader = reader.option(key, value)
    if arguments.schema:
        reader = reader.schema(arguments.schema)
    return reader.load(path)


def write(frame: DataFrame, arguments: argparse.Namespace) -> None:
    writer = frame.write.format("iceberg-py")
    for key, value in table_options(arguments).items():
        writer = writer.option(key, value)
    if arguments.partitioned_by:
        writer = writer.option("partitioned-by", arguments.partitioned_by)
    if arguments.mode == "overwrite-partitions":
        writer = writer.option("overwrite-mode", "dynamic")
    writer.mode("append" if arguments.mode == "append" else "overwrite").save(arguments.to)


def table_options(arguments: argparse.Namespace) -> dict[str, str]:
    return dict(text.split("=", 1) for text in arguments.option)


def summarize(console: Console, arguments: argparse.Namespace, seconds: float) -> None:
    options = table_options(arguments)
    metadata = open_table(arguments.to, options).metadata
    snapshot = metadata.ref_snapshot(options.get("branch", MAIN))
    counts = {
        "rows added": "added-records",
        "files added": "added-data-files",
        "bytes added": "added-files-size",
        "rows removed": "deleted-records",
        "files removed": "deleted-data-files",
        "rows in all": "total-records",
        "files in all": "total-data-files",
    }
    grid = RichTable.grid(padding=(0, 2))
    grid.add_row("table", arguments.to)
    grid.add_row("location", metadata.location)
    grid.add_row("snapshot", f"{snapshot.snapshot_id} ({snapshot.operation})")
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

    def ingest() -> None:
        start_s = time.monotonic()
        with spark_errors():
            frame = read_input(spark, arguments)
            source = f"{arguments.source[0]} {arguments.source[1]}"
            run_with_progress(
                spark, console, f"{source} → {arguments.to}", lambda: write(frame, arguments)
            )
            summarize(console, arguments, time.monotonic() - start_s)

    return exit_code_of(ingest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
