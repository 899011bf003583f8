"""Decoded files: a limit of the memory that one may take, and a cache for later tasks or plans.

A compressed file, a wrong length or a schema with wide nulls can expand a few bytes to gigabytes.
The limit grows with the size of the file: tables of realistic size can be read, and a file of one
mebibyte never takes more than one gibibyte. Costs are upper bounds, computed before memory is
allocated.

One delete file applies to many data files, and one manifest serves many plans. Both are immutable,
so entries of the cache never become outdated; the least recently used ones are removed when the
total size exceeds the limit. An entry is used only for an equal `FileIO`, so restrictions of a
store still apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.lru_map import LruMap

MEMORY_FLOOR = 512 << 20
"""The memory that any file may take, however small it is."""
MEMORY_PER_BYTE = 128
"""The additional memory for each byte of the stored file."""
COLUMN_BYTES = 1 << 10
"""The memory of a column of a batch in addition to its values."""

_FOUR_BYTE_CHARACTERS = re.compile(rb"[\xf0-\xff]")
_OBJECT_BYTES = 240
_ARRAY_BYTES = 176
_KEY_BYTES = 208
_VALUE_BYTES = 72
_ESCAPE_BYTES = 90


def memory_limit(file_size: int) -> int:
    """Return the bytes of memory that the content of a file of `file_size` bytes may take."""
    return MEMORY_FLOOR + MEMORY_PER_BYTE * file_size


def too_large(where: str, file_size: int) -> InvalidMetadataError:
    """Return the error for a file that exceeds its limit; `where` begins with its location."""
    return InvalidMetadataError(
        f"{where}: decoding it would take more than {memory_limit(file_size):,} bytes of memory, "
        f"the limit for a file of {file_size:,} bytes; it is damaged or malicious"
    )


def check_json_memory(data: bytes, where: str, file_size: int) -> None:
    """Raise `InvalidMetadataError` if parsed JSON might take more memory than its file may."""
    if json_memory(data) > memory_limit(file_size):
        raise too_large(where, file_size)


def json_memory(data: bytes) -> int:
    """Return an upper bound of the bytes that a JSON text and its Python objects take."""
    copies = 3  # the bytes, the text, and the strings in the text
    if not data.isascii():
        # Python stores every character of a text in as many bytes as the widest character needs
        copies = 9 if _FOUR_BYTE_CHARACTERS.search(data) else 5
    return (
        copies * len(data)
        + _OBJECT_BYTES * data.count(b"{")
        + _ARRAY_BYTES * data.count(b"[")
        + _KEY_BYTES * data.count(b":")
        + _VALUE_BYTES * data.count(b",")
        + _ESCAPE_BYTES * data.count(b"\\")
    )


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
