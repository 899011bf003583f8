"""How operations grow with a table: its files, snapshots, columns and partitions.

`python -m tests.bench.growth_bench [--axes files,snapshots] [--cpu] [--full]`. Tables without their
data files, except for one of a few rows, which the changes read. Every side runs in its own process
on the same tables, the smallest first: plain Python, Spark with this package, Spark with the JVM
connector. Figures are the best of two times; "first" is the time before, when the process sees the
table first, after the same on another table. "Rise" is the figure of the largest table over that of
the smallest.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.snapshots import MAIN, SnapshotRef
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_bytes
from iceberg_pyspark.spec.types import LongType
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.bench.cold_steps import cpu_seconds
from tests.support.spark_sessions import spark_environment


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a table; columns are besides `id`, `v` and `p`."""

    files: int = 100
    snapshots: int = 1
    columns: int = 0
    partitions: int = 1


AXES: Mapping[str, Sequence[Size]] = {
    "files": [Size(files=n, partitions=100) for n in (1_000, 100_000)],
    "snapshots": [Size(snapshots=n) for n in (10, 1_000)],
    "columns": [Size(columns=n) for n in (10, 1_000)],
    "partitions": [Size(files=10_000, partitions=n) for n in (1, 10_000)],
}
"""The sizes that all sides pass in about ten minutes."""
FULL: Mapping[str, Sequence[Size]] = {
    "files": [Size(files=n, partitions=100) for n in (1_000, 10_000, 100_000, 1_000_000)],
    "snapshots": [Size(snapshots=n) for n in (10, 100, 1_000, 10_000)],
    "columns": [Size(columns=n) for n in (10, 100, 1_000, 5_000)],
    "partitions": [Size(files=100_000, partitions=n) for n in (1, 1_000, 100_000)],
}
SIDES = ("python", "spark", "jvm")
AGAIN = 2
ROWS = 1 + AGAIN
"""The rows that each change finds."""
PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
}
METADATA_TABLES = ("files", "partitions", "snapshots", "manifests")
_FILES_A_COMMIT = 100_000
_COLUMNS_WITH_METRICS = 100
_JVM = {"spark.driver.extraJavaOptions": "", "spark.driver.memory": "6g"}

Operation: TypeAlias = Callable[[int], object]
"""An operation, given the number of its run."""
Figures: TypeAlias = dict[str, list[list[float]]]
"""By operation, and by size: the seconds of each run."""


# --- the tables -----------------------------------------------------------------------------------


def lake(warehouse: str) -> Any:
    """Return the catalog of the tables."""
    return load_catalog("lake", type="hadoop", warehouse=warehouse)


def make_table(warehouse: str, name: str, size: Size) -> None:
    """Create a table of a size."""
    catalog = lake(warehouse)
    columns = "".join(f", c{i} BIGINT" for i in range(size.columns))
    table: Table = catalog.create_table(
        name, f"id BIGINT, v STRING, p INT{columns}", partitioned_by=["p"], properties=PROPERTIES
    )
    data_files = _data_files(table, size)
    while files := tuple(islice(data_files, _FILES_A_COMMIT)):
        action = AppendFiles(data_files=files, merge=False)
        commit_action(table.catalog, table.loaded, table.io, action)
    ids = pa.array(range(-2 * ROWS, 0), pa.int64())
    zeros = pa.array([0] * len(ids), pa.int32())
    table.refresh().append(pa.table({"id": ids, "v": ids.cast("string"), "p": zeros}))
    if size.snapshots > 1:
        _give_snapshots(table, size.snapshots)


def _data_files(table: Table, size: Size) -> Iterator[DataFile]:
    ids = [1, 2, 3, *range(4, 4 + min(size.columns, _COLUMNS_WITH_METRICS))]
    counts = dict.fromkeys(ids, 1000)
    nulls = dict.fromkeys(ids, 0)
    for i in range(size.files):
        p = i % size.partitions
        low, high = (value_to_bytes(LongType(), i * 1000 + n) for n in (0, 999))
        same = value_to_bytes(LongType(), 7)
        others = dict.fromkeys(ids[3:], same)
        yield DataFile(
            file_path=f"{table.location}/data/p={p}/{i:012d}-0e8f9c7a-1111-4a4a-9b9b.parquet",
            partition=(p,),
            record_count=1000,
            file_size_in_bytes=16_000_000,
            spec_id=table.spec.spec_id,
            column_sizes=counts,
            value_counts=counts,
            null_value_counts=nulls,
            lower_bounds={1: low, 2: b"a text", **others},
            upper_bounds={1: high, 2: b"some text", **others},
            split_offsets=(4,),
        )


