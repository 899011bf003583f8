"""Reads and writes of plain Python beside PyIceberg, DuckDB, Polars and bare pyarrow.

`python -m tests.bench.python_bench`. All libraries read the same files: lineitem in eight files of
an Iceberg table, which this package has written. DuckDB, Polars and pyarrow are given the files,
so they neither find them nor skip any by an Iceberg table's metadata. Every writer compresses with
zstd at level 1. A turn is a new process, which does the work once unmeasured: its wall and
processor time, and the peak of its memory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as TextTable

from tests.bench.races import RUNS
from tests.support.peak_memory import peak_bytes
from tests.support.tpch import tpch

# Imports are inside functions, so that no process loads the modules of the other libraries.
# ruff: noqa: PLC0415

FILES = 8
Q6_COLUMNS = ["l_extendedprice", "l_discount", "l_quantity", "l_shipdate"]
Q6 = (
    "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount >= 0.05 AND l_discount <= 0.07 AND l_quantity < 24"
)
LEVEL = {"write.parquet.compression-level": "1"}
DELETED = 50_000
_Q6_TEXTS = Q6.replace("DATE ", "")
LIBRARIES = ("ours", "PyIceberg", "DuckDB", "Polars", "pyarrow")


@dataclass
class Work:
    """The table to read, the folder to write to, and the key of one order."""

    table: str
    scratch: str
    key: int
    target: Any = None

    @cached_property
    def files(self) -> list[str]:
        """The data files of the table."""
        return sorted(str(p) for p in Path(self.table, "data").iterdir())

    @cached_property
    def rows(self) -> pa.Table:
        """All rows of the table, in the order of their keys; names of files have another order."""
        return pq.read_table(sorted(self.files, key=_least_key))

    @property
    def order(self) -> str:
        """The condition of the rows of one order."""
        return f"l_orderkey = {self.key}"


def _least_key(file: str) -> int:
    keys = pq.read_metadata(file).row_group(0).column(0)
    assert keys.path_in_schema == "l_orderkey"
    return int(keys.statistics.min)


def _ours(work: Work) -> Any:
    import iceberg_pyspark

    return iceberg_pyspark.load_table(work.table)


def _pyiceberg(work: Work) -> Any:
    from pyiceberg.table import StaticTable

    newest = max(Path(work.table, "metadata").glob("*.metadata.json"))
    return StaticTable.from_metadata(str(newest))


def _duckdb(work: Work, columns: str, condition: str = "true") -> Any:
    import duckdb

    query = f"SELECT {columns} FROM read_parquet(?) WHERE {condition}"
    return duckdb.sql(query, params=[work.files])


def _polars(work: Work) -> Any:
    import polars

    return polars.scan_parquet(work.files)


def _q6_of_polars(work: Work) -> Any:
    return _polars(work).filter(_of_polars(Q6)).select(Q6_COLUMNS)


def _q6_of_pyarrow() -> Any:
    from datetime import date
    from decimal import Decimal

    day, off = ds.field("l_shipdate"), ds.field("l_discount")
    return (
        (day >= date(1994, 1, 1))
        & (day < date(1995, 1, 1))
        & (off >= Decimal("0.05"))
        & (off <= Decimal("0.07"))
        & (ds.field("l_quantity") < Decimal(24))
    )


def _new_of_ours(work: Work) -> Any:
    import iceberg_pyspark

    catalog = iceberg_pyspark.load_catalog("bench", type="hadoop", warehouse=work.scratch)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", work.rows.schema, properties=LEVEL)


def _new_of_pyiceberg(work: Work) -> Any:
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("bench", warehouse=work.scratch)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", work.rows.schema, properties=LEVEL)


def _append(table: Any, work: Work) -> int:
    table.append(work.rows)
    return _summary(table, "added-records")


def _summary(table: Any, name: str) -> int:
    snapshot = table.current_snapshot
    return int((snapshot() if callable(snapshot) else snapshot).summary[name])


def _in_files(table: Any, work: Work) -> Any:
    """Append the first rows to the table in eight files of whole orders, and return it."""
    for start, end in pairwise(_starts(work)):
        table.append(work.rows.slice(start, end - start))
    return table


def _starts(work: Work) -> list[int]:
    keys = work.rows["l_orderkey"][: (FILES + 1) * DELETED].to_numpy()
    return [int(np.searchsorted(keys, keys[i * DELETED])) for i in range(FILES + 1)]


def _delete(table: Any, work: Work) -> int:
    end = _starts(work)[1]
    table.delete(f"l_orderkey < {work.rows['l_orderkey'][end].as_py()}")
    return _summary(table, "deleted-records")


def _append_duckdb(work: Work) -> int:
    import duckdb

    duckdb.register("rows", work.rows)
    target = f"{work.scratch}/rows.parquet"
    options = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
    duckdb.sql(f"COPY rows TO '{target}' ({options})")
    return int(pq.read_metadata(target).num_rows)


def _append_polars(work: Work) -> int:
    import polars

    target = f"{work.scratch}/rows.parquet"
    frame: Any = polars.from_arrow(work.rows)
    frame.write_parquet(target, compression="zstd", compression_level=1)
    return int(pq.read_metadata(target).num_rows)


def _append_pyarrow(work: Work) -> int:
    target = f"{work.scratch}/rows.parquet"
    pq.write_table(work.rows, target, compression="zstd", compression_level=1)
    return int(pq.read_metadata(target).num_rows)


def _sum_of(batches: Any) -> int:
    return sum(batch.num_rows for batch in batches)


Action: TypeAlias = Callable[[Work], int]
"""A function that does the work of one line, and returns the number of rows."""

LINES: Mapping[str, Mapping[str, Action]] = {
    "all rows": {
        "ours": lambda w: _ours(w).to_arrow().num_rows,
        "PyIceberg": lambda w: _pyiceberg(w).scan().to_arrow().num_rows,
        "DuckDB": lambda w: _duckdb(w, "*").to_arrow_table().num_rows,
        "Polars": lambda w: _polars(w).collect().height,
        "pyarrow": lambda w: ds.dataset(w.files).to_table().num_rows,
    },
    "batch by batch": {
        "ours": lambda w: _sum_of(_ours(w).to_batches()),
        "PyIceberg": lambda w: _sum_of(_pyiceberg(w).scan().to_arrow_batch_reader()),
        "DuckDB": lambda w: _sum_of(_duckdb(w, "*").to_arrow_reader()),
        "Polars": lambda w: sum(f.height for f in _polars(w).collect_batches()),
        "pyarrow": lambda w: _sum_of(ds.dataset(w.files).to_batches()),
    },
    "Q6's rows": {
        "ours": lambda w: _ours(w).scan(Q6, columns=Q6_COLUMNS).to_arrow().num_rows,
        "PyIceberg": lambda w: (
            _pyiceberg(w).scan(_Q6_TEXTS, selected_fields=tuple(Q6_COLUMNS)).to_arrow().num_rows
        ),
        "DuckDB": lambda w: _duckdb(w, ", ".join(Q6_COLUMNS), Q6).to_arrow_table().num_rows,
        "Polars": lambda w: _q6_of_polars(w).collect().height,
        "pyarrow": lambda w: (
            ds.dataset(w.files).to_table(columns=Q6_COLUMNS, filter=_q6_of_pyarrow()).num_rows
        ),
    },
    "one order": {
        "ours": lambda w: _ours(w).scan(w.order).to_arrow().num_rows,
        "PyIceberg": lambda w: _pyiceberg(w).scan(w.order).to_arrow().num_rows,
        "DuckDB": lambda w: _duckdb(w, "*", w.order).to_arrow_table().num_rows,
        "Polars": lambda w: _polars(w).filter(_of_polars(w.order)).collect().height,
        "pyarrow": lambda w: (
            ds.dataset(w.files).to_table(filter=ds.field("l_orderkey") == w.key).num_rows
        ),
    },
    "count": {
        "ours": lambda w: _ours(w).scan().count(),
        "PyIceberg": lambda w: _pyiceberg(w).scan().count(),
        "DuckDB": lambda w: _duckdb(w, "count(*)").fetchall()[0][0],
        "Polars": lambda w: _count_of_polars(w),
        "pyarrow": lambda w: ds.dataset(w.files).count_rows(),
    },
    "count of a filter": {
        "ours": lambda w: _ours(w).scan(Q6).count(),
        "PyIceberg": lambda w: _pyiceberg(w).scan(_Q6_TEXTS).count(),
        "DuckDB": lambda w: _duckdb(w, "count(*)", Q6).fetchall()[0][0],
        "Polars": lambda w: _q6_of_polars(w).select("l_quantity").collect().height,
        "pyarrow": lambda w: ds.dataset(w.files).count_rows(filter=_q6_of_pyarrow()),
    },
    "append": {
        "ours": lambda w: _append(_new_of_ours(w), w),
        "PyIceberg": lambda w: _append(_new_of_pyiceberg(w), w),
        "DuckDB": _append_duckdb,
        "Polars": _append_polars,
        "pyarrow": _append_pyarrow,
    },
    "delete of a file's rows": {
        "ours": lambda w: _delete(w.target, w),
        "PyIceberg": lambda w: _delete(w.target, w),
    },
}

PREPARATIONS: Mapping[tuple[str, str], Callable[[Work], object]] = {
    **{("append", library): lambda w: w.rows for library in LIBRARIES},
    ("delete of a file's rows", "ours"): lambda w: _in_files(_new_of_ours(w), w),
    ("delete of a file's rows", "PyIceberg"): lambda w: _in_files(_new_of_pyiceberg(w), w),
}
"""The work before a line, which is not measured; it returns the work's target."""


