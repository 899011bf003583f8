"""Deletes many files of a table that continues to exist, but only the table's own files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Literal

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.own_folders import OwnFolders

DeletedFile = Literal["deleted", "outside", "failed"]
DEFAULT_THREADS = 16
_FILES_AT_ONCE = 25
"""The number of files per task: a task for each file would cost more than its deletion."""
_QUICK_SECONDS = 0.0005

_log = logging.getLogger(__name__)


def deleting_threads(max_concurrent_deletes: int | None) -> int:
    """Return the number of deleting threads; raise `InvalidRequestError` if it is below 1."""
    if max_concurrent_deletes is None:
        return DEFAULT_THREADS
    if max_concurrent_deletes < 1:
        raise InvalidRequestError(
            f"max_concurrent_deletes must be at least 1, got {max_concurrent_deletes}"
        )
    return max_concurrent_deletes


class FileDeletion:
    """A deleter of unreferenced files; a context manager that waits for its threads.

    The calling thread deletes alone as long as a file takes less than half a millisecond on
    average, as on a local disk, where threads only wait for each other. Threads delete in a slower
    store.
    """

    def __init__(self, io: FileIO, own: OwnFolders, threads: int) -> None:
        self._io = io
        self._own = own
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="delete-files")
        self._count = 0
        self._seconds = 0.0

    def __enter__(self) -> FileDeletion:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)

    def delete(self, locations: Iterable[str]) -> Counter[DeletedFile]:
        """Delete the files; return the numbers of deleted, outside and failed files.

        Files outside the table's own folders are kept.
        """
        chunks = iter(partial(_next_chunk, iter(locations)), [])
        counts: Counter[DeletedFile] = Counter()
        while self._is_quick() and (chunk := next(chunks, None)) is not None:
            start = perf_counter()
            counts += _delete(self._io, self._own, chunk)
            self._seconds += perf_counter() - start
            self._count += len(chunk)
        return sum(self._pool.map(partial(_delete, self._io, self._own), chunks), counts)

    def _is_quick(self) -> bool:
        return self._seconds <= _QUICK_SECONDS * self._count


def _next_chunk(locations: Iterator[str]) -> list[str]:
    return list(islice(locations, _FILES_AT_ONCE))


def _delete(io: FileIO, own: OwnFolders, locations: Sequence[str]) -> Counter[DeletedFile]:
    counts: Counter[DeletedFile] = Counter()
    for location in locations:
        if not own.owns(location):
            counts["outside"] += 1
            continue
        try:
            io.delete(location)
        except StorageError as e:
            _log.warning("an unneeded file could not be deleted: %s", e)
            counts["failed"] += 1
        else:
            counts["deleted"] += 1
    return counts
