"""Files that may be deleted unless something needs them.

The paths of a table with a million files take hundreds of megabytes, so they are stored in an
unnamed temporary SQLite database: in memory up to a fixed size, on disk beyond it, removed with the
process. Files are identified by a digest of the path, in which `file:/x` and `/x`, or `s3a` and
`s3`, are equal.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.maintenance.temporary_database import TemporaryDatabase
from iceberg_pyspark.storage.local import is_local
from iceberg_pyspark.storage.places import normalized_location

_DIGEST_BYTES = 16
_AT_ONCE = 1000
_CREATE = (
    "CREATE TABLE file (path BLOB PRIMARY KEY, location BLOB NOT NULL, kind INTEGER NOT NULL,"
    " elsewhere BLOB) WITHOUT ROWID"
)


class CandidateFiles(TemporaryDatabase):
    """Locations by what kind of file each is; a context manager that drops them.

    Of one path, in whatever store, only one candidate is held.
    """

    def __init__(self) -> None:
        super().__init__(_CREATE)

    def add(self, locations: Iterable[str], kind: int = 0) -> None:
        """Take in files; one that is known stays what it is."""
        self._db.executemany(
            "INSERT OR IGNORE INTO file VALUES (?, ?, ?, NULL)",
            ((path, _encoded(location), kind) for path, location in _paths_of(locations)),
        )

    def need(self, locations: Iterable[str]) -> None:
        """Take out files that something needs, whatever the spelling and the store."""
        self._db.executemany(
            "DELETE FROM file WHERE path = ?", ((path,) for path, _ in _paths_of(locations))
        )

    def need_in_store(self, locations: Iterable[str], is_here: Callable[[str], bool]) -> None:
        """The same, of candidates that are all in one store, which `is_here` knows.

        One of the same path that is needed in another store stays, marked with that location.
        """
        here: list[tuple[bytes]] = []
        there: list[tuple[bytes, bytes]] = []
        for path, location in _paths_of(locations):
            if is_here(location):
                here.append((path,))
            else:
                there.append((_encoded(location), path))
        self._db.executemany("DELETE FROM file WHERE path = ?", here)
        self._db.executemany("UPDATE file SET elsewhere = ? WHERE path = ?", there)

    def drop_below(self, folder: str) -> None:
        """Take out everything below a folder, spelled as the candidates are."""
        start = _encoded(folder.rstrip("/") + "/")
        self._db.execute("DELETE FROM file WHERE substr(location, 1, ?) = ?", (len(start), start))

    def elsewhere(self) -> Iterator[tuple[str, str]]:
        """Candidates of which the path is needed in another store, and the location there."""
        cursor = self._db.execute("SELECT location, elsewhere FROM file WHERE elsewhere NOT NULL")
        for location, other in cursor:
            yield _decoded(location), _decoded(other)

    def drop_elsewhere(self) -> None:
        """Take those out."""
        self._db.execute("DELETE FROM file WHERE elsewhere NOT NULL")

    def counts(self) -> Counter[int]:
        """The number of files of each kind."""
        cursor = self._db.execute("SELECT kind, count(*) FROM file GROUP BY kind")
        return Counter(dict(cursor.fetchall()))

    def batches(self) -> Iterator[tuple[int, list[str]]]:
        """All of them, some of one kind at a time, in an order of no meaning."""
        for kind in sorted(self.counts()):
            cursor = self._db.execute("SELECT location FROM file WHERE kind = ?", (kind,))
            while rows := cursor.fetchmany(_AT_ONCE):
                yield kind, [_decoded(location) for (location,) in rows]


def _paths_of(locations: Iterable[str]) -> Iterator[tuple[bytes, str]]:
    """The digest of each location's path; what is no location is no file's and left out."""
    for location in locations:
        try:
            path = _path(location)
        except StorageError:
            continue
        yield blake2b(_encoded(path), digest_size=_DIGEST_BYTES).digest(), location


def _path(location: str) -> str:
    """The path of a location in its store, with links to local folders followed."""
    folder, _, name = location.rpartition("/")
    if name in ("", ".", ".."):
        # no file's
        return _folder_path(location)
    return f"{_folder_path(folder)}/{name}"


@lru_cache(maxsize=16_384)
def _folder_path(folder: str) -> str:
    """The path of a folder; many files have the same."""
    _, _, rest = normalized_location(f"{folder}/x", keep_empty=False).partition("://")
    path = posixpath.dirname(f"/{rest.partition('/')[2]}")
    return os.path.realpath(path) if is_local(folder) else path


def _encoded(text: str) -> bytes:
    # names of local files may be no text
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