def _of_polars(condition: str) -> Any:
    import polars

    return polars.sql_expr(condition)


def _count_of_polars(work: Work) -> int:
    import polars

    return int(_polars(work).select(polars.len()).collect().item())


@dataclass(frozen=True)
class Turn:
    """One measured run in a process of its own; times in seconds, the peak in bytes."""

    rows: int
    wall: float
    cpu: float
    peak: int


def take_turn(line: str, library: str, work: Work) -> Turn:
    """Measure one line of one library in a new process."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.bench.python_bench", "--turn"]
    command += [json.dumps([line, library, work.table, work.scratch, work.key])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Turn(*json.loads(done.stdout.splitlines()[-1]))


def _measure(line: str, library: str, table: str, scratch: str, key: int) -> None:
    """Do the work twice, and print the numbers of the second time."""
    action = LINES[line][library]
    for _ in range(2):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            work = Work(table, folder, key)
            if (prepare := PREPARATIONS.get((line, library))) is not None:
                work.target = prepare(work)
            wall, cpu = time.perf_counter(), time.process_time()
            rows = action(work)
            turn = (rows, time.perf_counter() - wall, time.process_time() - cpu, peak_bytes())
    sys.stdout.write(f"\n{json.dumps(turn)}\n")


def make_table(folder: str, scale: float) -> Work:
    """Write the table into the folder; its files have the rows in the order of their keys."""
    import iceberg_pyspark

    rows = pq.read_table(tpch(scale)["lineitem"])
    plain = [
        pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type, f.nullable)
        for f in rows.schema
    ]
    rows = rows.cast(pa.schema(plain))
    catalog = iceberg_pyspark.load_catalog("bench", type="hadoop", warehouse=folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.lineitem", rows.schema)
    ends = [rows.num_rows * i // FILES for i in range(FILES + 1)]
    for start, end in pairwise(ends):
        table.append(rows.slice(start, end - start))
    return Work(table.location, folder, rows["l_orderkey"][ends[1]].as_py())


def compare(
    scale: float = 1.0, runs: int = RUNS, *, lines: list[str] | None = None
) -> list[TextTable]:
    """Measure everything and return the table to print."""
    text = TextTable(
        "line",
        "library",
        title=f"plain Python: lineitem SF{scale:g} in {FILES} files, medians of {runs} turns",
    )
    for column in ("wall s", "CPU s", "peak MiB", "ours/wall", "ours/CPU"):
        text.add_column(column, justify="right")
    folder = tempfile.mkdtemp(prefix="iceberg-bench-")
    try:
        work = make_table(folder, scale)
        for line in lines or LINES:
            _add_line(text, line, _race(line, work, runs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [text]


def _race(line: str, work: Work, runs: int) -> Mapping[str, list[Turn]]:
    turns: dict[str, list[Turn]] = {library: [] for library in LINES[line]}
    order = list(turns)
    for _ in range(runs):
        order.reverse()
        for library in order:
            turns[library].append(take_turn(line, library, work))
    if len({turn.rows for of_library in turns.values() for turn in of_library}) != 1:
        counts = {library: of_library[0].rows for library, of_library in turns.items()}
        raise AssertionError(f"{line}: the libraries disagree on the number of rows: {counts}")
    return turns


def _add_line(text: TextTable, line: str, turns: Mapping[str, list[Turn]]) -> None:
    medians = {
        library: (
            statistics.median(t.wall for t in of_library),
            statistics.median(t.cpu for t in of_library),
            statistics.median(t.peak for t in of_library),
        )
        for library, of_library in turns.items()
    }
    our_wall, our_cpu, _ = medians["ours"]
    for library, (wall, cpu, peak) in medians.items():
        is_other = library != "ours"
        text.add_row(
            "" if is_other else line,
            library,
            f"{wall:.3f}",
            f"{cpu:.3f}",
            f"{peak / 2**20:.0f}",
            f"{our_wall / wall:.2f}" if is_other else "",
            f"{our_cpu / cpu:.2f}" if is_other else "",
            end_section=library == list(medians)[-1],
        )


def main() -> None:
    """Print the table, or take the turn that `compare` asked for."""
    parser = argparse.ArgumentParser(prog="tests.bench.python_bench")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--lines", help="which of " + ", ".join(LINES))
    parser.add_argument("--turn", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.turn:
        _measure(*arguments.turn)
        return
    lines = arguments.lines.split(",") if arguments.lines else None
    for table in compare(arguments.scale, arguments.runs, lines=lines):
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
