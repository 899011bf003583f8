"""Catalogs compared with PyIceberg and the JVM connector: loads, and one-row appends.

`python -m tests.bench.catalog_bench [--only load]`. A load of a table with a long history is
measured in new processes, in time and memory. For appends, each contestant has its own table of the
same shape and codec; at the end the other side reads all rows back. Our code syncs local files to
disk when it writes them; PyIceberg does not. A REST server first commits to tables of its own,
until its JVM has compiled the code of a commit, as in production; the time that each client waits
for the server is printed too, because no client can save it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog as load_pyiceberg_catalog
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import load_catalog
from iceberg_pyspark.formats.metadata_files import write_table_metadata
from iceberg_pyspark.spark.session import install
from iceberg_pyspark.spec.snapshots import SnapshotLogEntry
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.bench.races import Line, race, text_table
from tests.bench.rest_requests import RequestTimes
from tests.services.databases import PASSWORD, USER, new_database
from tests.services.postgres import postgres
from tests.services.rest_fixture import rest_server
from tests.support.oracle import start_oracle

SNAPSHOTS = 10_000
LOADS = 5
APPENDS = 30
MAX_OF_LOAD = 1 / 3
MAX_OF_PYICEBERG = 0.5
MAX_OF_JVM = 1.0
# The JVM with a user's default options; the tests' options start fast but limit its speed.
_JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "2g"}
_JAVA = "org.apache.iceberg.spark.SparkCatalog"
_CODEC = {"write.parquet.compression-codec": "zstd", "format-version": "2"}
_WARM_UPS = 10
_SERVER_WARM_UPS = 4, 150
"""Tables, and one-row appends to each, before a REST server is measured."""
_BEHIND_REST = "behind_rest"
_SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
_LOAD = """
import json, time
from {module} import load_catalog

def peak():
    # what getrusage says is that of the process before it was this program, if that was larger
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

catalog = load_catalog("lake", **{{"type": "sql", "uri": {uri!r}, "warehouse": {warehouse!r}}})
catalog.load_table("db.empty")
before = peak()
started = time.perf_counter()
table = catalog.load_table("db.many")
current = {current}
seconds = time.perf_counter() - started
grown = peak() - before
assert current.summary["total-records"] == "{records}", current
assert len(table.metadata.snapshots) == {snapshots}
print(json.dumps([seconds, grown, peak()]))
"""
_OURS = {"module": "iceberg_pyspark", "current": "table.current_snapshot"}
_THEIRS = {"module": "pyiceberg.catalog", "current": "table.current_snapshot()"}


# the load


def loads(snapshots: int = SNAPSHOTS, runs: int = LOADS) -> TextTable:
    """Compare time and memory of a load by us and by PyIceberg, in new processes."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder}
        size = _long_history(place, snapshots)
        measurements: dict[str, list[list[float]]] = {"ours": [], "theirs": []}
        for _ in range(runs):
            for contestant, code in (("ours", _OURS), ("theirs", _THEIRS)):
                script = _LOAD.format(**code, **place, records=snapshots, snapshots=snapshots)
                measurements[contestant].append(_in_new_process(script))
    title = f"load of a table: {snapshots:,} snapshots, {size / 1e6:.0f} MB of JSON, in SQLite"
    text = TextTable("what", title=title)
    for column in ("ours", "PyIceberg", "ratio", "at most"):
        text.add_column(column, justify="right")
    medians = {
        contestant: [statistics.median(c) for c in zip(*r, strict=True)]
        for contestant, r in measurements.items()
    }
    for i, (quantity, unit, limit) in enumerate(
        (
            ("time", "s", MAX_OF_LOAD),
            ("memory that the load takes", "MiB", MAX_OF_LOAD),
            ("memory of the whole process", "MiB", None),
        )
    ):
        ours, theirs = medians["ours"][i], medians["theirs"][i]
        shown = [f"{n:.3f} {unit}" if unit == "s" else f"{n:.0f} {unit}" for n in (ours, theirs)]
        at_most = "" if limit is None else f"{limit:.2f}"
        text.add_row(quantity, *shown, f"{ours / theirs:.2f}", at_most)
    return text


