"""A map of the most recently used entries, for caches of a process that must not grow."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruMap(Generic[Key, Value]):
    """Entries with a total size of at most `max_size`; thread-safe.

    Without `size_of`, each entry has the size 1. A value larger than `max_size` is not kept.
    """

    def __init__(self, max_size: int, size_of: Callable[[Value], int] = lambda _: 1) -> None:
        self.max_size = max_size
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Key) -> Value | None:
        """Return the value, which counts as a use, or None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value) -> None:
        """Keep a value, in place of an earlier one of its key."""
        size = self._size_of(value)
        with self._lock:
            self._size -= self._entries.pop(key, (None, 0))[1]
            if size <= self.max_size:
                self._entries[key] = value, size
                self._size += size
            while self._size > self.max_size:
                self._size -= self._entries.popitem(last=False)[1][1]

    def pop(self, key: Key) -> None:
        """Remove an entry, if there is one."""
        with self._lock:
            self._size -= self._entries.pop(key, (None, 0))[1]

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._size = 0