def _give_snapshots(table: Table, count: int) -> None:
    """Give a table as many snapshots, all with the manifest list of the newest."""
    metadata: TableMetadata = table.metadata
    newest = metadata.current_snapshot
    assert newest is not None
    first = metadata.last_sequence_number + 1
    more = [
        replace(
            newest,
            snapshot_id=newest.snapshot_id % 2**40 + n,
            parent_snapshot_id=newest.snapshot_id % 2**40 + n - 1 if n else newest.snapshot_id,
            sequence_number=first + n,
            timestamp_ms=newest.timestamp_ms + n,
        )
        for n in range(count)
    ]
    last = more[-1]
    bigger = replace(
        metadata,
        snapshots=(*metadata.snapshots, *more),
        current_snapshot_id=last.snapshot_id,
        refs={MAIN: SnapshotRef(snapshot_id=last.snapshot_id)},
        last_sequence_number=last.sequence_number,
        last_updated_ms=last.timestamp_ms,
    )
    folder = Path(table.location.removeprefix("file:"), "metadata")
    version = 1 + max(int(f.name[1:].split(".")[0]) for f in folder.glob("v*.metadata.json"))
    (folder / f"v{version}.metadata.json").write_bytes(metadata_to_bytes(bigger))
    (folder / "version-hint.text").write_text(str(version))


# --- the operations -------------------------------------------------------------------------------


def python_operations(warehouse: str, name: str, size: Size) -> dict[str, Operation]:
    """Return the operations of plain Python; each loads the table."""

    def table() -> Table:
        loaded: Table = lake(warehouse).load_table(name)
        return loaded

    def new(key: int) -> pa.Table:
        return pa.table(
            {"id": pa.array([key], pa.int64()), "v": ["n"], "p": pa.array([0], "int32")}
        )

    return {
        "plan": lambda _: len(list(table().scan().plan_files())),
        "plan of one file": lambda _: len(list(table().scan("id = 5000").plan_files())),
        "append": lambda _: table().append(new(-100)),
        "delete": lambda n: table().delete(f"id = {-1 - n}"),
        "merge": lambda n: table().upsert(new(-1 - ROWS - n), ["id", "p"]),
        "describe": lambda _: repr(table()),
        **{t: lambda _, t=t: getattr(table().inspect, t)() for t in METADATA_TABLES},  # type: ignore[misc]
    }


def spark_operations(spark: Any, name: str, size: Size) -> dict[str, Operation]:
    """Return the same operations as statements."""
    full = f"lake.{name}"
    more = "".join(", 1" * size.columns)
    tables = {
        "files": "sum(record_count)",
        "partitions": "sum(record_count)",
        "snapshots": "max(committed_at)",
        "manifests": "sum(length)",
    }

    def run(text: str) -> Any:
        return spark.sql(text).collect()

    def plan(_: int) -> int:
        rows = spark.table(full)._jdf.queryExecution().toRdd()
        return int(rows.getNumPartitions())

    return {
        "plan": plan,
        "plan of one file": lambda _: (
            spark.sql(f"SELECT * FROM {full} WHERE id = 5000")
            ._jdf.queryExecution()
            .toRdd()
            .getNumPartitions()
        ),
        "append": lambda _: run(f"INSERT INTO {full} VALUES (-100, 'n', 0{more})"),
        "delete": lambda n: run(f"DELETE FROM {full} WHERE id = {-1 - n}"),
        "merge": lambda n: run(
            f"MERGE INTO {full} t USING (SELECT {-1 - ROWS - n} AS id) s "
            "ON t.id = s.id AND t.id < 0 AND t.p = 0 WHEN MATCHED THEN UPDATE SET v = 'm'"
        ),
        "describe": lambda _: run(f"DESCRIBE TABLE EXTENDED {full}"),
        **{
            t: lambda _, t=t: run(f"SELECT {tables[t]} FROM {full}.{t}")  # type: ignore[misc]
            for t in METADATA_TABLES
        },
    }


OPERATIONS = tuple(python_operations("", "", Size()))


# --- one side in its process ----------------------------------------------------------------------


def measure(side: str, axis: str, warehouse: str, *, cpu: bool, full: bool) -> None:
    """Run all operations on all tables of an axis, and print figures and peaks as JSON."""
    logging.getLogger("iceberg_pyspark").setLevel(logging.ERROR)
    now = cpu_seconds if cpu else time.perf_counter
    figures: Figures = {name: [] for name in OPERATIONS}
    peaks = []
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as scratch:
        spark = None if side == "python" else _session(side, warehouse, Path(scratch))

        def run(name: str, size: Size) -> Iterator[tuple[str, list[float]]]:
            operations = (
                python_operations(warehouse, name, size)
                if spark is None
                else spark_operations(spark, name, size)
            )
            for operation, action in operations.items():
                times = []
                for n in range(1 + AGAIN):
                    started = now()
                    action(n)
                    times.append(now() - started)
                yield operation, times

        dict(run(f"db.{side}_warm", Size()))
        for number, size in enumerate((FULL if full else AXES)[axis]):
            for operation, times in run(f"db.{side}_{axis}{number}", size):
                figures[operation].append(times)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    sys.stdout.write(json.dumps({"figures": figures, "peaks": peaks}))


