"""Upserts and deletes in plain Python compared with PyIceberg, each in a new process.

`python -m tests.bench.row_changes_bench [--scale 1]`. Both libraries use one SQL catalog, and
change copies of one table, of version 2. PyIceberg's time grows so fast that it changes a tenth of
the rows. Times are those of the call alone, on the wall and of the processor; the ratio is that of
the processor's. Memory is the process's with the rows of the source.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import load_catalog

ROWS = 10_000_000
FILES = 100
AT_MOST = {"time": 0.1, "memory": 2048}

_SCRIPT = """
import json, sys, time
import pyarrow.parquet as pq
from {module} import load_catalog
from tests.support.peak_memory import peak_bytes
table = load_catalog("lake", type="sql", uri={uri!r}, warehouse={warehouse!r}).load_table({name!r})
rows = pq.read_table({source!r})
begin, cpu = time.perf_counter(), time.process_time()
{act}
cpu = time.process_time() - cpu
print(json.dumps([time.perf_counter() - begin, cpu, peak_bytes() / 2**20]))
"""
_MODULES = {"ours": "iceberg_pyspark", "PyIceberg": "pyiceberg.catalog"}
_UPSERT = "table.upsert(rows, ['id'])"
_DELETE = "table.delete('id >= {first} and id < {last}')"


def rows_of(ids: npt.NDArray[np.int64]) -> pa.Table:
    """Return rows of these ids."""
    return pa.table(
        {
            "id": ids,
            "v": pa.array(ids % 1000, pa.int32()),
            "a": np.sqrt(np.abs(ids)),
            "s": [f"name-{i % 100_000}" for i in ids],
        }
    )


@dataclass(frozen=True)
class Measured:
    """The seconds of a change, those of the processor, and the peak of its process's memory."""

    seconds: float
    cpu: float
    mebibytes: float


class Tables:
    """Tables of `rows` rows in `files` files, and a source with a tenth as many rows."""

    def __init__(self, folder: str, rows: int, files: int) -> None:
        self.rows, self.files = rows, files
        self._place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder}
        self._catalog = load_catalog("lake", type="sql", **self._place)
        self._catalog.create_namespace(f"db{rows}")
        self._source = f"{folder}/source{rows}.parquet"
        random = np.random.default_rng(1)
        count = rows // 20
        old, new = random.choice(rows, count, replace=False), np.arange(rows, rows + count)
        pq.write_table(rows_of(random.permutation(np.concatenate([old, new]))), self._source)

    def create(self, name: str, mode: str) -> str:
        """Create a table of all rows, whose changes have this mode; return its name."""
        modes = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")}
        table = self._catalog.create_table(
            f"db{self.rows}.{name}",
            "id BIGINT, v INT, a DOUBLE, s STRING",
            properties={"format-version": "2", **modes},
        )
        size = self.rows // self.files
        for i in range(self.files):
            table.append(rows_of(np.arange(i * size, (i + 1) * size)))
        return table.name

    def measure(self, contestant: str, name: str, act: str) -> Measured:
        """Measure a change in a new process."""
        script = _SCRIPT.format(
            module=_MODULES[contestant], name=name, source=self._source, act=act, **self._place
        )
        command = [sys.executable, "-W", "ignore", "-c", script]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return Measured(*json.loads(done.stdout))


def compare(scale: float = 1) -> list[TextTable]:
    """Measure upserts and deletes, by us in both modes."""
    text = TextTable("what", title="row-level changes without Spark")
    for column in ("ours", "CPU", "memory", "PyIceberg", "CPU", "memory", "ratio", "at most"):
        text.add_column(column, justify="right")
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        for rows, files in ((ROWS // 10, FILES // 10), (ROWS, FILES)):
            tables = Tables(folder, round(rows * scale), files)
            theirs = tables.create("theirs", "copy-on-write") if rows < ROWS else None
            for mode in ("copy-on-write", "merge-on-read"):
                ours = tables.create(mode.replace("-", "_"), mode)
                share = f"{tables.rows // 1000:,}"
                delete = _DELETE.format(first=1000, last=1000 + tables.rows // 1000)
                for what, act in (
                    (f"upsert of {tables.rows // 10:,} rows into", _UPSERT),
                    (f"delete of {share} rows of", delete),
                ):
                    results = {"ours": tables.measure("ours", ours, act)}
                    if theirs is not None and mode == "copy-on-write":
                        results["PyIceberg"] = tables.measure("PyIceberg", theirs, act)
                    limit = AT_MOST["time"] if what.startswith("upsert") else None
                    line = f"{what} {tables.rows:,} in {files} files, {mode}"
                    text.add_row(line, *_cells(results, limit))
    return [text]


def _cells(results: Mapping[str, Measured], limit: float | None) -> list[str]:
    cells = []
    for contestant in _MODULES:
        measured = results.get(contestant)
        cells += (
            ["", "", ""]
            if measured is None
            else [
                f"{measured.seconds:.2f} s",
                f"{measured.cpu:.2f} s",
                f"{measured.mebibytes:.0f} MiB",
            ]
        )
    if "PyIceberg" not in results:
        return [*cells, "", f"{AT_MOST['memory']} MiB"]
    ratio = results["ours"].cpu / results["PyIceberg"].cpu
    return [*cells, f"{ratio:.2f}", "" if limit is None else f"{limit:.2f}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1)
    for table in compare(parser.parse_args().scale):
        Console(width=150).print(table)
