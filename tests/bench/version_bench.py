"""Version 4, with root manifests, compared with version 3: one-row commits and planning.

`python -m tests.bench.version_bench`. Spark is not needed, because Python writes commits and plans
scans in both versions.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile, ManifestContent
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.bench.races import Line, race
from tests.bench.version_tables import FORMS, one_more, table_of_form
from tests.services.s3 import s3_server
from tests.services.toxiproxy import toxiproxy
from tests.support.deleted_rows import delete_positions

COLUMNS = "id BIGINT, name STRING, x DOUBLE, at TIMESTAMP_NTZ"
ROW = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "name": ["a name"],
        "x": [1.5],
        "at": pa.array([0], pa.timestamp("us")),
    }
)
COMMITS = 1_000
APPENDS = 100
DISTANT_APPENDS = 25
LATENCY_MS = 20
LEAVES = 1_000
FILES = 100_000
FILES_PER_MANIFEST = 10_000
NOT_MERGED = {"commit.manifest-merge.enabled": "false"}
AGAIN = 7


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of version 4 and the figure to compare with; `limit` is for their ratio."""

    name: str
    ours: float
    other: float
    limit: str
    digits: int = 2


@contextmanager
def catalog() -> Iterator[TableCatalog]:
    """Yield a new catalog with its own database."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        uri = f"sqlite:///{folder}/catalog.db"
        catalog = load_catalog("bench", type="sql", uri=uri, warehouse=f"file:{folder}/warehouse")
        catalog.create_namespace("db")
        yield catalog


def new_table(lake: TableCatalog, version: int, **properties: str) -> Table:
    """Create an empty table of this format version."""
    number = len(lake.list_tables("db"))
    all_properties = {"format-version": str(version), **properties}
    lake.create_namespace("db", if_not_exists=True)
    return lake.create_table(f"db.t{number}", COLUMNS, properties=all_properties)


def metadata_files(table: Table) -> dict[str, int]:
    """Return names and sizes of a table's metadata files, without the table metadata JSON."""
    folder = Path(table.location.removeprefix("file:")) / "metadata"
    files = (f for f in folder.iterdir() if not f.name.endswith(".json"))
    return {f.name: f.stat().st_size for f in files}


def files_of_an_append(lake: TableCatalog) -> Figure:
    """Compare the number of files that a one-row commit writes besides its data file."""
    counts = {}
    for version in (3, 4):
        table = new_table(lake, version)
        table.append(ROW)
        before = len(metadata_files(table))
        table.append(ROW)
        # plus one for the table metadata
        counts[version] = len(metadata_files(table)) - before + 1
    return Figure(
        name="files written by an append of one row, data apart",
        ours=counts[4],
        other=counts[3],
        limit="2 and 3",
        digits=0,
    )


def bytes_of_commits(lake: TableCatalog, commits: int) -> Iterator[Figure]:
    """Compare the mean bytes per one-row commit: manifests, manifest lists and root manifests."""
    of = {
        name: new_table(lake, version, **properties)
        for name, version, properties in (
            ("ours", 4, {}),
            ("merged", 3, {}),
            ("not merged", 3, NOT_MERGED),
        )
    }
    for table in of.values():
        for _ in range(commits):
            table.append(ROW)
    sizes = {name: sum(metadata_files(table).values()) / commits for name, table in of.items()}
    for name in ("merged", "not merged"):
        yield Figure(
            name=f"bytes of manifests a commit, {commits:,} commits; manifests of 3 {name}",
            ours=sizes["ours"],
            other=sizes[name],
            limit="0.33",
            digits=0,
        )


