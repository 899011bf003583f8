"""What a commit of deleted rows holds in memory: the results of all tasks, and their bitmaps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.peak_memory import peak_bytes

FILES, ROWS_OF_FILE = 1000, 100_000

COMMIT = """
import sys
from array import array
from random import Random
from pyroaring import BitMap64
from iceberg_pyspark.spark.data_source.change_writer import ChangesOfTask
from iceberg_pyspark.table.commits.row_deletes import write_row_deletes
from iceberg_pyspark.table.row_level.change_task import Op, TaskChanges
from iceberg_pyspark.table.row_level.touched_rows import unite
from tests.unit.table.row_level.test_memory_of_deletes import FILES, ROWS_OF_FILE, report
from iceberg_pyspark import load_catalog
from iceberg_pyspark.planning.scan_tasks import ScanTask

version, folder = sys.argv[1:]
catalog = load_catalog("memory", type="memory", warehouse=folder)
catalog.create_namespace("db")
table = catalog.create_table("db.t", "id BIGINT", properties={"format-version": version})
# One row of sixteen, where a bitmap has the most bytes for a row.
rows = Random(1).sample(range(16 * ROWS_OF_FILE), ROWS_OF_FILE)
positions = BitMap64(array("Q", rows)).serialize()
paths = [f"{folder}/db/t/data/{i:05d}-{i}-0a1b2c3d-00001.parquet" for i in range(FILES)]
results = [
    ChangesOfTask.of(
        TaskChanges(
            data_files=(),
            removed_positions={path: positions for path in paths[i : i + 10]},
            unchanged_positions={},
            duplicate_match=None,
            counts={Op.DELETE: 10 * ROWS_OF_FILE},
        )
    )
    for i in range(0, FILES, 10)
]
removed = unite(result.changes for result in results).removed_positions
files = {
    path: ScanTask(
        file_path=path,
        file_format="parquet",
        file_size_in_bytes=10**8,
        record_count=16 * ROWS_OF_FILE,
        start=0,
        length=10**8,
        spec_id=0,
        partition=(),
        data_sequence_number=1,
        first_row_id=None,
        deletes=(),
    )
    for path in paths
}
deletes = write_row_deletes("db.t", table.metadata, table.io, removed, files, write_id="w")
report(sum(f.record_count for f in deletes.delete_files))
"""


def report(rows: int) -> None:
    """Print how many rows were deleted, and the peak of this process in MiB."""
    sys.stdout.write(f"{rows} {peak_bytes() >> 20}\n")


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["2", "3"])
def test_a_hundred_million_deleted_rows_fit_into_a_gibibyte(version: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMIT, version, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows, mebibytes = map(int, done.stdout.split())
    assert rows == FILES * ROWS_OF_FILE
    assert mebibytes < 1024