def _in_new_process(script: str) -> list[float]:
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: list[float] = json.loads(done.stdout)
    return measured


def _long_history(place: Mapping[str, str], snapshots: int) -> int:
    """Create `db.empty` and `db.many`; return the size of the latter's metadata file."""
    catalog = load_catalog("lake", type="sql", **place)
    catalog.create_namespace("db")
    catalog.create_table("db.empty", schema=_SCHEMA)
    first = catalog.create_table("db.first", schema=_SCHEMA)
    first.append(_row(0))
    location = f"{first.location}/metadata/00002-many.metadata.json"
    write_table_metadata(LocalFileIO(), _with_history(first.metadata, snapshots), location)
    catalog.drop_table("db.first")
    catalog.register_table("db.many", location)
    return Path(location).stat().st_size


def _with_history(metadata: TableMetadata, snapshots: int) -> TableMetadata:
    """Return metadata as after this many Spark appends, each with ten partition summaries."""
    [one] = metadata.snapshots
    history = []
    for n in range(1, snapshots + 1):
        day = f"2026-{1 + n % 12:02d}"
        partitions = {
            f"partitions.day={day}-{1 + d:02d}": "added-data-files=1,added-records=100,"
            f"added-files-size={90_000 + n}"
            for d in range(10)
        }
        spark = {
            "spark.app.id": f"app-20260101{n:06d}-0001",
            "engine-version": "4.1.1",
            "engine-name": "spark",
            "app-id": f"app-20260101{n:06d}-0001",
            "partition-summaries-included": "true",
            "iceberg-version": "Apache Iceberg 1.12.0 (commit 0123456789abcdef0123456789abcdef)",
        }
        snapshot = replace(
            one,
            snapshot_id=one.snapshot_id - snapshots + n,
            parent_snapshot_id=None if n == 1 else one.snapshot_id - snapshots + n - 1,
            sequence_number=n,
            timestamp_ms=one.timestamp_ms + n * 1000,
            manifest_list=(one.manifest_list or "").replace("snap-", f"snap-{n}-"),
            summary={**one.summary, **spark, **partitions, "total-records": str(n)},
        )
        history.append(snapshot)
    history[-1] = replace(history[-1], manifest_list=one.manifest_list)
    return replace(
        metadata,
        last_sequence_number=snapshots,
        last_updated_ms=history[-1].timestamp_ms,
        snapshots=tuple(history),
        snapshot_log=tuple(
            SnapshotLogEntry(snapshot_id=s.snapshot_id, timestamp_ms=s.timestamp_ms)
            for s in history
        ),
    )


def _row(n: int) -> pa.Table:
    return pa.table({"id": [n], "v": [f"v{n}"]}, schema=_SCHEMA)


# appends without Spark


def appends(runs: int = APPENDS) -> TextTable:
    """Compare one-row appends by us and by PyIceberg in three kinds of catalog."""
    lines, waits = [], []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iceberg-bench-")))
        for name, ours, theirs in _catalogs(stack, folder):
            times = {"ours": RequestTimes(), "theirs": RequestTimes()}
            lines.append(_append_line(name, ours, theirs, runs, times))
            if ours["type"] == "rest":
                waits.append(_waits(lines[-1], times, runs))
    title = f"one-row appends without Spark, medians of {runs}"
    text = text_table(title, lines, {"theirs": "PyIceberg"}, digits=3)
    text.caption = "\n".join(waits)
    return text


