"""Deletes many files of a table that continues to exist, but only the table's own files."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, groupby, islice
from time import perf_counter
from typing import Literal

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.storage.files.file_io import FileIO, delete_files, files_per_request
from iceberg_pyspark.storage.own_folders import OwnFolders

DeletedFile = Literal["deleted", "outside", "failed"]
DEFAULT_THREADS = 16
_FILES_AT_ONCE = 25
"""The files that a thread deletes one by one; a task for each file would cost more than that."""
_QUICK_SECONDS = 0.0005
_WAITING_PARTS_PER_THREAD = 2

_log = get_logger(__name__)


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

    A store that deletes many files with one request gets such requests, from several threads. In
    other stores the calling thread deletes alone as long as a file takes less than half a
    millisecond on average, as on a local disk, where threads only wait for each other. Threads
    delete in a slower store. `description` names the files in the log.
    """

    def __init__(
        self, io: FileIO, own: OwnFolders, threads: int, description: str = "an unneeded file"
    ) -> None:
        self._io = io
        self._own = own
        self._description = description
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="delete-files")
        self._count = 0
        self._seconds = 0.0

    def __enter__(self) -> FileDeletion:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)

    def delete(self, locations: Iterable[str]) -> Iterator[Counter[DeletedFile]]:
        """Delete the files; yield the numbers of deleted, outside and failed files of each part.

        Files outside the table's own folders are kept. All files are deleted when the iterator
        ends, and none before it is read; `locations` is read only a few requests ahead.
        """
        waiting: deque[Future[Counter[DeletedFile]]] = deque()
        for part in self._parts(locations):
            if not part.in_bulk and self._is_quick():
                start = perf_counter()
                counts = self._delete_one_by_one(part.locations)
                self._seconds += perf_counter() - start
                self._count += len(part.locations)
                yield counts
                continue
            delete = self._delete_in_bulk if part.in_bulk else self._delete_one_by_one
            waiting.append(self._pool.submit(delete, part.locations))
            if len(waiting) >= _WAITING_PARTS_PER_THREAD * self._threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _parts(self, locations: Iterable[str]) -> Iterator[_Part]:
        for _, group in groupby(locations, key=_store_text):
            in_store = iter(group)
            first = next(in_store)
            size = files_per_request(self._io, first)
            in_bulk = size > 1
            all_in_store = chain([first], in_store)
            while part := list(islice(all_in_store, size if in_bulk else _FILES_AT_ONCE)):
                yield _Part(part, in_bulk)

    def _is_quick(self) -> bool:
        return self._seconds <= _QUICK_SECONDS * self._count

    def _delete_one_by_one(self, locations: Sequence[str]) -> Counter[DeletedFile]:
        counts: Counter[DeletedFile] = Counter()
        for location in locations:
            try:
                is_own = self._own.delete(self._io, location)
            except StorageError as e:
                self._log_failure(e)
                counts["failed"] += 1
            else:
                counts["deleted" if is_own else "outside"] += 1
        return counts

    def _delete_in_bulk(self, locations: Sequence[str]) -> Counter[DeletedFile]:
        own_locations = [location for location in locations if self._own.owns(location)]
        failures = delete_files(self._io, own_locations) if own_locations else {}
        for error in failures.values():
            self._log_failure(error)
        failure_count = sum(location in failures for location in own_locations)
        counts: Counter[DeletedFile] = Counter()
        counts["outside"] = len(locations) - len(own_locations)
        counts["failed"] = failure_count
        counts["deleted"] = len(own_locations) - failure_count
        return counts

    def _log_failure(self, error: StorageError) -> None:
        _log.warning("%s could not be deleted: %s", self._description, error)


@dataclass(frozen=True, slots=True)
class _Part:
    """Files of one store, as many as one thread deletes at a time."""

    locations: list[str]
    in_bulk: bool


def _store_text(location: str) -> str:
    """Return the text before the path, which is equal only for files of one store."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else ""
