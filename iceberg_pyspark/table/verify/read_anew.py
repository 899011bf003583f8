"""Wraps a store so that no file decoded earlier is used.

Decoded files are cached by name for equal stores. A verification must read the present content of
the files, so its store is equal to no other store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from iceberg_pyspark.storage.file_io import FileInfo, FileIO


class ReadAnew:
    """The same store with another identity; decoded files are cached within one verification."""

    def __init__(self, io: FileIO) -> None:
        self._io = io

    def open_input(self, location: str) -> BinaryIO:
        """See `FileIO`."""
        return self._io.open_input(location)

    def read_bytes(self, location: str) -> bytes:
        """See `FileIO`."""
        return self._io.read_bytes(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """See `FileIO`."""
        return self._io.read_range(location, offset, length)

    def size(self, location: str) -> int:
        """See `FileIO`."""
        return self._io.size(location)

    def exists(self, location: str) -> bool:
        """See `FileIO`."""
        return self._io.exists(location)

    def open_output(self, location: str) -> BinaryIO:
        """See `FileIO`."""
        return self._io.open_output(location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """See `FileIO`."""
        self._io.create_exclusive(location, data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """See `FileIO`."""
        self._io.write_bytes(location, data)

    def delete(self, location: str) -> None:
        """See `FileIO`."""
        self._io.delete(location)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """See `FileIO`."""
        return self._io.list_files(prefix)
