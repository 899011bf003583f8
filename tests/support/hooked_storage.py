"""A store that calls a hook around every operation, to inject errors, delays, races or a crash."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import BinaryIO, Literal, TypeAlias, TypeVar

from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO

T = TypeVar("T")
Moment = Literal["before", "after"]
Hook = Callable[[str, str, Moment], None]
"""A function that is called with the operation's name, the location, and the moment."""
PassStep: TypeAlias = Callable[[], None]
"""A function that the process calls at each of its steps; one call does not return."""

_CHANGES = ("create_exclusive", "write_bytes", "delete")


class HookedFileIO:
    """A wrapper of another store that calls the hook before each operation, and after changes."""

    def __init__(self, io: FileIO, hook: Hook) -> None:
        self._io = io
        self._hook = hook

    def around(self, name: str, location: str, call: Callable[[], T]) -> T:
        """Run an operation between its hooks."""
        self._hook(name, location, "before")
        result = call()
        if name in _CHANGES:
            self._hook(name, location, "after")
        return result

    def open_input(self, location: str) -> BinaryIO:
        return self.around("open_input", location, lambda: self._io.open_input(location))

    def read_bytes(self, location: str) -> bytes:
        return self.around("read_bytes", location, lambda: self._io.read_bytes(location))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self.around(
            "read_range", location, lambda: self._io.read_range(location, offset, length)
        )

    def size(self, location: str) -> int:
        return self.around("size", location, lambda: self._io.size(location))

    def exists(self, location: str) -> bool:
        return self.around("exists", location, lambda: self._io.exists(location))

    def open_output(self, location: str) -> BinaryIO:
        return self.around("open_output", location, lambda: self._io.open_output(location))

    def create_exclusive(self, location: str, data: bytes) -> None:
        self.around("create_exclusive", location, lambda: self._io.create_exclusive(location, data))

    def write_bytes(self, location: str, data: bytes) -> None:
        self.around("write_bytes", location, lambda: self._io.write_bytes(location, data))

    def delete(self, location: str) -> None:
        self.around("delete", location, lambda: self._io.delete(location))

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        return self.around("list_files", prefix, lambda: self._io.list_files(prefix))


def once(operation: str, moment: Moment, action: Callable[[], object]) -> Hook:
    """Return a hook that runs `action` the first time the operation reaches the moment."""
    done = False

    def hook(name: str, _location: str, when: Moment) -> None:
        nonlocal done
        if not done and (name, when) == (operation, moment):
            done = True
            action()

    return hook


def killed_at(step: int) -> PassStep:
    """Return a function whose call number `step`, from 1, kills the process as `kill -9` does."""
    passed = 0

    def pass_step() -> None:
        nonlocal passed
        passed += 1
        if passed == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return pass_step


def around_writes(pass_step: PassStep) -> Hook:
    """Return a hook that passes a step before and after each write and deletion.

    No step is needed before a read: to die there is to die after the previous write.
    """

    def hook(name: str, _location: str, _moment: Moment) -> None:
        if name == "open_output" or name in _CHANGES:
            pass_step()

    return hook
