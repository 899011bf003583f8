"""Files in the memory of this process: a complete store for tests and for short-lived tables.

It follows the same contract as every other store (`tests/support/file_io_contract.py`). Any string
is a location; nothing is normalised. The store cannot be pickled, because its files exist only in
this process.

A catalog of type `memory` opens the store of its warehouse, `memory://<name>`, for the whole
process (`open_process_memory`). A location alone never opens one: a table that is read from
elsewhere must not name the memory of this process.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from typing import BinaryIO

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    InvalidRequestError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file

MEMORY_SCHEME = "memory"
"""The scheme of locations in the memory of a process: `memory://<name>/<path>`."""

# The process is in the key because a forked process has a copy, whose files nobody else sees.
_process_memories: dict[tuple[int, str], MemoryFileIO] = {}


class MemoryFileIO:
    """Files by location in a dict; thread-safe. `modified_ms` of a listed file is always None."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryFileIO({len(self._files)} files)"

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        return io.BytesIO(self.read_bytes(location))

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        try:
            return self._files[location]
        except KeyError:
            raise StorageError(f"cannot read {location}: no such file") from None

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        data = self.read_bytes(location)
        if offset < 0 or length < 0 or offset + length > len(data):
            raise outside_file(location, offset, length, len(data))
        return data[offset : offset + length]

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        return len(self.read_bytes(location))

    def exists(self, location: str) -> bool:
        """Return whether the file exists."""
        return location in self._files

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file, which appears when the stream is closed."""
        if location in self._files:
            raise FileAlreadyExistsError(f"cannot create {location}: it exists already")
        return _MemoryOutput(self, location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`."""
        with self._lock:
            if location in self._files:
                raise FileAlreadyExistsError(f"cannot create {location}: it exists already")
            self._files[location] = bytes(data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        with self._lock:
            self._files[location] = bytes(data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        with self._lock:
            self._files.pop(location, None)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, sorted by name."""
        folder = prefix.rstrip("/") + "/"
        with self._lock:
            files = sorted((name, len(data)) for name, data in self._files.items())
        for name, size in files:
            if name.startswith(folder):
                yield FileInfo(location=name, size=size, modified_ms=None)


def is_memory(location: str) -> bool:
    """Return whether a location is in the memory of a process.

    >>> is_memory("memory://w/t"), is_memory("/memory"), is_memory("memory:/w")
    (True, False, False)
    """
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme.lower() == MEMORY_SCHEME


def open_process_memory(warehouse: str) -> MemoryFileIO:
    """Return the store of a warehouse `memory://<name>`, which this process keeps until it ends.

    Raises `InvalidRequestError` for a warehouse without a name.
    """
    name = _memory_name(warehouse)
    if not name:
        raise InvalidRequestError(f"warehouse {warehouse}: it has no name; write memory://<name>")
    return _process_memories.setdefault((os.getpid(), name), MemoryFileIO())


def process_memory(location: str) -> MemoryFileIO:
    """Return the store of a location; raise `StorageError` if no catalog has opened it."""
    store = _process_memories.get((os.getpid(), _memory_name(location)))
    if store is None:
        raise StorageError(
            f"{location}: refused, because scheme '{MEMORY_SCHEME}' is not supported outside of "
            "the process that has opened a catalog of type memory with this warehouse; use a "
            "folder or an object store for tables that several processes share"
        )
    return store


def check_tasks_reach(location: str) -> None:
    """Raise `UnsupportedFeatureError` for a location that other processes, as of tasks, lack."""
    if is_memory(location):
        raise UnsupportedFeatureError(
            f"{location}: files of {MEMORY_SCHEME}:// are in the memory of one process, and "
            "Spark's tasks run in others; give the catalog a folder or an object store as its "
            "warehouse, or read and write the table without Spark"
        )


def _memory_name(location: str) -> str:
    return location.partition("://")[2].partition("/")[0]


class _MemoryOutput(io.BytesIO):
    def __init__(self, store: MemoryFileIO, location: str) -> None:
        super().__init__()
        self._store = store
        self._location = location

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._store.create_exclusive(self._location, data)
