"""Streams compared with the JVM connector's, in one session.

`python -m tests.bench.stream_bench [--scale 1] [--only upserts]`. Both sides run the same query.
The time of a batch is the mean of Spark's `triggerExecution` of a query's batches after the first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.commits.new_data import write_context_of
from tests.bench.plan_table import make_snapshots
from tests.bench.races import RUNS, Line, race, text_table
from tests.bench.tpch_queries import Q6_COLUMNS, Q6_FILTER
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
LIMIT = 0.8
FILES, SNAPSHOTS = 100_000, 1_000
COMMITS = 10
UPSERTED = 10_000
SMALL = 30
MERGE_ON_READ = "'format-version' = '3', 'write.merge.mode' = 'merge-on-read'"
CATALOGS = {"ours": "lake", "jvm": "java_hadoop"}


class StreamBench:
    """The tables, and the streams of both contestants and of the portable reader."""

    def __init__(self, oracle: Oracle, scratch: Path) -> None:
        self.spark = oracle.spark
        self.sql = oracle.sql
        self.scratch = scratch
        self.warehouse = oracle.warehouse
        self.catalog = load_catalog("bench", type="hadoop", warehouse=str(oracle.warehouse))
        self.catalog.create_namespace("bench", if_not_exists=True)

    def table(self, name: str) -> Table:
        """Create an empty table of ids and texts."""
        return self.catalog.create_table(f"bench.{name}", schema="id BIGINT, v STRING")

    def stream(self, contestant: str, table: str, **options: object) -> DataFrame:
        """Return a contestant's stream of a table."""
        named = {k.replace("_", "-"): str(v) for k, v in options.items()}
        reader = self.spark.readStream.options(**named)
        path = self.warehouse / "bench" / table
        if contestant == "portable":
            return reader.format("iceberg-py").option("native", "false").load(str(path))
        if contestant == "parquet":
            schema = self.spark.table(f"lake.bench.{table}").schema
            files = self.spark.readStream.schema(schema)
            limit = options["streaming_max_files_per_micro_batch"]
            return files.option("maxFilesPerTrigger", str(limit)).parquet(str(path / "data"))
        return reader.table(f"{CATALOGS[contestant]}.bench.{table}")

    def batch(self, stream: DataFrame) -> float:
        """Run a stream to its end, and return the seconds of a batch."""
        checkpoint = str(self.scratch / str(uuid.uuid4()))
        writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.start()
        try:
            query.processAllAvailable()
            return seconds_of_batch(query)
        finally:
            query.stop()

    def race(
        self,
        name: str,
        table: str,
        runs: int,
        files: int,
        of: Callable[[DataFrame], DataFrame] = lambda stream: stream,
        floor: str | None = "parquet",
        **options: object,
    ) -> Line:
        """Measure batches of so many files of a table, also by Spark's own stream of files."""
        options["streaming_max_files_per_micro_batch"] = files
        return race(
            name,
            {
                c: lambda c=c: self.batch(of(self.stream(c, table, **options)))  # type: ignore[misc]
                for c in (*CATALOGS, "portable", floor)
                if c is not None
            },
            runs=runs,
            limit=LIMIT,
            are_seconds=True,
        )

    def reads(self, runs: int, scale: float) -> Iterator[Line]:
        """Measure batches of few and of many files, and of the rows of lineitem."""
        for files, batches in ((10, 6), (1_000, 3)):
            table = self.table(f"files{files}")
            for _ in range(batches):
                add_files(table.refresh(), files)
            yield self.race(f"a batch of {files:,} files", table.identifier.name, runs, files)
        source = self.spark.read.parquet(str(tpch(scale)["lineitem"]))
        source.repartition(8).writeTo("java_hadoop.bench.lineitem").using("iceberg").create()
        rows = source.count() // 4
        yield self.race(f"{rows:,} rows of lineitem", "lineitem", runs, 2)
        columns = [name.strip() for name in Q6_COLUMNS.split(",")]
        yield self.race(
            "those, with columns and filter of Q6",
            "lineitem",
            runs,
            2,
            of=lambda stream: stream.select(columns).where(Q6_FILTER),
        )

    def planning(self, runs: int) -> Line:
        """Measure a batch of one row in a table of many snapshots and files."""
        folder = self.warehouse / "bench" / "large"
        (folder / "metadata").mkdir(parents=True)
        make_snapshots(LocalFileIO(), str(folder), FILES, SNAPSHOTS)
        for _ in range(4):
            self.sql("INSERT INTO lake.bench.large SELECT * FROM lake.bench.lineitem LIMIT 1")
        first = self.catalog.load_table("bench.large").snapshots[SNAPSHOTS]
        return self.race(
            f"one row, of {FILES:,} files in {SNAPSHOTS:,} snapshots",
            "large",
            runs,
            1,
            floor=None,
            stream_from_timestamp=first.timestamp_ms,
        )

    def latency(self, rounds: int = 2) -> Line:
        """Measure how long after its commit a row is there, at a commit a second."""
        tables = {c: self.table(f"latency_{c}") for c in CATALOGS}
        seconds: dict[str, list[float]] = {c: [] for c in CATALOGS}
        for number in range(rounds):
            for c in CATALOGS if number % 2 else reversed(CATALOGS):
                seconds[c] += self._latencies(c, tables[c])
        return Line(name="a row is there after its commit", seconds=seconds, limit=LIMIT)

    def _latencies(self, contestant: str, table: Table) -> list[float]:
        there: dict[int, float] = {}

        def see(batch: DataFrame, _number: int) -> None:
            ids = [row.id for row in batch.collect()]
            there.update(dict.fromkeys(ids, time.perf_counter()))

        first = table.refresh().scan().count()
        stream = self.stream(contestant, table.identifier.name)
        checkpoint = str(self.scratch / f"latency_{contestant}")
        query = (
            stream.writeStream.foreachBatch(see).option("checkpointLocation", checkpoint).start()
        )
        committed = {}
        try:
            query.processAllAvailable()
            for i in range(first, first + COMMITS):
                table.append(pa.table({"id": [i], "v": [f"v{i}"]}))
                committed[i] = time.perf_counter()
                time.sleep(1)
            query.processAllAvailable()
        finally:
            query.stop()
        # the first of them warm the query up
        return [there[i] - at for i, at in committed.items()][2:]

    def upserts(self, runs: int, rows: int) -> Line:
        """Measure batches of upserts, by MERGE in foreachBatch."""
        for c in CATALOGS:
            self.table(f"upserts_{c}")
            self.sql(
                f"CREATE TABLE java_hadoop.bench.target_{c} USING iceberg "
                f"TBLPROPERTIES ({MERGE_ON_READ}) AS "
                f"SELECT /*+ REPARTITION(4) */ id, CAST(id AS STRING) AS v FROM range({rows})"
            )
        turns = dict.fromkeys(CATALOGS, 0)

        def run(contestant: str) -> float:
            for _ in range(3):
                turns[contestant] += 1
                self.sql(
                    f"INSERT INTO java_hadoop.bench.upserts_{contestant} SELECT /*+ COALESCE(1) */ "
                    f"id * {rows // UPSERTED * 11 // 10} + {turns[contestant]}, 'new' "
                    f"FROM range({UPSERTED})"
                )
            target = f"{CATALOGS[contestant]}.bench.target_{contestant}"

            def merge(batch: DataFrame, _number: int) -> None:
                batch.createOrReplaceTempView("upserted")
                batch.sparkSession.sql(
                    f"MERGE INTO {target} t USING upserted s ON t.id = s.id "
                    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                )

            one = {"streaming_max_files_per_micro_batch": 1}
            stream = self.stream(contestant, f"upserts_{contestant}", **one)
            checkpoint = str(self.scratch / f"into_{contestant}")
            writer = stream.writeStream.foreachBatch(merge)
            writer = writer.option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            return seconds_of_batch(query)

        return race(
            f"upsert of {UPSERTED:,} rows into {rows:,}",
            {c: partial(run, c) for c in CATALOGS},
            runs=runs,
            limit=LIMIT,
            are_seconds=True,
        )


