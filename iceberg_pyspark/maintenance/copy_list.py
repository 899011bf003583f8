"""Stores the list of files to copy and their targets, in bounded memory.

The paths of a table with a million files take hundreds of megabytes, and a file may be in many
manifests, so the pairs are stored in a temporary SQLite database, which is removed with the
process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iceberg_pyspark.maintenance.temporary_database import TemporaryDatabase

_CREATE = "CREATE TABLE copy (target TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID"


class CopyList(TemporaryDatabase):
    """A store of source and target, one pair per target; a context manager that drops the pairs."""

    def __init__(self) -> None:
        super().__init__(_CREATE)

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add pairs of source and target; a known target keeps its source."""
        self._db.executemany("INSERT OR IGNORE INTO copy (source, target) VALUES (?, ?)", pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._db.execute("SELECT source, target FROM copy ORDER BY target")
