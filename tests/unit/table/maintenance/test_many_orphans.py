"""A million orphan files of a table are found and deleted in bounded memory."""

from __future__ import annotations

import subprocess
import sys

from tests.support.parameters import cases

GIB = 1 << 30
PROGRAM = """
import sys
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileInfo
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.table import Table
from tests.support.peak_memory import peak_bytes
from tests.support.commit_tables import commit_table
from tests.support.hooked_storage import HookedFileIO

count, needed_count, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
t = commit_table(location="mem://wh/t")
UUIDS = "1b4e28ba-2fa1-11d2" * 2
PARTS = "abcdefg"


def needed_location(i):
    return f"mem://wh/t/data/part={PARTS[i % 7]}/00001-{i}-{UUIDS}-00001.parquet"


for start in range(0, needed_count, 50_000):
    files = tuple(
        DataFile(file_path=needed_location(i), record_count=1, file_size_in_bytes=700)
        for i in range(start, min(start + 50_000, needed_count))
    )
    loaded = t.catalog.load_table(t.loaded.identifier)
    commit_action(t.catalog, loaded, t.io, AppendFiles(data_files=files))

is_deleted = bytearray(count)


class ManyFiles(HookedFileIO):
    def list_files(self, prefix):
        for i in range(max(count, needed_count)):
            if i < count:
                name = f"part={PARTS[i % 7]}/00000-{i}-{UUIDS}-00001.parquet"
                yield FileInfo(location=f"{prefix}/data/{name}", size=1, modified_ms=0)
            if i < needed_count:
                yield FileInfo(location=needed_location(i), size=1, modified_ms=0)
        for info in t.io.list_files(prefix):
            # the removal asks for the store's time by a file of its own
            is_young = info.location.endswith(".tmp")
            modified_ms = None if is_young else 0
            yield FileInfo(location=info.location, size=info.size, modified_ms=modified_ms)

    def delete(self, location):
        if location.endswith(".tmp"):
            return t.io.delete(location)
        start, number = location.rpartition("/")[2].split("-")[:2]
        # a needed file, or a second deletion of a file
        assert start == "00000" and not is_deleted[int(number)], location
        is_deleted[int(number)] = 1


class InBulk(ManyFiles):
    def files_per_request(self, location):
        return 1000

    def delete_files(self, locations):
        assert len(locations) <= 1000
        for location in locations:
            self.delete(location)
        return {}


io = (InBulk if kind == "bulk" else ManyFiles)(t.io, lambda *_: None)
table = Table(t.catalog, t.catalog.load_table(t.loaded.identifier), io=io)
result = table.maintenance().remove_orphan_files(dry_run=kind == "dry_run")
assert len(result.orphan_file_locations) == count
assert not any("/00001-" in location for location in result.orphan_file_locations)
assert result.failed_files_count == 0
assert result.deleted_files_count == sum(is_deleted) == (0 if kind == "dry_run" else count)
print(peak_bytes())
"""


@cases(
    ("count", "needed_count", "kind"),
    fast=[(10_000, 2000, "delete")],
    nightly=[(1_000_000, 1, "dry_run"), (1_000_000, 1, "delete"), (1_000_000, 200_000, "bulk")],
)
def test_memory_is_bounded(count: int, needed_count: int, kind: str) -> None:
    """The result is as large as possible: it has all files that the table does not need."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(count), str(needed_count), kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GIB
