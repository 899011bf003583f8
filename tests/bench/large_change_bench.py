"""Writes and row-level changes of large tables beside the JVM connector, in turns.

`python -m tests.bench.large_change_bench [--scale 1] [--runs 3] [--only DELETE.*vectors]`. Both
sides run the same SQL on their own copy of lineitem, of few and of many files, which is taken back
after each change: DELETE, UPDATE and MERGE of a share of the rows (of a merge's source, half is
new), merge-on-read and copy-on-write, versions 2 and 3. Besides the times there are those of the
processor, in all processes: they compare where other work on the machine makes times differ.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.races import Line, race, text_table
from tests.bench.tpch_queries import full_scan
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

# The JVM with a user's default options; the tests' options start fast but limit its speed.
JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}
CATALOGS = {"ours": "lake", "jvm": "java_hadoop"}
TABLES = ((8, 2), (8, 3), (2_000, 3))
"""The numbers of files and the versions."""
PERMILLES = (1, 20, 200)
MODES = ("merge-on-read", "copy-on-write")
RUNS = 3
LIMIT = 0.9
_IN_SHARE = "pmod(xxhash64(l_orderkey, l_linenumber), 1000) < "
STATEMENTS = {
    "DELETE": f"DELETE FROM {{t}} WHERE {_IN_SHARE}{{permille}}",
    "UPDATE": "UPDATE {t} SET l_comment = 'changed', l_tax = l_tax + 1 "
    f"WHERE {_IN_SHARE}{{permille}}",
    "MERGE": "MERGE INTO {t} t USING changed{permille} s ON t.l_orderkey = s.l_orderkey "
    "AND t.l_linenumber = s.l_linenumber "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
}
LAYOUTS = {
    "": "",
    " by month": "PARTITIONED BY (months(l_shipdate))",
}


class LargeChangeBench:
    """The tables of both sides; lines that `only` does not match are left out."""

    def __init__(self, oracle: Oracle, scratch: Path, scale: float, runs: int, only: str) -> None:
        self.oracle, self.sql, self.runs = oracle, oracle.sql, runs
        self._is_wanted = re.compile(only).search
        self._appended = 0
        self.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        rows = oracle.spark.read.parquet(str(tpch(scale)["lineitem"]))
        self._view("lineitem", scratch, rows.repartition(8))
        for permille in PERMILLES:
            # Other bits of the hash choose which of the rows become new rows.
            changed = self.sql(
                "SELECT l_orderkey + IF(xxhash64(l_linenumber, l_orderkey) > 0, 0, 1000000000000) "
                "AS l_orderkey, * EXCEPT (l_orderkey, l_comment), 'changed' AS l_comment "
                f"FROM lineitem WHERE {_IN_SHARE}{permille}"
            )
            self._view(f"changed{permille}", scratch, changed)

    def _view(self, name: str, scratch: Path, rows: DataFrame) -> None:
        path = str(scratch / name)
        rows.write.parquet(path)
        self.oracle.spark.read.parquet(path).createOrReplaceTempView(name)

    def lines(self) -> Iterator[Line]:
        """Measure every line."""
        for layout in LAYOUTS:
            appends: dict[str, Callable[[], object]] = {
                side: partial(self._append, side, layout) for side in CATALOGS
            }
            if not layout:
                # The floor: Spark's writer of Parquet, whose classes both sides use.
                appends["parquet"] = self._write_parquet
            yield from self._race(f"append{layout}", appends)
        for files, version in TABLES:
            yield from self._of_table(files, version)

    def _of_table(self, files: int, version: int) -> Iterator[Line]:
        name = f"lines_{files}_{version}"
        of_table = f"{files:,} files, version {version}"
        scan = f"full scan, 5 % of rows deleted, {of_table}"
        names = {
            (mode, statement, permille): f"{statement} of {permille / 10:g} %, {mode}, {of_table}"
            for mode in MODES
            # copy-on-write changes rewrite all files: they write no deletes, in which the versions
            # differ, and their number counts for little
            if mode == "merge-on-read" or (files, version) == (8, 3)
            for permille in PERMILLES
            for statement in STATEMENTS
        }
        if not any(map(self._is_wanted, (scan, *names.values()))):
            return
        tables = {
            side: LineTable(self.oracle, f"{name}_{side}", files, version) for side in CATALOGS
        }
        after = {side: table.undo for side, table in tables.items()}
        for (mode, statement, permille), line in names.items():
            for table in tables.values():
                table.set_mode(mode)
            actions = {
                side: partial(
                    self.sql,
                    STATEMENTS[statement].format(
                        t=f"{CATALOGS[side]}.{table.name}", permille=permille
                    ),
                )
                for side, table in tables.items()
            }
            # They rewrite all files: a single run is long, and steady.
            runs = 1 if mode == "copy-on-write" else self.runs
            yield from self._race(line, actions, after=after, runs=runs)
        if self._is_wanted(scan):
            for table in tables.values():
                table.set_mode("merge-on-read")
            deleted, whole = tables["ours"].name, tables["jvm"].name
            self.sql(STATEMENTS["DELETE"].format(t=f"lake.{deleted}", permille=50))
            scans = {"ours": f"lake.{deleted}", "jvm": f"java_hadoop.{deleted}"}
            scans["whole"] = f"lake.{whole}"
            yield from self._race(
                scan, {side: partial(self._scan, table) for side, table in scans.items()}
            )

    def _race(
        self,
        name: str,
        actions: Mapping[str, Callable[[], object]],
        after: Mapping[str, Callable[[], object]] | None = None,
        runs: int | None = None,
    ) -> Iterator[Line]:
        if self._is_wanted(name):
            # A second unmeasured run: the first line of a kind would still measure the compiler.
            line = race(
                name,
                actions,
                runs=runs or self.runs,
                warm_ups=1 if runs == 1 else 2,
                limit=LIMIT,
                after=after,
            )
            cpu = line.of_the_processor()
            print(f"{name}: {line.ratio('jvm'):.2f}, of the processor {cpu.ratio('jvm'):.2f}")
            yield line

    def _scan(self, table: str) -> None:
        full_scan(self.oracle.spark.table(table))

    def _append(self, side: str, layout: str) -> None:
        self._appended += 1
        table = f"bench.appended{self._appended}"
        columns = ", ".join(
            f"{f.name} {f.dataType.simpleString()}"
            for f in self.oracle.spark.table("lineitem").schema
        )
        self.sql(
            f"CREATE TABLE {CATALOGS[side]}.{table} ({columns}) USING iceberg {LAYOUTS[layout]}"
        )
        self.sql(f"INSERT INTO {CATALOGS[side]}.{table} SELECT * FROM lineitem")
        shutil.rmtree(self.oracle.warehouse / "bench" / f"appended{self._appended}")

    def _write_parquet(self) -> None:
        path = self.oracle.warehouse / "bench" / "parquet"
        rows = self.oracle.spark.table("lineitem")
        rows.write.option("compression", "zstd").parquet(str(path))
        shutil.rmtree(path)


class LineTable:
    """A copy of lineitem, which `undo` takes back to its first snapshot."""

    def __init__(self, oracle: Oracle, name: str, files: int, version: int) -> None:
        self.name = f"bench.{name}"
        self._sql = oracle.sql
        self._data = oracle.warehouse / "bench" / name / "data"
        self._sql(
            f"CREATE TABLE java_hadoop.{self.name} USING iceberg TBLPROPERTIES "
            f"('format-version' = '{version}') AS "
            f"SELECT /*+ REPARTITION({files}) */ * FROM lineitem"
        )
        self._files = frozenset(self._data.iterdir())
        first = self._sql(f"SELECT snapshot_id FROM java_hadoop.{self.name}.snapshots").first()
        assert first is not None, "the table has rows"
        self._first = first[0]
        self._mode = ""

    def set_mode(self, mode: str) -> None:
        """Set the mode of all changes."""
        if mode != self._mode:
            modes = ", ".join(f"'write.{s.lower()}.mode' = '{mode}'" for s in STATEMENTS)
            self._sql(f"ALTER TABLE java_hadoop.{self.name} SET TBLPROPERTIES ({modes})")
            self._mode = mode

    def undo(self) -> None:
        """Take the table back, and remove the files of later snapshots."""
        self._sql(
            f"CALL java_hadoop.system.rollback_to_snapshot('{self.name}', {self._first})"
        ).collect()
        for file in self._data.iterdir():
            if file not in self._files:
                file.unlink()


def compare(scale: float = 1.0, runs: int = RUNS, only: str = "") -> list[TextTable]:
    """Measure everything and return the tables to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                bench = LargeChangeBench(oracle, Path(scratch), scale, runs, only)
                lines = list(bench.lines())
        finally:
            oracle.spark.stop()
    others = {"jvm": "JVM", "whole": "no deletes", "parquet": "Parquet"}
    title = (
        f"large changes and writes: lineitem SF{scale:g}, local[2], medians of {runs}; "
        "copy-on-write one run"
    )
    return [
        text_table(title, lines, others),
        text_table(
            "the same by the time of the processor",
            [line.of_the_processor() for line in lines],
            others,
        ),
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.large_change_bench")
    parser.add_argument("--scale", type=float, default=1.0, help="10 for 60 million rows")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", default="", help="a regular expression of lines' names")
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs, arguments.only):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