def _waits(line: Line, times: Mapping[str, RequestTimes], runs: int) -> str:
    """Return how long the clients waited for the server, and what ratio that leaves at best."""
    waits = {c: statistics.median(t.seconds[-runs:]) for c, t in times.items()}
    numbers = {c: statistics.median(t.numbers[-runs:]) for c, t in times.items()}
    at_best = waits["theirs"] / line.median("theirs")
    return (
        f"{line.name}: waiting for the server, ours {waits['ours']:.3f} s in {numbers['ours']:g} "
        f"requests, PyIceberg {waits['theirs']:.3f} s in {numbers['theirs']:g}; ratio of "
        f"a client that only waits: {at_best:.2f}"
    )


def _catalogs(
    stack: ExitStack, folder: Path
) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """Yield per kind its name, the properties of our catalog, and the properties of PyIceberg's."""
    for contestant in ("ours", "theirs"):
        (folder / contestant).mkdir()
    sqlite = [f"sqlite:///{folder}/{contestant}/catalog.db" for contestant in ("ours", "theirs")]
    yield "SQLite", *_sql(folder, *sqlite)
    server = stack.enter_context(postgres())
    databases = [new_database(server) for _ in range(2)]
    databases[1] = databases[1].replace("postgresql:", "postgresql+psycopg:")
    yield "PostgreSQL", *_sql(folder, *databases)
    # Run the server as in production: a JVM at full speed, with table pointers in PostgreSQL.
    server.create(_BEHIND_REST)
    behind = {"uri": server.jdbc_url(_BEHIND_REST), "jdbc.user": USER, "jdbc.password": PASSWORD}
    for name, database in (("REST on PostgreSQL", behind), ("REST on SQLite", {})):
        own = folder / name
        own.mkdir()
        served = stack.enter_context(rest_server(own, database, options=()))
        rest = {"type": "rest", "uri": served.endpoint}
        _warm_up(rest)
        yield name, rest, rest


def _warm_up(rest: Mapping[str, str]) -> None:
    catalog = load_catalog("lake", **rest)
    catalog.create_namespace("warm")
    tables, commits = _SERVER_WARM_UPS
    for number in range(tables):
        table = catalog.create_table(f"warm.t{number}", schema=_SCHEMA, properties=_CODEC)
        for n in range(commits):
            table.append(_row(n))


