"""Stores paths in a temporary SQLite database, for more paths than fit into memory.

The database has no name: SQLite keeps it in memory up to a fixed size, on disk beyond it, and
removes it with the process.
"""

from __future__ import annotations

import sqlite3
from typing import TypeVar

Database = TypeVar("Database", bound="TemporaryDatabase")

_CACHE_KIB = 64 * 1024


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
