"""A cache of decoded files for later tasks or plans of this process.

One delete file applies to many data files, and one manifest serves many plans. Both are immutable,
so entries never become outdated; the least recently used ones are removed when the total size
exceeds the limit. An entry is used only for an equal `FileIO`, so restrictions of a store still
apply.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.lru_map import LruMap

Value = TypeVar("Value")


class DecodedCache(Generic[Value]):
    """Values by key, with a total size of at most `max_bytes`; thread-safe."""

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._entries: LruMap[Hashable, tuple[FileIO, Value]] = LruMap(
            max_bytes, lambda entry: size_of(entry[1])
        )

    def get_or_read(self, io: FileIO, key: Hashable, read: Callable[[], Value]) -> Value:
        """Return the cached value, or read the value and cache it if it fits."""
        cached_value = self.get(io, key)
        if cached_value is not None:
            return cached_value
        value = read()
        self.put(io, key, value)
        return value

    def get(self, io: FileIO, key: Hashable) -> Value | None:
        """Return the cached value, or None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None or entry[0] != io else entry[1]

    def put(self, io: FileIO, key: Hashable, value: Value) -> None:
        """Cache a value if it fits."""
        self._entries.put(key, (io, value))
