"""A store that nothing was decoded from before.

What is decoded is kept for stores that are equal, by the names of files. A verification is to see
what the files have now, so that its store equals no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from iceberg_pyspark.storage.file_io import FileInfo, FileIO


class ReadAnew:
    """The same store by another identity; what is decoded within one verification is kept."""

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
