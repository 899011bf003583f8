"""Commits of rows on a table whose old orphan files other clients remove at the same time.

Files that are in use become old as soon as a commit refers to them, as in a table that has existed
for a long time. So the age of a file protects only the files of commits in progress, and every
other file only the references to it.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterable, Sequence

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.table.maintenance.removal.orphan_files import referenced_files
from tests.support.catalog_processes import EVENTS, MAINTENANCE, MIX, open_catalog
from tests.support.row_commits import Row, RowCommitter

STATISTICS = ("compute_table_stats", "compute_partition_stats")
REMOVALS = ("remove_old_files", "remove_old_files", "remove_old_files")
BESIDE_REMOVALS = (*MIX, *MAINTENANCE, *STATISTICS, *REMOVALS)

_OLD_SECONDS = 4 * 86_400


class CleanedCommitter(RowCommitter):
    """One client; all files of the table are old after each of its operations."""

    def run(self, operation: str) -> None:
        """Run one operation until it is acknowledged, then make the table's files old."""
        super().run(operation)
        self._loaded = self.catalog.load_table(self.identifier)
        # Files of a snapshot that expires meanwhile may be there no more.
        with contextlib.suppress(StorageError):
            for files in referenced_files(self.table.io, self._loaded, set()):
                make_old(files)

    def remove_old_files(self) -> None:
        """Write files that are never committed, as a killed client does, and remove them."""
        orphans = [f.file_path for f in self._write(self._new_rows())[0]]
        make_old(orphans)
        self.table.maintenance().remove_orphan_files()
        assert not any(map(self.table.io.exists, orphans)), orphans


def commit_beside_removals(
    kind: str, folder: str, worker: int, commits: int, operations: Sequence[str]
) -> dict[int, Row]:
    """Run `commits` random operations on rows; return the rows of this worker that remain."""
    committer = CleanedCommitter(open_catalog(kind, folder), EVENTS, worker)
    chance = random.Random(worker)
    committer.run("append")
    for _ in range(commits - 2):
        committer.run(chance.choice(operations))
    committer.run("remove_old_files")
    return committer.rows


def make_old(locations: Iterable[str]) -> None:
    """Set the time of local files back, so that they are older than the default `older_than`."""
    old = time.time() - _OLD_SECONDS
    for location in locations:
        with contextlib.suppress(FileNotFoundError):
            os.utime(location.removeprefix("file:"), (old, old))
