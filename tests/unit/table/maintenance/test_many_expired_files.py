"""A million files of expired snapshots are deleted in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.parameters import cases

GIB = 1 << 30
MAKE = """
import sys
from pathlib import Path
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.frames import append_rows, create_path_table

folder, count, per_snapshot = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
table = create_path_table(
    folder, "id BIGINT", [{"id": 1}], properties={"commit.manifest-merge.enabled": "false"}
)
first = table.refresh().metadata.current_snapshot_id
for start in range(0, count, per_snapshot):
    files = tuple(
        DataFile(
            file_path=f"{table.location}/data/day={i % 28}/00000-{i}-{'1b4e28ba' * 4}.parquet",
            record_count=1,
            file_size_in_bytes=700,
            lower_bounds={1: i.to_bytes(8, "little")},
            upper_bounds={1: i.to_bytes(8, "little")},
        )
        for i in range(start, start + per_snapshot)
    )
    loaded = commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=files))
    table.refresh()
table.manage_snapshots().set_current_snapshot(first).commit()
"""
EXPIRE = """
import sys
from pathlib import Path
from iceberg_pyspark import Table
from tests.support.frames import path_table
from tests.support.hooked_storage import HookedFileIO
from tests.support.peak_memory import peak_bytes

deleted = 0

class ManyFiles(HookedFileIO):
    def delete(self, location):
        global deleted
        if "/data/" in location:
            # none of them is there
            deleted += 1
        else:
            self._io.delete(location)

table = path_table(Path(sys.argv[1]))
table = Table(table.catalog, table.loaded, io=ManyFiles(table.io, lambda *_: None))
done = table.maintenance().expire_snapshots(older_than=2**42, retain_last=1)
count = int(sys.argv[2])
assert done.deleted_data_files_count == deleted == count, (done, deleted)
assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]
print(peak_bytes())
"""


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cases(("count", "per_snapshot"), fast=[(2000, 500)], nightly=[(1_000_000, 50_000)])
def test_memory_is_bounded(tmp_path: Path, count: int, per_snapshot: int) -> None:
    run(MAKE, tmp_path / "t", count, per_snapshot)
    assert int(run(EXPIRE, tmp_path / "t", count)) < GIB
