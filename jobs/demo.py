"""Shows the main job on real input, TPC-H tables.

The demo writes tables, reads them with files skipped, appends rows, travels in time, queries with
Spark SQL, streams, merges and deletes: on an SQLite catalog and a local warehouse, or on a REST
catalog and S3.

    make demo                     scale factor 0.1
    make demo ARGS='--scale 1'    ten times the rows
    make demo CATALOG=rest        services of docker-compose.yml or of `python -m tests.services`

All output is in one folder (`.demo` here, or --folder); a second run starts over.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table as RichTable

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spark.error_text import iceberg_error_in
from iceberg_pyspark.spark.job_progress import run_with_progress
from iceberg_pyspark.spark.session import install
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_catalog import load_catalog

if __package__ in (None, ""):
    # the path of a script contains its own folder, but not the parent folder
    sys.path.insert(0, str(Path(__file__).parents[1]))
from jobs.demo_services import Services, rest_services

T = TypeVar("T")

CATALOG = "demo"
CONFIGURATION = ".pyiceberg.yaml"
LINEITEM = "demo.tpch.lineitem"
ORDERS = "demo.tpch.orders"
URGENT = "demo.tpch.urgent"

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options for a short run, which compile less code; a longer job should not use them."""

QUARTER = "l_shipdate BETWEEN '1995-01-01' AND '1995-03-31'"
COLUMNS = "l_returnflag,l_quantity,l_extendedprice,l_discount"


@dataclass(frozen=True)
class Query:
    """A Spark SQL query, and the options with which the portable reader reads as little data."""

    name: str
    sql: str
    lineitem: dict[str, str]
    orders: dict[str, str]


QUERIES = (
    Query(
        "revenue by flag and status",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity), "
        "sum(l_extendedprice * (1 - l_discount)) FROM {lineitem} GROUP BY ALL",
        {"columns": "l_returnflag,l_linestatus,l_quantity,l_extendedprice,l_discount"},
        {"columns": "o_orderkey"},
    ),
    Query(
        "a quarter's discounts",
        f"SELECT count(*), sum(l_extendedprice * l_discount) FROM {{lineitem}} WHERE {QUARTER}",
        {"columns": "l_shipdate,l_extendedprice,l_discount", "filter": QUARTER},
        {"columns": "o_orderkey"},
    ),
    Query(
        "revenue of urgent orders",
        "SELECT sum(l_extendedprice) FROM {orders} JOIN {lineitem} ON o_orderkey = l_orderkey "
        "WHERE o_orderpriority = '1-URGENT'",
        {"columns": "l_orderkey,l_extendedprice"},
        {"columns": "o_orderkey,o_orderpriority", "filter": "o_orderpriority = '1-URGENT'"},
    ),
)

