"""The list of files to copy and their targets, in bounded memory.

The paths of a table with a million files take hundreds of megabytes, and a file may be in many
manifests, so the pairs are stored in a temporary SQLite database, which is removed with the
process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from types import TracebackType

_CREATE = "CREATE TABLE copy (target TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID"
_CACHE_KIB = 64 * 1024


class CopyList:
    """Pairs of a source and a target, one for each target; a context manager that drops them."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.execute(_CREATE)
        self._db.execute("BEGIN")

    def __enter__(self) -> CopyList:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._db.close()

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Take in pairs of a source and a target; what is known stays."""
        self._db.executemany("INSERT OR IGNORE INTO copy (source, target) VALUES (?, ?)", pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._db.execute("SELECT source, target FROM copy ORDER BY target")
