"""Stores files that may be deleted unless something needs them.

The paths of a table with a million files take hundreds of megabytes, so they are stored in an
unnamed temporary SQLite database: in memory up to a fixed size, on disk beyond it, removed with the
process. Files are identified by a digest of the path; `file:/x` and `/x`, or `s3a` and `s3`, have
the same digest.

Stores paths in a temporary SQLite database, for more paths than fit into memory.

The database has no name: SQLite keeps it in memory up to a fixed size, on disk beyond it, and
removes it with the process. `CopyList` is such a database of files to copy: the paths of a table
with a million files take hundreds of megabytes, and a file may be in many manifests.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TypeVar

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.places import path_in_store

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


_DIGEST_BYTES = 16
_AT_ONCE = 1000
_CREATE = (
    "CREATE TABLE file (path BLOB PRIMARY KEY, location BLOB NOT NULL, kind INTEGER NOT NULL,"
    " elsewhere BLOB) WITHOUT ROWID"
)


class CandidateFiles(TemporaryDatabase):
    """A store of locations and their kind of file; as a context manager, it drops them at the end.

    For each path, whatever its store, only one candidate is kept.
    """

    def __init__(self) -> None:
        super().__init__(_CREATE)

    def add(self, locations: Iterable[str], kind: int = 0) -> None:
        """Add files; a file that was added before keeps its kind."""
        self._db.executemany(
            "INSERT OR IGNORE INTO file VALUES (?, ?, ?, NULL)",
            ((path, _encode(location), kind) for path, location in _paths_of(locations)),
        )

    def need(self, locations: Iterable[str]) -> None:
        """Remove the files that something needs, whatever their spelling and store."""
        self._db.executemany(
            "DELETE FROM file WHERE path = ?", ((path,) for path, _ in _paths_of(locations))
        )

    def need_in_store(self, locations: Iterable[str], is_here: Callable[[str], bool]) -> None:
        """Remove the needed files from candidates in one store, which `is_here` recognizes.

        If another store needs the same path, the candidate stays and is marked with that location.
        """
        here: list[tuple[bytes]] = []
        elsewhere: list[tuple[bytes, bytes]] = []
        for path, location in _paths_of(locations):
            if is_here(location):
                here.append((path,))
            else:
                elsewhere.append((_encode(location), path))
        self._db.executemany("DELETE FROM file WHERE path = ?", here)
        self._db.executemany("UPDATE file SET elsewhere = ? WHERE path = ?", elsewhere)

    def drop_below(self, folder: str) -> None:
        """Remove all files below a folder, which must be spelled like the candidates."""
        start = _encode(folder.rstrip("/") + "/")
        self._db.execute("DELETE FROM file WHERE substr(location, 1, ?) = ?", (len(start), start))

    def elsewhere(self) -> Iterator[tuple[str, str]]:
        """Yield the candidates whose path another store needs, with the location in that store."""
        cursor = self._db.execute("SELECT location, elsewhere FROM file WHERE elsewhere NOT NULL")
        for location, other in cursor:
            yield _decode(location), _decode(other)

    def drop_elsewhere(self) -> None:
        """Remove the candidates whose path another store needs."""
        self._db.execute("DELETE FROM file WHERE elsewhere NOT NULL")

    def counts(self) -> Counter[int]:
        """Return the number of files of each kind."""
        cursor = self._db.execute("SELECT kind, count(*) FROM file GROUP BY kind")
        return Counter(dict(cursor.fetchall()))

    def batches(self) -> Iterator[tuple[int, list[str]]]:
        """Yield all files, some of one kind at a time; those of a batch are in order.

        A local file system deletes files of one folder faster one after the other.
        """
        for kind in sorted(self.counts()):
            cursor = self._db.execute("SELECT location FROM file WHERE kind = ?", (kind,))
            while rows := cursor.fetchmany(_AT_ONCE):
                yield kind, sorted(_decode(location) for (location,) in rows)


def _paths_of(locations: Iterable[str]) -> Iterator[tuple[bytes, str]]:
    """Yield the digest of each location's path; a text that is not a location is left out."""
    for location in locations:
        try:
            path = path_in_store(location)
        except StorageError:
            continue
        yield blake2b(_encode(path), digest_size=_DIGEST_BYTES).digest(), location


def _encode(text: str) -> bytes:
    # names of local files may not be valid text
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
