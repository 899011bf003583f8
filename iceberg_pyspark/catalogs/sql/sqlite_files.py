"""Opens the file of an SQLite catalog, including shared and read-only files.

A new database gets a write-ahead log, so readers and a writer do not wait for each other. The
journal mode of an existing database is not changed: other programs, perhaps on other machines, rely
on it.
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
    """A connection to the database at a path, which is made if it is not there.

    `arguments` are those of `sqlite3.connect`. Raises `CatalogError` where a log that nobody may
    touch here holds what the file lacks.
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
        # SQLite would keep a file beside it to share a log, which there is none of
        place = f"file:{quote(path)}?mode=ro&immutable=1"
        connection = sqlite3.connect(place, **{**arguments, "uri": True})
    else:
        connection = sqlite3.connect(path, **arguments)
    return connection


def is_read_only(error: BaseException | None) -> bool:
    """Whether SQLite says that a database can be read and not written."""
    return isinstance(error, sqlite3.OperationalError) and "readonly database" in str(error)


def _begin_with_log(connection: sqlite3.Connection, timeout: float) -> None:
    """Give an empty database its log; processes that race for it all wait until it has one."""
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA page_count").fetchone() == (0,):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            # two who try at once refuse each other without waiting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002 + 0.001 * (os.getpid() % 8))
        else:
            # a file system that cannot share a log has said no, and the database works without
            return


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0


def _can_only_be_read(path: str) -> bool:
    return not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK))


def _has_log_mode(path: str) -> bool:
    """Whether the file's header says so (SQLite, "Database File Format")."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        header = file.read(_READ_VERSION_AT + 1)
        return len(header) > _READ_VERSION_AT and header[_READ_VERSION_AT] == _WAL
    return False
