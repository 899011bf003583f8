"""Wraps a store so that no file decoded earlier is used.

Decoded files are cached by name for equal stores. A verification must read the present content of
the files, so its store is equal to no other store.
"""

from __future__ import annotations

from typing import Any, cast

from iceberg_pyspark.storage.files.file_io import FileIO


def read_anew(io: FileIO) -> FileIO:
    """Return the same store with another identity; it caches decoded files of its own."""
    return cast("FileIO", _ReadAnew(io))


class _ReadAnew:
    def __init__(self, io: FileIO) -> None:
        self._io = io

    def __getattr__(self, name: str) -> Any:
        return getattr(self._io, name)
