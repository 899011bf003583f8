"""A store that calls a hook around every operation, to inject errors, delays, races or a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Literal

from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO

Moment = Literal["before", "after"]
Hook = Callable[[str, str, Moment], None]
"""A function that is called with the operation's name, the location, and the moment."""


class HookedFileIO:
    """A wrapper of another store that calls the hook before and after each operation."""

    def __init__(self, io: FileIO, hook: Hook) -> None:
        self._io = io
        self._hook = hook

    def open_input(self, location: str) -> BinaryIO:
        self._hook("open_input", location, "before")
        return self._io.open_input(location)

    def read_bytes(self, location: str) -> bytes:
        self._hook("read_bytes", location, "before")
        return self._io.read_bytes(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        self._hook("read_range", location, "before")
        return self._io.read_range(location, offset, length)

    def size(self, location: str) -> int:
        self._hook("size", location, "before")
        return self._io.size(location)

    def exists(self, location: str) -> bool:
        self._hook("exists", location, "before")
        return self._io.exists(location)

    def open_output(self, location: str) -> BinaryIO:
        self._hook("open_output", location, "before")
        return self._io.open_output(location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        self._hook("create_exclusive", location, "before")
        self._io.create_exclusive(location, data)
        self._hook("create_exclusive", location, "after")

    def write_bytes(self, location: str, data: bytes) -> None:
        self._hook("write_bytes", location, "before")
        self._io.write_bytes(location, data)
        self._hook("write_bytes", location, "after")

    def delete(self, location: str) -> None:
        self._hook("delete", location, "before")
        self._io.delete(location)
        self._hook("delete", location, "after")

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        self._hook("list_files", prefix, "before")
        return self._io.list_files(prefix)


def once(operation: str, moment: Moment, action: Callable[[], object]) -> Hook:
    """Return a hook that runs `action` the first time the operation reaches the moment."""
    done = False

    def hook(name: str, _location: str, when: Moment) -> None:
        nonlocal done
        if not done and (name, when) == (operation, moment):
            done = True
            action()

    return hook