@contextmanager
def distant_catalog() -> Iterator[TableCatalog]:
    """Yield a new catalog of tables in an S3 server that takes `LATENCY_MS` for an answer."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as name:
        folder = Path(name)
        with s3_server(folder / "s3") as s3, toxiproxy(folder) as proxies:
            distant = proxies.proxy("s3", s3.endpoint)
            lake = load_catalog(
                "distant",
                type="sql",
                uri=f"sqlite:///{folder}/catalog.db",
                warehouse=f"s3://{s3.new_bucket()}/warehouse",
                **s3.properties(distant.endpoint),
            )
            lake.create_namespace("db")
            with distant.toxic("latency", "downstream", latency=LATENCY_MS):
                yield lake


def appends(lake: TableCatalog, count: int, where: str = "", runs: int = 5) -> Line:
    """Measure one-row appends, each run to a new table."""

    def append(version: int) -> Callable[[], None]:
        def run() -> None:
            table = new_table(lake, version)
            for _ in range(count):
                table.append(ROW)

        return run

    return race(
        f"{count} appends of one row{where}",
        {"ours": append(4), "3": append(3)},
        runs=runs,
        limit=0.8,
    )


def many_leaves(lake: TableCatalog, version: int, leaves: int) -> Table:
    """Create a table of `leaves` manifests with one nonexistent data file each."""
    small = {"commit.manifest.target-size-bytes": "1", **NOT_MERGED}
    table = new_table(lake, version, **small)
    files = tuple(
        DataFile(
            file_path=f"{table.location}/data/{i:06d}.parquet",
            record_count=100,
            file_size_in_bytes=10_000,
        )
        for i in range(leaves)
    )
    root = {"write.root.max-data-entries": "0"}
    table.update_properties().set(root).commit()
    commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=files))
    table.update_properties().remove(*root).commit()
    return table.refresh()


def deletes_of_one_row(lake: TableCatalog, leaves: int) -> tuple[Figure, Line]:
    """Compare how many leaves a delete of one row writes or drops, and its time."""
    tables = {"ours": many_leaves(lake, 4, leaves), "3": many_leaves(lake, 3, leaves)}
    touched, rows = dict.fromkeys(tables, 0), Counter[str]()

    def leaves_of(table: Table) -> set[str]:
        manifests = table.metadata_table("manifests").to_arrow().to_pylist()
        data = int(ManifestContent.DATA)
        paths = {m["path"] for m in manifests if m["content"] == data}
        return {p for p in paths if "/snap-" not in p}

    def delete(contestant: str) -> Callable[[], None]:
        def run() -> None:
            table = tables[contestant]
            file = f"{table.location}/data/{rows[contestant]:06d}.parquet"
            rows[contestant] += 1
            delete_positions(table, {file: [7]})

        return run

    before = {contestant: leaves_of(table.refresh()) for contestant, table in tables.items()}
    line = race(
        f"deletion of one row of {leaves:,} leaves",
        {contestant: delete(contestant) for contestant in tables},
        runs=5,
    )
    for contestant, table in tables.items():
        assert len(before[contestant]) == leaves, (contestant, len(before[contestant]))
        touched[contestant] = len(before[contestant] ^ leaves_of(table.refresh()))
    figure = Figure(
        name=f"leaves of data that deletions touch, of {leaves:,}",
        ours=touched["ours"],
        other=touched["3"],
        limit="0",
        digits=0,
    )
    return figure, line


# --- planning -------------------------------------------------------------------------------------


def measure_planning(location: str) -> None:
    """Plan a table in this new process, and print the seconds as JSON."""
    # Imports are not part of a plan, and are the same for all forms.
    from tests.bench.plan_bench import load_ours  # noqa: PLC0415

    plan = load_ours()
    plan(one_more(), None)
    seconds = []
    for _ in range(1 + AGAIN):
        gc.collect()
        started = time.perf_counter()
        plan(location, None)
        seconds.append(time.perf_counter() - started)
    sys.stdout.write(json.dumps({"cold": seconds[0], "warm": min(seconds[1:])}))


def planning(files: int, runs: int = 5) -> list[Figure]:
    """Compare planning all files for each form of manifests; each plan runs in a new process."""
    seconds_by_form: dict[str, dict[str, list[float]]] = {
        f: {"cold": [], "warm": []} for f in FORMS
    }
    for _ in range(runs):
        for form in FORMS:
            location = table_of_form(form, files, FILES_PER_MANIFEST)
            command = [sys.executable, "-W", "ignore", "-m", "tests.bench.version_bench"]
            done = subprocess.run(
                [*command, "--plan", location], check=True, capture_output=True, text=True
            )
            for state, seconds in json.loads(done.stdout).items():
                seconds_by_form[form][state].append(seconds)
    median = {
        f: {s: statistics.median(v) for s, v in of.items()} for f, of in seconds_by_form.items()
    }
    return [
        Figure(
            name=f"planning of {files:,} files, {state}: Parquet leaves, and Avro",
            ours=median["root"][state],
            other=median["avro"][state],
            limit="0.7",
            digits=3,
        )
        for state in ("cold", "warm")
    ] + [
        Figure(
            name=f"planning of {files:,} files, {state}: with 10 manifest vectors, and without",
            ours=median["masked"][state],
            other=median["root"][state],
            limit="1.05",
            digits=3,
        )
        for state in ("cold", "warm")
    ]


def compare(scale: float = 1) -> list[TextTable]:
    """Return all figures; a smaller `scale` makes tables and histories smaller."""
    logging.getLogger("iceberg_pyspark").setLevel(logging.ERROR)
    text = TextTable("line", title="version 4, with root manifests, beside version 3")
    for column in ("4", "beside", "ratio", "at most"):
        text.add_column(column, justify="right")

    def add(f: Figure) -> None:
        ratio = f"{f.ours / f.other:.2f}" if f.other else ""
        shown = (f"{value:,.{f.digits}f}" for value in (f.ours, f.other))
        text.add_row(f.name, *shown, ratio, f.limit)

    def add_line(line: Line) -> None:
        limit = "" if line.limit is None else f"{line.limit}"
        add(
            Figure(
                name=f"{line.name}, s",
                ours=line.median("ours"),
                other=line.median("3"),
                limit=limit,
            )
        )

    with catalog() as lake:
        add(files_of_an_append(lake))
        for figure in bytes_of_commits(lake, round(COMMITS * scale)):
            add(figure)
        add_line(appends(lake, APPENDS))
        with distant_catalog() as distant:
            where = f" to S3 that answers in {LATENCY_MS} ms"
            add_line(appends(distant, DISTANT_APPENDS, where, runs=3))
        figure, line = deletes_of_one_row(lake, round(LEAVES * scale))
        add(figure)
        add_line(line)
    for figure in planning(round(FILES * scale)):
        add(figure)
    return [text]


def main() -> None:
    """Print the table, or measure one plan in the process that `planning` started."""
    parser = argparse.ArgumentParser(prog="tests.bench.version_bench")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        measure_planning(arguments.plan)
        return
    for table in compare(arguments.scale):
        Console(width=132).print(table)


if __name__ == "__main__":
    main()