def _sql(folder: Path, ours: str, theirs: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return (
        {"type": "sql", "uri": ours, "warehouse": f"{folder}/ours"},
        {"type": "sql", "uri": theirs, "warehouse": f"{folder}/theirs"},
    )


def _append_line(
    name: str,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    runs: int,
    times: Mapping[str, RequestTimes],
) -> Line:
    our_catalog, their_catalog = (
        load_catalog("lake", **ours),
        load_pyiceberg_catalog("lake", **theirs),
    )
    our_catalog.create_namespace("ours")
    their_catalog.create_namespace("theirs")
    our_table = our_catalog.create_table("ours.events", schema=_SCHEMA, properties=_CODEC)
    their_table = their_catalog.create_table("theirs.events", schema=_SCHEMA, properties=_CODEC)
    line = race(
        name,
        {
            "ours": times["ours"].measured(_numbered(lambda n: our_table.append(_row(n)))),
            "theirs": times["theirs"].measured(_numbered(lambda n: their_table.append(_row(n)))),
        },
        runs=runs,
        warm_ups=_WARM_UPS,
        limit=MAX_OF_PYICEBERG,
    )
    # Each side reads the table that the other side has written.
    by_them = load_pyiceberg_catalog("lake", **_read_by_pyiceberg(ours)).load_table("ours.events")
    by_us = load_catalog("lake", **theirs).load_table("theirs.events")
    expected = list(range(runs + _WARM_UPS))
    for rows in (by_them.scan().to_arrow(), by_us.scan().to_arrow()):
        if sorted(rows["id"].to_pylist()) != expected:
            raise AssertionError(f"{name}: rows {rows['id']} instead of 0 to {len(expected)}")
    return line


def _read_by_pyiceberg(properties: Mapping[str, str]) -> Mapping[str, str]:
    uri = properties["uri"].replace("postgresql:", "postgresql+psycopg:")
    return {**properties, "uri": uri}


def _numbered(append: Callable[[int], Any]) -> Callable[[], Any]:
    """Return a function that appends 0, then 1, and so on."""
    numbers = iter(range(1_000_000))
    return lambda: append(next(numbers))


# appends through Spark


def inserts(runs: int = APPENDS) -> TextTable:
    """Compare `INSERT` of one row through Spark by us and by the JVM connector."""
    lines = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iceberg-bench-")))
        (folder / "rest").mkdir()
        rest = {"type": "rest", "uri": stack.enter_context(rest_server(folder / "rest")).endpoint}
        file = f"{folder}/ours.db"
        sqlite = {"type": "sql", "uri": f"sqlite:///{file}", "warehouse": f"{folder}/ours"}
        server = stack.enter_context(postgres())
        database = new_database(server)
        ours = {"type": "sql", "uri": database, "warehouse": f"{folder}/ours-postgres"}
        java = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": server.jdbc_url(new_database(server).rpartition("/")[2]),
            "jdbc.user": USER,
            "jdbc.password": PASSWORD,
            "warehouse": f"{folder}/java-postgres",
        }
        conf = dict(_JVM)
        for catalog, implementation, properties in (
            ("ours_sql", "iceberg_pyspark", sqlite),
            ("ours_postgres", "iceberg_pyspark", ours),
            ("java_postgres", _JAVA, java),
            ("ours_rest", "iceberg_pyspark", rest),
            ("java_rest", _JAVA, rest),
        ):
            prefix = f"spark.sql.catalog.{catalog}"
            conf |= {prefix: implementation, **{f"{prefix}.{k}": v for k, v in properties.items()}}
        oracle = start_oracle(folder, conf)
        try:
            session = install(oracle.spark)
            assert session.is_native
            for kind, name in (
                ("sql", "SQLite (JdbcCatalog)"),
                ("postgres", "PostgreSQL (JdbcCatalog)"),
                ("rest", "REST"),
            ):
                lines.append(_insert_line(oracle.sql, kind, name, runs))
            session.uninstall()
        finally:
            oracle.spark.stop()
    title = f"INSERT of one row through Spark, local[2], medians of {runs}"
    return text_table(title, lines, {"jvm": "JVM"}, digits=3)


def _insert_line(sql: Callable[[str], Any], kind: str, name: str, runs: int) -> Line:
    tables = {"ours": f"ours_{kind}.ours.events", "jvm": f"java_{kind}.java.events"}
    for table in tables.values():
        sql(f"CREATE NAMESPACE {table.rpartition('.')[0]}")
        properties = ", ".join(f"'{k}' = '{v}'" for k, v in _CODEC.items())
        sql(
            f"CREATE TABLE {table} (id BIGINT, v STRING) USING iceberg TBLPROPERTIES ({properties})"
        )

    def insert(table: str, n: int) -> None:
        sql(f"INSERT INTO {table} VALUES ({n}, 'v{n}')")

    contestants = {
        contestant: _numbered(partial(insert, table)) for contestant, table in tables.items()
    }
    line = race(name, contestants, runs=runs, limit=MAX_OF_JVM)
    for table in tables.values():
        ids = [row.id for row in sql(f"SELECT id FROM {table}").collect()]
        if sorted(ids) != list(range(runs + 1)):
            raise AssertionError(f"{table}: rows {ids} instead of 0 to {runs}")
    return line


PARTS: Mapping[str, Callable[[], TextTable]] = {
    "load": loads,
    "append": appends,
    "insert": inserts,
}


def compare(only: str | None = None) -> list[TextTable]:
    """Return all tables, or only the named one."""
    return [make() for name, make in PARTS.items() if only in (None, name)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="tests.bench.catalog_bench")
    parser.add_argument("--only", choices=PARTS)
    for table in compare(parser.parse_args().only):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