def seconds_of_batch(query: StreamingQuery) -> float:
    """Return the mean time of a query's batches after the first."""
    batches = [p for p in query.recentProgress if "addBatch" in p["durationMs"]]
    return statistics.mean(float(p["durationMs"]["triggerExecution"]) for p in batches[1:]) / 1000


def add_files(table: Table, count: int, rows: int = 100) -> None:
    """Add files to a table of ids and texts in one snapshot."""
    context = write_context_of(
        str(table.identifier), table.metadata, table.io, write_id=str(uuid.uuid4())
    )
    ids = pa.array(range(count * rows))
    batch = pa.record_batch([ids, ids.cast(pa.string())], ["id", "v"])
    files = []
    for i in range(count):
        piece = batch.slice(i * rows, rows)
        files += write_data_files(context, [piece], table.io, partition_id=i, task_id=i)
    with table.transaction() as transaction:
        transaction.add_snapshot(AppendFiles(data_files=tuple(files)))


def peaks(contestant: str, warehouse: Path) -> Mapping[str, float]:
    """Stream in this process; return the peaks of its and its children's memory in MiB (PSS).

    It reads batches of small files, and then lineitem in two batches.
    """
    found = {"driver's Python": 0.0, "JVM": 0.0, "Python workers": 0.0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            now = dict.fromkeys(found, 0.0)
            own = psutil.Process()
            now["driver's Python"] = own.memory_full_info().pss
            for child in own.children(recursive=True):
                try:
                    kind = "JVM" if child.name() == "java" else "Python workers"
                    now[kind] += child.memory_full_info().pss
                except psutil.NoSuchProcess:
                    continue
            for name, size in now.items():
                found[name] = max(found[name], size / 2**20)

    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        conf = {**JVM, "spark.driver.memory": "2g"}
        conf["spark.sql.catalog.java_hadoop.warehouse"] = str(warehouse)
        oracle = replace(start_oracle(Path(scratch), conf), warehouse=warehouse)
        bench = StreamBench(oracle, Path(scratch))
        threading.Thread(target=watch, daemon=True).start()

        def stream() -> None:
            for table, files in (("files1000", SMALL), ("lineitem", 4)):
                limit = {"streaming_max_files_per_micro_batch": files}
                bench.batch(bench.stream(contestant, table, **limit))

        try:
            if contestant == "jvm":
                stream()
            else:
                with native_lake(oracle):
                    stream()
        finally:
            done.set()
            oracle.spark.stop()
    return found


def memory(warehouse: Path) -> TextTable:
    """Measure each contestant in a process of its own, on tables of `StreamBench.reads`."""
    text = TextTable(
        title=f"peaks of memory in MiB: batches of {SMALL} files, then half of lineitem"
    )
    names: list[str] = []
    for contestant in (*CATALOGS, "portable"):
        command = [sys.executable, "-m", "tests.bench.stream_bench"]
        done = subprocess.run(
            [*command, "--peaks", contestant, str(warehouse)],
            check=True,
            capture_output=True,
            text=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        if not names:
            names = list(found)
            for name in ("stream", *names, "in all"):
                text.add_column(name, justify="left" if name == "stream" else "right")
        text.add_row(contestant, *(f"{found[n]:.0f}" for n in names), f"{sum(found.values()):.0f}")
    return text


def compare(
    scale: float = 1.0, runs: int = RUNS, only: str | None = None, upserted_into: int = 1_000_000
) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    tables = []
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                bench = StreamBench(oracle, Path(scratch))
                lines: list[Line] = []
                if only in (None, "reads", "memory"):
                    lines += bench.reads(runs, scale)
                    lines.append(bench.planning(runs))
                if only in (None, "latency"):
                    lines.append(bench.latency())
                if only in (None, "upserts"):
                    lines.append(bench.upserts(runs, upserted_into))
        finally:
            oracle.spark.stop()
        title = (
            f"batches of streams beside the JVM connector: SF{scale:g}, local[2], medians of {runs}"
        )
        tables.append(
            text_table(title, lines, {"jvm": "JVM", "portable": "portable", "parquet": "Parquet"})
        )
        if only in (None, "memory"):
            tables.append(memory(oracle.warehouse))
    return tables


def main() -> None:
    """Print the tables, or one contestant's peaks of memory."""
    parser = argparse.ArgumentParser(prog="tests.bench.stream_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", choices=("reads", "latency", "upserts", "memory"))
    parser.add_argument("--peaks", nargs=2, metavar=("CONTESTANT", "WAREHOUSE"))
    arguments = parser.parse_args()
    if arguments.peaks is not None:
        contestant, warehouse = arguments.peaks
        sys.stdout.write(f"{json.dumps(peaks(contestant, Path(warehouse)))}\n")
        return
    for table in compare(arguments.scale, arguments.runs, arguments.only):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
