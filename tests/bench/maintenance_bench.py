"""Incremental reads and maintenance compared with the JVM connector, in one session.

`python -m tests.bench.maintenance_bench [--scale 1] [--only rewrites]`. Both sides run the same
SQL. The contestant `vectors` is a table with the same rows as ours, whose deletes were deletion
vectors from the start.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import load_catalog
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.bench.change_bench import CATALOGS, JVM, MERGE_ON_READ
from tests.bench.plan_table import SNAPSHOT_ID, make_table
from tests.bench.races import Line, race, text_table
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle, start_oracle
from tests.support.tpch import tpch

_RUNS = 2
_FILES = 1000
_TOGETHER = 50
_ORPHANS = 100_000
_LIMIT = 0.8
_COMMITS = 100
_KEYS = 1000
_TABLE_FILES = 10_000
_SCANS = 15
_DELETED = ("keys", "vectors")
_TARGET = "'target-file-size-bytes', '67108864'"


class MaintenanceBench:
    """The tables of both contestants, and the procedures on them."""

    def __init__(self, oracle: Oracle, warehouse: Path, scale: float, runs: int) -> None:
        self.oracle = oracle
        self.sql = oracle.sql
        self.spark = oracle.spark
        self.warehouse = warehouse
        self.runs = runs
        self.files = round(_FILES * min(scale, 1))
        self.commits = round(_COMMITS * min(scale, 1))
        self.orphaned = round(_ORPHANS * min(scale, 1))
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.bench")
        self.spark.read.parquet(str(tpch(scale)["lineitem"])).createOrReplaceTempView("lineitem")

    def call(self, procedure: str, who: str, table: str, arguments: str) -> None:
        """Call a procedure on a contestant's table and fetch its result rows."""
        self.sql(
            f"CALL {CATALOGS[who]}.system.{procedure}(table => 'bench.{table}_{who}', {arguments})"
        ).collect()

    def undo(self, who: str, table: str) -> None:
        """Roll the table back to its first snapshot."""
        name = f"bench.{table}_{who}"
        first = self.sql(
            f"SELECT snapshot_id FROM java_hadoop.{name}.history ORDER BY made_current_at"
        ).first()
        assert first is not None
        self.sql(f"CALL java_hadoop.system.rollback_to_snapshot('{name}', {first[0]})")
        self.spark.catalog.refreshTable(f"java_hadoop.{name}")

    def rewrites(self) -> Iterator[Line]:
        """Measure rewrites of lineitem from small files into large files."""
        for who in CATALOGS:
            self.sql(
                f"CREATE TABLE java_hadoop.bench.lineitem_{who} USING iceberg TBLPROPERTIES "
                "('write.distribution-mode' = 'none') AS "
                f"SELECT /*+ REPARTITION({self.files}) */ * FROM lineitem"
            )
        for name, order in (
            (f"binpack of {self.files:,} small files of lineitem", ""),
            ("sort of lineitem", "sort_order => 'l_shipdate, l_partkey', "),
            ("z-order of lineitem", "sort_order => 'zorder(l_shipdate, l_partkey)', "),
        ):
            arguments = f"{order}options => map('rewrite-all', 'true', {_TARGET})"
            yield race(
                name,
                {
                    who: partial(self.call, "rewrite_data_files", who, "lineitem", arguments)
                    for who in CATALOGS
                },
                runs=self.runs,
                limit=_LIMIT,
                after={who: partial(self.undo, who, "lineitem") for who in CATALOGS},
            )

    def _with_snapshots(self, who: str, name: str) -> None:
        """Create a table with as many snapshots, manifests and files as `self.files`."""
        self.sql(
            f"CREATE TABLE java_hadoop.bench.{name}_{who} (id BIGINT, day DATE) USING iceberg "
            "PARTITIONED BY (day) TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false', "
            "'write.metadata.previous-versions-max' = '1')"
        )
        catalog = load_catalog("bench", type="hadoop", warehouse=str(self.warehouse))
        table = catalog.load_table(f"bench.{name}_{who}")
        day = self.sql("SELECT id, DATE'2026-01-01' AS day FROM range(1)").toArrow()
        for _ in range(max(self.files // _TOGETHER, 1)):
            with table.refresh().transaction() as transaction:
                for _ in range(_TOGETHER):
                    transaction.append(day)
        self.spark.catalog.refreshTable(f"java_hadoop.bench.{name}_{who}")

    def manifests(self) -> Iterator[Line]:
        """Measure rewriting manifests and expiring snapshots after many commits."""
        for who in CATALOGS:
            self._with_snapshots(who, "manifests")

        def back(who: str) -> None:
            name = f"bench.manifests_{who}"
            last = self.sql(
                f"SELECT parent_id FROM java_hadoop.{name}.snapshots ORDER BY committed_at DESC"
            ).first()
            assert last is not None
            self.sql(f"CALL java_hadoop.system.rollback_to_snapshot('{name}', {last[0]})")

        yield race(
            f"rewrite of {self.files:,} manifests",
            {
                who: partial(
                    self.call, "rewrite_manifests", who, "manifests", "use_caching => false"
                )
                for who in CATALOGS
            },
            runs=self.runs,
            limit=_LIMIT,
            after={who: partial(back, who) for who in CATALOGS},
        )
        for who in CATALOGS:
            self._with_snapshots(who, "expired")
        # Only one run, because expired snapshots cannot be restored.
        yield race(
            f"expiry of {self.files:,} snapshots",
            {
                who: partial(
                    self.call,
                    "expire_snapshots",
                    who,
                    "expired",
                    "older_than => TIMESTAMP'2100-01-01', retain_last => 1",
                )
                for who in CATALOGS
            },
            runs=1,
            warm_ups=0,
            limit=_LIMIT,
        )

    def orphans(self) -> Iterator[Line]:
        """Measure the removal of orphan files."""
        for who in CATALOGS:
            self.sql(
                f"CREATE TABLE java_hadoop.bench.orphans_{who} USING iceberg AS "
                "SELECT id FROM range(1)"
            )
            self._litter(who)
        yield race(
            f"removal of {self.orphaned:,} orphans",
            {
                who: partial(
                    self.call,
                    "remove_orphan_files",
                    who,
                    "orphans",
                    "older_than => TIMESTAMP'2026-01-01'",
                )
                for who in CATALOGS
            },
            runs=self.runs,
            limit=_LIMIT,
            after={who: partial(self._litter, who) for who in CATALOGS},
        )

    def _litter(self, who: str) -> None:
        long_ago = time.mktime((2020, 1, 1, 0, 0, 0, 0, 0, 0))
        folder = self.warehouse / "bench" / f"orphans_{who}" / "data"
        for number in range(self.orphaned):
            path = folder / f"day={number % 100}" / f"{number}.parquet"
            if number < 100:
                path.parent.mkdir(exist_ok=True)
            path.touch()
            os.utime(path, (long_ago, long_ago))

    def deletes(self) -> Iterator[Line]:
        """Measure scans with many equality deletes, and their conversion to deletion vectors."""
        for table in _DELETED:
            self.sql(
                f"CREATE TABLE java_hadoop.bench.{table} USING iceberg TBLPROPERTIES ("
                f"{MERGE_ON_READ}, 'commit.manifest-merge.enabled' = 'false') AS "
                f"SELECT /*+ REPARTITION(8) */ * FROM lineitem"
            )
        # The order keys are 1 to 7, 32 to 39 and so on: a quarter of all numbers.
        keys = [4 * (n // 8 * 8) + n % 8 for n in range(1, self.commits * _KEYS + 1)]
        for start in range(0, len(keys), _KEYS):
            rows_of_commit = [(key,) for key in keys[start : start + _KEYS]]
            self.oracle.write_equality_deletes(
                "java_hadoop.bench.keys", ["l_orderkey"], rows_of_commit
            )
        gone = self.spark.createDataFrame([(key,) for key in keys], "key BIGINT")
        gone.createOrReplaceTempView("gone")
        self.sql("DELETE FROM java_hadoop.bench.vectors WHERE l_orderkey IN (SELECT key FROM gone)")
        for table in _DELETED:
            self.spark.catalog.refreshTable(f"java_hadoop.bench.{table}")
        name = f"equality deletes of {self.commits} x {_KEYS:,} keys"
        scans = {
            "ours": partial(self._scan, "lake.bench.keys"),
            "vectors": partial(self._scan, "lake.bench.vectors"),
        }
        yield race(
            f"scan with {name}",
            {**scans, "jvm": partial(self._scan, "java_hadoop.bench.keys")},
            runs=self.runs,
        )
        yield race(
            f"{name} to vectors",
            {"ours": lambda: self.sql("CALL lake.system.rewrite_equality_deletes('bench.keys')")},
            runs=1,
            warm_ups=0,
        )
        for table in _DELETED:
            self.spark.catalog.refreshTable(f"java_hadoop.bench.{table}")
        counts = {t: self.sql(f"SELECT count(*) FROM lake.bench.{t}").first() for t in _DELETED}
        if len(set(counts.values())) != 1:
            raise AssertionError(f"the tables have different rows: {counts}")
        yield race(
            "scan after it, and of a table with vectors",
            {**scans, "jvm": partial(self._scan, "java_hadoop.bench.keys")},
            runs=_SCANS,
            limit=1.0,
        )

    def _scan(self, table: str) -> None:
        """Run a full scan."""
        self.spark.table(table).write.format("noop").mode("overwrite").save()

    def appends(self) -> Iterator[Line]:
        """Measure an incremental read of an append to a table of many files, all unread."""
        location = self.warehouse / "bench" / "appended"
        make_table(LocalFileIO(), str(location), str(location), _TABLE_FILES, 1000, in_order=True)
        (location / "metadata" / "00000-bench.metadata.json").rename(
            location / "metadata" / "v1.metadata.json"
        )
        self.sql(
            "INSERT INTO java_hadoop.bench.appended SELECT * FROM lineitem "
            "WHERE l_shipdate < DATE'1992-03-01'"
        )

        def read(catalog: str) -> None:
            frame = self.spark.read.option("start-snapshot-id", SNAPSHOT_ID)
            frame.table(f"{catalog}.bench.appended").write.format("noop").mode("overwrite").save()

        yield race(
            f"incremental read of an append to {_TABLE_FILES:,} files",
            {who: partial(read, catalog) for who, catalog in CATALOGS.items()},
            runs=_SCANS,
            warm_ups=2,
            limit=1.0,
        )


# The reads of milliseconds come first: rewrites of many seconds leave the JVM in another state.
PARTS = ("appends", "rewrites", "manifests", "orphans", "deletes")


def compare(scale: float = 1.0, runs: int = _RUNS, only: str | None = None) -> list[TextTable]:
    """Measure everything and return the tables to print."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        oracle = start_oracle(Path(scratch), JVM)
        try:
            with native_lake(oracle):
                bench = MaintenanceBench(oracle, oracle.warehouse, scale, runs)
                lines = [
                    line
                    for part in PARTS
                    if only in (None, part)
                    for line in getattr(bench, part)()
                ]
        finally:
            oracle.spark.stop()
    title = f"maintenance by CALL: TPC-H SF{scale:g}, local[2], medians of {runs}"
    return [text_table(title, lines, {"jvm": "JVM", "vectors": "vectors"})]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.maintenance_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=_RUNS)
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    for table in compare(arguments.scale, arguments.runs, arguments.only):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