def _session(side: str, warehouse: str, scratch: Path) -> Any:
    from iceberg_pyspark import install  # noqa: PLC0415
    from tests.support.oracle import oracle_jars  # noqa: PLC0415
    from tests.support.spark_sessions import start_session  # noqa: PLC0415

    catalog = "spark.sql.catalog.lake"
    conf = {f"{catalog}.type": "hadoop", f"{catalog}.warehouse": warehouse, **_JVM}
    if side == "spark":
        spark = start_session(scratch, {catalog: "iceberg_pyspark", **conf})
        install(spark)
        return spark
    conf |= {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    return start_session(scratch, conf, jars=oracle_jars()[:1])


# --- the table of lines ---------------------------------------------------------------------------


def compare(
    axes: Sequence[str] = tuple(AXES),
    sides: Sequence[str] = SIDES,
    *,
    cpu: bool = False,
    full: bool = False,
) -> list[TextTable]:
    """Measure everything and return the table to print; `full` takes more and larger sizes."""
    kind = "CPU s" if cpu else "s"
    text = TextTable("line", title=f"growth of a table: {kind}, at the sizes from left to right")
    for column in ("ours", "JVM", "rise", "JVM's", "largest: first", "JVM's", "again, ours/JVM"):
        text.add_column(column, justify="right")
    for axis in axes:
        measured = {side: _run(side, axis, cpu=cpu, full=full) for side in sides}
        _add_axis(text, axis, (FULL if full else AXES)[axis], measured)
    return [text]


def _run(side: str, axis: str, *, cpu: bool, full: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as warehouse:
        make_table(warehouse, f"db.{side}_warm", Size())
        for number, size in enumerate((FULL if full else AXES)[axis]):
            make_table(warehouse, f"db.{side}_{axis}{number}", size)
        command = [sys.executable, "-W", "ignore", "-m", "tests.bench.growth_bench"]
        command += ["--side", side, "--axes", axis, "--warehouse", warehouse]
        command += [*["--cpu"] * cpu, *["--full"] * full]
        done = subprocess.run(
            command, env=spark_environment(), check=True, stdout=subprocess.PIPE, text=True
        )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _add_axis(
    text: TextTable, axis: str, of_axis: Sequence[Size], measured: Mapping[str, Any]
) -> None:
    sizes = " ".join(f"{getattr(s, axis):,}" for s in of_axis)
    for side in ("python", "spark"):
        if side not in measured:
            continue
        text.add_row(f"{side}, {axis}", sizes)
        of_sides = [measured[side], *([measured["jvm"]] if side == "spark" else [])]
        for operation in OPERATIONS:
            times = [of_side["figures"][operation] for of_side in of_sides]
            again = [[max(min(t[1:]), 0.001) for t in of_sizes] for of_sizes in times]
            shown = [
                [" ".join(f"{t:.2f}" for t in of_sizes) for of_sizes in again],
                [f"{of_sizes[-1] / of_sizes[0]:.1f}" for of_sizes in again],
                [f"{of_sizes[-1][0]:.2f}" for of_sizes in times],
            ]
            cells = [cell for pair in shown for cell in [*pair, ""][:2]]
            ratio = f"{again[0][-1] / again[1][-1]:.2f}" if len(again) > 1 else ""
            text.add_row(operation, *cells, ratio)
        peaks = " ".join(f"{p:.0f}" for p in measured[side]["peaks"])
        text.add_row("peak of Python, MiB", peaks, end_section=True)


def main() -> None:
    """Print the table, or measure one side in the process that `compare` started."""
    parser = argparse.ArgumentParser(prog="tests.bench.growth_bench")
    parser.add_argument("--axes", type=lambda text: text.split(","), default=list(AXES))
    parser.add_argument("--sides", type=lambda text: text.split(","), default=list(SIDES))
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of all processes")
    parser.add_argument("--full", action="store_true", help="more and larger sizes, some hours")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--warehouse", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        axis, warehouse = arguments.axes[0], arguments.warehouse
        measure(arguments.side, axis, warehouse, cpu=arguments.cpu, full=arguments.full)
        return
    chosen = {"cpu": arguments.cpu, "full": arguments.full}
    for table in compare(arguments.axes, arguments.sides, **chosen):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