MERGE_ON_READ = f"""\
ALTER TABLE {ORDERS} SET TBLPROPERTIES ('format-version' = '3',
'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')"""
CHANGES = """
SELECT * EXCEPT (o_orderstatus), 'X' AS o_orderstatus FROM input WHERE o_orderkey % 100 = 1
UNION ALL SELECT -o_orderkey AS o_orderkey, * EXCEPT (o_orderkey, o_orderstatus), 'N'
FROM input WHERE o_orderkey % 200 = 2"""
CHANGING = {
    "merge changed and new orders": f"""\
MERGE INTO {ORDERS} t USING changes s ON t.o_orderkey = s.o_orderkey
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
    "delete some of every file": f"DELETE FROM {ORDERS} WHERE o_orderstatus = 'P'",
    "delete a year, reading no data": f"""\
DELETE FROM {ORDERS}
WHERE o_orderdate BETWEEN '1992-01-01' AND '1992-12-31'""",
}


class Demo:
    """The chapters of the demo, which share a session, a console and a folder."""

    def __init__(self, folder: Path, scale: str, services: Services, console: Console) -> None:
        self.folder = folder
        self.services = services
        self.scale = scale
        self.console = console
        self.spark = self._session()

    def _session(self) -> SparkSession:
        log = self.folder / "spark.log"
        # Spark's Python processes need the configuration of the catalog `demo`, and this Python
        os.environ["PYICEBERG_HOME"] = str(self.folder)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        with self.console.status("starting Spark"), stderr_to(log):
            spark = (
                SparkSession.builder.master("local[*]")
                .appName("iceberg-pyspark demo")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.driver.extraJavaOptions", QUICK_JAVA)
                .config("spark.sql.shuffle.partitions", "8")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.jars", ",".join(self.services.jars))
                .getOrCreate()
            )
        self._say(f"Spark {spark.version}, Python {sys.version.split()[0]}, no Iceberg jar")
        self._say(f"Spark's own messages are in {shown_path(log)}")
        return spark

    def run(self, chapters: int) -> None:
        """Run the first `chapters` chapters, and stop Spark."""
        chapters_to_tell = (
            (f"Real input: TPC-H at scale factor {self.scale}, by tpchgen-cli", self._generate),
            ("Write: partitioned tables, created by the first write", self._write),
            ("Read: a filter skips files before a byte of them is read", self._read),
            ("Append, and travel back in time", self._append),
            ("Spark SQL: Spark's own reader, beside the portable one", self._sql),
            ("A stream from table to table, each row once", self._stream),
            ("MERGE and DELETE, and back in time across them", self._change),
            ("Where it lies, and what to type next", self._closing),
        )
        for number, (title, tell) in enumerate(chapters_to_tell[:chapters], 1):
            self._chapter(f"{number}. {title}")
            tell()
        self.spark.stop()

    def _generate(self) -> None:
        inputs = self.folder / "input"
        with self.console.status(f"generating TPC-H at scale factor {self.scale}"):
            generate_tpch(self.scale, inputs)
        for file in sorted(inputs.glob("*.parquet")):
            rows = pq.ParquetFile(file).metadata.num_rows
            size = megabytes(file.stat().st_size)
            self._say(f"  {rows:>10,} rows  {size:>8}  {shown_path(file)}")

    def _input(self, table: str) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "input" / f"{table}.parquet"))

    def _write(self) -> None:
        self._code(
            'lineitem.repartition(8, sf.trunc("l_shipdate", "month")) \\',
            '    .write.format("iceberg-py").mode("append") \\',
            '    .option("partitioned-by", "months(l_shipdate)") \\',
            f'    .save("{LINEITEM}")',
        )
        # each month goes to one task, which writes one file per month instead of one per month and
        # task
        by_month = self._input("lineitem").repartition(8, sf.trunc("l_shipdate", "month"))
        self._create(by_month, LINEITEM, "months(l_shipdate)")
        self._create(self._input("orders"), ORDERS, "years(o_orderdate)")

    def _create(self, frame: DataFrame, table: str, partitioned_by: str) -> None:
        writer = frame.write.format("iceberg-py").option("partitioned-by", partitioned_by)
        self._measure(f"write {table}", lambda: writer.mode("append").save(table))
        summary = self._summary(table)
        self._say(
            f"  {int(summary['added-records']):,} rows by {partitioned_by} in "
            f"{summary['added-data-files']} files, {megabytes(int(summary['added-files-size']))}"
        )

    def _read(self) -> None:
        everything = self._load(LINEITEM)
        rows = self._measure("count all rows", everything.count)
        self._say(f"  {rows:,} rows")
        self._code(
            'spark.read.format("iceberg-py") \\',
            f'    .option("filter", "{QUARTER}") \\',
            f'    .option("columns", "{COLUMNS}") \\',
            f'    .load("{LINEITEM}")',
        )
        s = self._table(LINEITEM).scan(filter=QUARTER).describe().statistics
        size = int(self._summary(LINEITEM)["total-files-size"])
        self._say(
            f"  reads [bold]{s.data_files_kept} of {s.data_files} files[/bold], "
            f"{s.bytes_kept / 1e6:.1f} of {megabytes(size)}"
        )
        quarter = revenue(self._load(LINEITEM, filter=QUARTER, columns=COLUMNS))
        answer = sorted(self._measure("revenue of a quarter by return flag", quarter.collect))
        revenue_of_all_files = revenue(everything.filter(QUARTER))
        same = sorted(
            self._measure("the same from all files and columns", revenue_of_all_files.collect)
        )
        if answer != same:
            raise IcebergError(f"skipping files changed the answer: {answer} is not {same}")
        table = RichTable(*(name.replace("_", " ") for name in quarter.columns))
        for row in answer:
            table.add_row(*(v if isinstance(v, str) else f"{v:,}" for v in row))
        self.console.print(table)

    def _append(self) -> None:
        before = self._table(ORDERS).metadata.current_snapshot_id
        self._code(
            'orders.limit(1000).write.format("iceberg-py").mode("append") \\',
            f'    .save("{ORDERS}")',
        )
        late = self._input("orders").limit(1000).write.format("iceberg-py").mode("append")
        self._measure("append 1,000 rows", lambda: late.save(ORDERS))
        self._code(
            f'spark.read.format("iceberg-py").option("snapshot-id", {before}) \\',
            f'    .load("{ORDERS}").count()',
        )
        then = self._load(ORDERS, **{"snapshot-id": str(before)})
        rows_then = self._measure("count as of that snapshot", then.count)
        rows_now = self._measure("count now", self._load(ORDERS).count)
        self._say(f"  {rows_then:,} rows then, {rows_now:,} rows now")
        table = RichTable("snapshot", "operation", "added rows", "total rows", "total files")
        for snapshot in self._table(ORDERS).snapshots:
            s = snapshot.summary
            table.add_row(
                str(snapshot.snapshot_id),
                str(snapshot.operation),
                f"{int(s['added-records']):,}",
                f"{int(s['total-records']):,}",
                s["total-data-files"],
            )
        self.console.print(table)

    def _sql(self) -> None:
        self._code(
            "iceberg_pyspark.install(spark)",
            f'spark.conf.set("spark.sql.catalog.{CATALOG}", "iceberg_pyspark")',
            f'spark.sql("SELECT ... FROM {LINEITEM} ...")',
        )
        if not install(self.spark).is_native:
            raise IcebergError("the native reader cannot be installed in this session")
        self.spark.conf.set(f"spark.sql.catalog.{CATALOG}", "iceberg_pyspark")
        times = RichTable("query", "native", "portable", "portable / native")
        for query in QUERIES:
            with self.console.status(query.name):
                native, rows = self._run(query.sql.format(lineitem=LINEITEM, orders=ORDERS))
                for view, table in (("lineitem", LINEITEM), ("orders", ORDERS)):
                    options = {"native": "false", **getattr(query, view)}
                    self._load(table, **options).createOrReplaceTempView(f"portable_{view}")
                text = query.sql.format(lineitem="portable_lineitem", orders="portable_orders")
                portable, same = self._run(text)
            if rows != same:
                raise IcebergError(f"'{query.name}': {rows} natively is not {same} portably")
            ratio = f"{portable / native:.1f}x"
            times.add_row(query.name, f"{native:.2f} s", f"{portable:.2f} s", ratio)
        self.console.print(times)
        self._say("  The same rows both ways; the better of two runs. The portable read is told")
        self._say("  columns and filter by its options, Spark SQL finds out by itself.")

    def _run(self, query: str) -> tuple[float, list[Row]]:
        """Run a query twice; return the shorter time in seconds, and the rows."""
        seconds = []
        for _ in range(2):
            start_s = time.monotonic()
            rows = sorted(self.spark.sql(query).collect())
            seconds.append(time.monotonic() - start_s)
        return min(seconds), rows

    def _stream(self) -> None:
        checkpoint = self.folder / "checkpoint"
        self._code(
            'spark.readStream.option("streaming-max-files-per-micro-batch", 6) \\',
            f'    .table("{ORDERS}").where("o_orderpriority = \'1-URGENT\'") \\',
            '    .writeStream.option("checkpointLocation", ...) \\',
            f'    .trigger(availableNow=True).toTable("{URGENT}")',
        )
        orders = self.spark.readStream.option("streaming-max-files-per-micro-batch", 6)
        urgent = orders.table(ORDERS).where("o_orderpriority = '1-URGENT'")
        writer = urgent.writeStream.option("checkpointLocation", str(checkpoint))

        def run() -> StreamingQuery:
            query = writer.trigger(availableNow=True).toTable(URGENT)
            query.awaitTermination()
            return query

        query = self._measure("copy urgent orders", run)
        again = self._measure("the same again: nothing new", run)
        added = {
            s.summary["spark.sql.streaming.epochId"]: s.summary["added-records"]
            for s in self._table(URGENT).snapshots
        }
        table = RichTable("batch", "rows read", "rows of its snapshot", "seconds")
        for batch in query.recentProgress:
            number, seconds = batch["batchId"], batch["durationMs"]["triggerExecution"] / 1000
            rows = f"{int(added.get(str(number), 0)):,}"
            table.add_row(str(number), f"{batch['numInputRows']:,}", rows, f"{seconds:.1f}")
        self.console.print(table)
        copied = self.spark.table(URGENT).count()
        wanted = self.spark.table(ORDERS).where("o_orderpriority = '1-URGENT'").count()
        if copied != wanted or any(batch["numInputRows"] for batch in again.recentProgress):
            raise IcebergError(f"the stream has copied {copied} rows of {wanted}")
        self._say(f"  {copied:,} rows here and there. A query that is killed goes on from its")
        self._say("  checkpoint, and a batch that is in the table is not written again.")

    def _change(self) -> None:
        self._code(*MERGE_ON_READ.splitlines())
        self.spark.sql(MERGE_ON_READ)
        self._input("orders").createOrReplaceTempView("input")
        self.spark.sql(CHANGES).createOrReplaceTempView("changes")
        for description, statement in CHANGING.items():
            self._code(*statement.splitlines())
            self._measure(description, partial(self.spark.sql, statement))
        table = RichTable(
            "operation", "rows written", "marked rows then", "data files", "rows then"
        )
        for snapshot in self._table(ORDERS).snapshots:
            s = snapshot.summary
            then = f"SELECT count(*) FROM {ORDERS} VERSION AS OF {snapshot.snapshot_id}"
            table.add_row(
                str(snapshot.operation),
                f"{int(s.get('added-records', 0)):,}",
                f"{int(s['total-position-deletes']):,}",
                f"+{s.get('added-data-files', 0)} -{s.get('deleted-data-files', 0)}",
                f"{self.spark.sql(then).collect()[0][0]:,}",
            )
        self.console.print(table)
        self._say("  No data file was rewritten: rows that are gone are marked in bitmaps, the")
        self._say("  deletion vectors. There are these:")
        vectors = f"SELECT file_path, record_count FROM {ORDERS}.delete_files"
        self._code(vectors)
        sums = "file_path, count(*), sum(record_count), sum(content_size_in_bytes)"
        for _, files, rows, size in self.spark.sql(
            f"SELECT {sums} FROM {ORDERS}.delete_files GROUP BY file_path ORDER BY 3"
        ).collect():
            self._say(f"  a file of {files} vectors, which mark {rows:,} rows in {size:,} bytes")

    def _closing(self) -> None:
        places = {n: self.services.properties[n] for n in ("warehouse", "uri")}
        places = {n: p.removeprefix("sqlite:///") for n, p in places.items()}
        tables, catalog = (
            p if "://" in p else shown_path(Path(p)) for p in (places["warehouse"], places["uri"])
        )
        self._say(f"  tables         {tables}")
        self._say(f"  catalog        {catalog}")
        self._say(f"  configuration  {shown_path(self.folder / CONFIGURATION)}")
        if not self.services.lasting:
            self._say("\nThe servers stop now; those of docker compose stay, to go on with.")
            return
        self._say("\nA shell for Spark, with the catalog of the demo:")
        self._code(*shell_setup(self.folder), "pyspark")
        self._say("There, `spark` is the session:")
        self._code(
            f'df = spark.read.format("iceberg-py").load("{LINEITEM}")',
            'df.groupBy("l_shipmode").count().show()',
        )
        self._say("Or no Spark at all, in `python`:")
        self._code(
            "import iceberg_pyspark as ice",
            f'orders = ice.load_catalog("{CATALOG}").load_table("tpch.orders")',
            "orders.scan(filter=\"o_orderdate >= '1998-01-01'\").count()",
        )
        self._say("Or files into a table, from the same shell:")
        orders = self.folder / "input" / "orders.parquet"
        self._code(
            "spark-submit --conf spark.log.level=WARN jobs/ingest.py \\",
            f"    --from parquet {shlex.quote(shown_path(orders))} \\",
            f'    --to {CATALOG}.tpch.copied --partitioned-by "months(o_orderdate)"',
        )

    def _load(self, table: str, **options: str) -> DataFrame:
        return self.spark.read.format("iceberg-py").options(**options).load(table)

    def _table(self, name: str) -> Table:
        return load_catalog(CATALOG).load_table(name)

    def _summary(self, table: str) -> dict[str, str]:
        snapshot = self._table(table).current_snapshot
        assert snapshot is not None
        return dict(snapshot.summary)

    def _measure(self, description: str, action: Callable[[], T]) -> T:
        return run_with_progress(self.spark, self.console, description, action)

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def _code(self, *lines: str) -> None:
        # printed as the user types it: no indentation, no markup, no wrapping
        text = "\n".join(("", *lines, ""))
        self.console.print(text, style="cyan", markup=False, highlight=False, soft_wrap=True)

    def _chapter(self, title: str) -> None:
        self.console.print()
        self.console.print(Rule(f"[bold]{title}[/bold]", align="left", style="dim"))


def revenue(lines: DataFrame) -> DataFrame:
    return lines.groupBy("l_returnflag").agg(
        sf.count("*").alias("rows"),
        sf.sum("l_quantity").alias("quantity"),
        sf.sum(sf.expr("l_extendedprice * (1 - l_discount)"))
        .cast("decimal(18,2)")
        .alias("revenue"),
    )


def generate_tpch(scale: str, folder: Path) -> None:
    generator = Path(sys.executable).with_name("tpchgen-cli")
    if not generator.exists():
        raise SystemExit(f"{generator} is not there: pip install 'tpchgen-cli>=4.0'")
    process = subprocess.run(
        [
            str(generator),
            *("parquet", "--scale-factor", scale, "--quiet"),
            *("--tables", "lineitem,orders", "--output-dir", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise SystemExit(f"tpchgen-cli: {process.stderr.strip()}")


def prepare_folder(folder: Path) -> None:
    """Empty the folder of an earlier demo, or create the folder, and write a configuration."""
    configuration = folder / CONFIGURATION
    if folder.exists() and any(folder.iterdir()):
        if not (configuration.exists() and f"  {CATALOG}:\n" in configuration.read_text("utf-8")):
            raise SystemExit(
                f"{folder} has files that are not of an Iceberg table; name another --folder"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    configure(folder, local_services(folder))


def configure(folder: Path, services: Services) -> None:
    """Write the configuration of the demo's catalog, readable only by the user."""
    text = yaml.safe_dump({"catalog": {CATALOG: dict(services.properties)}}, sort_keys=False)
    configuration = folder / CONFIGURATION
    configuration.touch(mode=0o600)
    configuration.write_text(text, encoding="utf-8")


def local_services(folder: Path) -> Services:
    """Return the services of an SQLite database and a local folder, which need no server."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"{folder}/warehouse",
    }
    return Services(properties=properties, lasting=True)


@contextmanager
def services_of(catalog: str, folder: Path) -> Iterator[Services]:
    """Yield the services of the demo's catalog, which run until the block ends."""
    if catalog == "rest":
        with rest_services(folder) as services:
            yield services
    else:
        yield local_services(folder)


@contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """Redirect stderr to a file; a JVM that starts in the block keeps the redirection."""
    with log.open("wb") as file:
        own_stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(own_stderr, 2)
            os.close(own_stderr)


def shell_setup(folder: Path) -> list[str]:
    """Return the shell commands that set up the environment of this process."""
    lines = []
    if sys.prefix != sys.base_prefix:
        lines.append(f"source {shlex.quote(shown_path(Path(sys.prefix)))}/bin/activate")
    if "JAVA_HOME" in os.environ:
        lines.append(f"export JAVA_HOME={shlex.quote(os.environ['JAVA_HOME'])}")
    lines.append(f"export PYICEBERG_HOME={shlex.quote(str(folder))}")
    return lines


def shown_path(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="demo.py", description="Write, read, append and time travel on real TPC-H tables."
    )
    parser.add_argument("--scale", default="0.1", help="TPC-H scale factor (0.1)")
    parser.add_argument(
        "--folder", type=Path, default=Path(".demo"), help="where everything goes (.demo)"
    )
    parser.add_argument(
        "--catalog",
        choices=("sql", "rest"),
        default="sql",
        help="SQLite and a folder, or a REST catalog and S3 (sql)",
    )
    parser.add_argument("--chapters", type=int, default=8, help="stop after so many (8)")
    arguments = parser.parse_args(argv)
    folder = arguments.folder.resolve()
    prepare_folder(folder)
    start_s = time.monotonic()
    console = Console()
    try:
        with services_of(arguments.catalog, folder) as services:
            configure(folder, services)
            Demo(folder, arguments.scale, services, console).run(arguments.chapters)
    except (IcebergError, PySparkException) as e:
        error, message = iceberg_error_in(str(e)) or (type(e).__name__, str(e).splitlines()[0])
        console.print(f"[red]{error}[/red] {escape(message)}", highlight=False)
        console.print(f"more in {shown_path(folder / 'spark.log')}", highlight=False)
        return 1
    console.print(f"\n[dim]all of it took {time.monotonic() - start_s:.0f} s[/dim]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
