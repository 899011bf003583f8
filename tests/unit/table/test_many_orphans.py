"""A million files in a table's folder are checked in bounded memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

GIB = 1 << 30
PROGRAM = """
import sys
from iceberg_pyspark.storage.file_io import FileInfo
from iceberg_pyspark.table.table import Table
from tests.support.peak_memory import peak_bytes
from tests.support.commit_tables import commit_table
from tests.support.hooked_storage import HookedFileIO
import pyarrow as pa

t = commit_table(location="mem://wh/t")
Table(t.catalog, t.loaded, io=t.io).append(pa.table({"id": [1], "part": ["a"]}, schema=pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("part", pa.string())])))
count = int(sys.argv[1])

class ManyFiles(HookedFileIO):
    def list_files(self, prefix):
        for i in range(count):
            name = f"day=2026-01-{i % 28:02}/00000-{i}-{'1b4e28ba-2fa1-11d2' * 2}-00001.parquet"
            yield FileInfo(location=f"{prefix}/data/{name}", size=1, modified_ms=0)
        for info in t.io.list_files(prefix):
            yield FileInfo(location=info.location, size=info.size, modified_ms=0)

table = Table(t.catalog, t.loaded, io=ManyFiles(t.io, lambda *_: None))
found = table.maintenance().remove_orphan_files(dry_run=True)
assert len(found.orphan_file_locations) == count
print(peak_bytes())
"""


@pytest.mark.parametrize("count", [10_000, pytest.param(1_000_000, marks=pytest.mark.more)])
def test_memory_is_bounded(count: int) -> None:
    """Every file is an orphan, so that the result is as large as possible."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(count)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GIB
