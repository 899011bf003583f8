"""The main job on real input: TPC-H tables written, read with files skipped, appended to, and
travelled in time, on the embedded catalog (SQLite) and a local warehouse.

    make demo                     scale factor 0.1
    make demo ARGS='--scale 1'    more rows

Everything it makes lies in one folder (`.demo` here, or --folder); a second run starts over.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from rich.console import Console
from rich.rule import Rule
from rich.table import Table as RichTable

from iceberg_pyspark.spark.open_table import open_table
from iceberg_pyspark.spark.progress import run_with_progress

T = TypeVar("T")

LINEITEM = "tpch.lineitem"
ORDERS = "tpch.orders"


class Demo:
    """The steps, sharing a session, a console and the catalog's options."""

    def __init__(self, folder: Path, scale: str, console: Console) -> None:
        self.folder = folder
        self.scale = scale
        self.console = console
        self.options = {
            "catalog": "demo",
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{folder}/catalog.db",
            "catalog.warehouse": f"file://{folder}/warehouse",
        }
        self.spark = self._session()

    def _session(self) -> SparkSession:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        with self.console.status("starting Spark"):
            spark = (
                SparkSession.builder.master("local[*]")
                .appName("iceberg-pyspark demo")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.log.level", "ERROR")
                .config("spark.sql.shuffle.partitions", "8")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .getOrCreate()
            )
        self.console.print(
            f"Spark {spark.version}, Python {sys.version.split()[0]}, no jar: "
            'spark.read.format("iceberg-py"), df.write.format("iceberg-py")'
        )
        return spark

    def run(self) -> None:
        self._chapter("Real input: TPC-H from tpchgen-cli")
        inputs = self._generate()
        self._chapter("Write: partitioned Iceberg tables, created on the first write")
        self._write(inputs)
        self._chapter("Read: a filter skips files before a byte of them is read")
        self._read()
        self._chapter("Append, and travel back in time")
        self._append(inputs)
        self._chapter("Where it lies, and what to type next")
        self._closing()
        self.spark.stop()

    def _generate(self) -> Path:
        target = self.folder / "input"
        with self.console.status(f"generating TPC-H scale factor {self.scale}"):
            subprocess.run(
                [
                    str(Path(sys.executable).parent / "tpchgen-cli"),
                    *("parquet", "--scale-factor", self.scale),
                    *("--tables", "lineitem,orders", "--output-dir", str(target)),
                ],
                check=True,
                capture_output=True,
            )
        for file in sorted(target.rglob("*.parquet")):
            size = file.stat().st_size / 1e6
            self.console.print(f"  {file.relative_to(self.folder)}  [dim]{size:.1f} MB[/dim]")
        return target

    def _input(self, inputs: Path, table: str) -> DataFrame:
        return self.spark.read.parquet(str(inputs / f"{table}.parquet"))

    def _write(self, inputs: Path) -> None:
        self._save(
            # one writer per month of ship date: few, large files
            self._input(inputs, "lineitem").repartition(8, sf.trunc("l_shipdate", "month")),
            LINEITEM,
            "months(l_shipdate)",
        )
        self._save(self._input(inputs, "orders"), ORDERS, "years(o_orderdate)")

    def _save(self, frame: DataFrame, table: str, partitioned_by: str) -> None:
        writer = frame.write.format("iceberg-py").options(**self.options)
        self._timed(
            f"df.write ... partitioned-by {partitioned_by} → {table}",
            lambda: writer.option("partitioned-by", partitioned_by).mode("append").save(table),
        )
        summary = self._summary(table)
        self.console.print(
            f"  {int(summary['added-records']):,} rows in {summary['added-data-files']} files, "
            f"{int(summary['added-files-size']) / 1e6:.1f} MB"
        )

    def _read(self) -> None:
        where = "l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1995-04-01'"
        columns = "l_returnflag,l_quantity,l_extendedprice,l_discount,l_shipdate"
        self.console.print(f"  filter   {where}\n  columns  {columns}")
        plan = open_table(LINEITEM, self.options).scan(
            filter=where, columns=tuple(columns.split(","))
        )
        kept = plan.describe()
        self.console.print(f"  [bold]{kept}[/bold]")
        frame = self._load(LINEITEM, filter=where, columns=columns)
        grouped = frame.groupBy("l_returnflag").agg(
            sf.count("*").alias("rows"),
            sf.sum("l_quantity").alias("quantity"),
            sf.round(sf.sum(sf.expr("l_extendedprice * (1 - l_discount)")), 2).alias("revenue"),
        )
        rows = self._timed("the quarter's revenue by return flag", grouped.collect)
        shown = RichTable(*grouped.columns)
        for row in sorted(rows):
            shown.add_row(*(f"{v:,}" if not isinstance(v, str) else v for v in row))
        self.console.print(shown)

    def _append(self, inputs: Path) -> None:
        before = open_table(ORDERS, self.options).metadata.current_snapshot
        assert before is not None
        late = self._input(inputs, "orders").limit(1000)
        writer = late.write.format("iceberg-py").options(**self.options).mode("append")
        self._timed(f"append 1,000 rows → {ORDERS}", lambda: writer.save(ORDERS))
        now = self._timed("count now", self._load(ORDERS).count)
        then = self._timed(
            f"count as of snapshot {before.snapshot_id}",
            self._load(ORDERS, **{"snapshot-id": str(before.snapshot_id)}).count,
        )
        self.console.print(f"  then {then:,} rows, now {now:,} rows")
        shown = RichTable("snapshot", "operation", "added rows", "total rows", "total files")
        for snapshot in open_table(ORDERS, self.options).metadata.snapshots:
            s = snapshot.summary
            shown.add_row(
                str(snapshot.snapshot_id),
                str(snapshot.operation),
                f"{int(s['added-records']):,}",
                f"{int(s['total-records']):,}",
                s["total-data-files"],
            )
        self.console.print(shown)

    def _closing(self) -> None:
        location = open_table(LINEITEM, self.options).metadata.location
        python = Path(sys.executable)
        shown_python = (
            python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
        )
        self.console.print(f"  table     {location}")
        self.console.print(f"  catalog   {self.options['catalog.uri']}")
        self.console.print(f"\n  {shown_python} [dim]# then:[/dim]")
        options = ", ".join(f'"{k}": "{v}"' for k, v in self.options.items())
        self.console.print(
            f"""
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
    options = {{{options}}}
    df = spark.read.format("iceberg-py").options(**options).load("{LINEITEM}")
    df.groupBy("l_shipmode").count().show()
""",
            highlight=False,
            soft_wrap=True,
        )

    def _load(self, table: str, **options: str) -> DataFrame:
        reader = self.spark.read.format("iceberg-py").options(**self.options)
        return reader.options(**options).load(table)

    def _summary(self, table: str) -> dict[str, str]:
        snapshot = open_table(table, self.options).metadata.current_snapshot
        assert snapshot is not None
        return dict(snapshot.summary)

    def _timed(self, what: str, action: Callable[[], T]) -> T:
        return run_with_progress(self.spark, self.console, what, action)

    def _chapter(self, title: str) -> None:
        self.console.print(Rule(f"[bold]{title}[/bold]", align="left", style="dim"))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="demo.py", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="0.1", help="TPC-H scale factor (0.1)")
    parser.add_argument("--folder", type=Path, default=Path(".demo"))
    arguments = parser.parse_args(argv)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    folder = arguments.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = time.monotonic()
    console = Console()
    Demo(folder, arguments.scale, console).run()
    console.print(f"[dim]all of it took {time.monotonic() - started:.0f} s[/dim]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
