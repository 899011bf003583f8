"""Opens the file of an SQLite catalog, including shared and read-only files.

A new database gets a write-ahead log, so readers and a writer do not wait for each other. The
journal mode of an existing database is not changed, because other programs, perhaps on other
machines, rely on it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from iceberg_pyspark.errors import CatalogError

_DEFAULT_TIMEOUT_S = 5.0
_READ_VERSION_AT = 19
_WAL = 2


def open_sqlite_file(path: str, arguments: Mapping[str, Any]) -> sqlite3.Connection:
    """Connect to the database at a path; create the database if it does not exist.

    `arguments` are passed to `sqlite3.connect`. Raise `CatalogError` if the database is read-only
    here and its log contains changes that are not in the file.
    """
    if _size(path) == 0:
        connection: sqlite3.Connection = sqlite3.connect(path, **arguments)
        try:
            _begin_with_log(connection, arguments.get("timeout", _DEFAULT_TIMEOUT_S))
        except BaseException:
            connection.close()
            raise
        return connection
    if _can_only_be_read(path) and _has_log_mode(path) and not os.path.exists(f"{path}-shm"):
        if _size(f"{path}-wal"):
            raise CatalogError(
                f"SQLite database {path} can only be read here and has changes in {path}-wal, "
                "which need a file beside it to be read; open it once where its folder can be "
                "written, or copy both files to such a folder"
            )
        # without `immutable`, SQLite would create a file for a shared log, which does not exist
        # here
        place = f"file:{quote(path)}?mode=ro&immutable=1"
        connection = sqlite3.connect(place, **{**arguments, "uri": True})
    else:
        connection = sqlite3.connect(path, **arguments)
    return connection


def is_read_only(error: BaseException | None) -> bool:
    """Return whether SQLite's error says that the database is read-only."""
    return isinstance(error, sqlite3.OperationalError) and "readonly database" in str(error)


def _begin_with_log(connection: sqlite3.Connection, timeout: float) -> None:
    """Set the write-ahead log of an empty database; concurrent processes wait until it is set."""
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA page_count").fetchone() == (0,):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            # two concurrent attempts refuse each other without waiting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002 + 0.001 * (os.getpid() % 8))
        else:
            # a file system that cannot share a log refuses it, and the database works without a log
            return


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0


def _can_only_be_read(path: str) -> bool:
    return not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK))


def _has_log_mode(path: str) -> bool:
    """Return whether the file's header declares a log (SQLite, "Database File Format")."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        header = file.read(_READ_VERSION_AT + 1)
        return len(header) > _READ_VERSION_AT and header[_READ_VERSION_AT] == _WAL
    return False
