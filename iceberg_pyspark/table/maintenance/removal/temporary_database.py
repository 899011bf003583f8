"""Stores paths in a temporary SQLite database, for more paths than fit into memory.

The database has no name: SQLite keeps it in memory up to a fixed size, on disk beyond it, and
removes it with the process. `CopyList` is such a database of files to copy: the paths of a table
with a million files take hundreds of megabytes, and a file may be in many manifests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import TypeVar

Database = TypeVar("Database", bound="TemporaryDatabase")

_CACHE_KIB = 64 * 1024
_CREATE_COPIES = "CREATE TABLE copy (target TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID"


class TemporaryDatabase:
    """A temporary database with one table; as a context manager, it drops the table at the end."""

    def __init__(self, create: str) -> None:
        """Create the database with one table; `create` is its CREATE TABLE statement."""
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.execute(create)
        self._db.execute("BEGIN")

    def __enter__(self: Database) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()


class CopyList(TemporaryDatabase):
    """A store of source and target, one pair per target; a context manager that drops the pairs."""

    def __init__(self) -> None:
        super().__init__(_CREATE_COPIES)

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add pairs of source and target; a known target keeps its source."""
        self._db.executemany("INSERT OR IGNORE INTO copy (source, target) VALUES (?, ?)", pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._db.execute("SELECT source, target FROM copy ORDER BY target")
