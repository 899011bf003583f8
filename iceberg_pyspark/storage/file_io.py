"""The interface of stores: operations on files.

Implementations: `local.py` (POSIX), `object_store_io.py` (object stores), `fsspec_io.py` (HTTP and
others), `memory.py`; `open_storage.py` chooses one by location. A location is the string in the
metadata (`file:/a/b`, `/a/b`, `s3://bucket/key`) and is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A listed file; `modified_ms` None where the store does not tell."""

    location: str
    size: int
    modified_ms: int | None


class FileIO(Protocol):
    """Reads, exclusive creates and deletes of whole files; plain data, so that it pickles.

    Every failure is a `StorageError` that names the location; a missing file is one too. The parent
    folders of a written file are made where the store has folders.
    """

    def open_input(self, location: str) -> BinaryIO:
        """A seekable stream; the caller closes it."""
        ...

    def read_bytes(self, location: str) -> bytes:
        """The whole file."""
        ...

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`; `StorageError` if the file is shorter."""
        ...

    def size(self, location: str) -> int:
        """Size in bytes."""
        ...

    def exists(self, location: str) -> bool:
        """Whether the file is there."""
        ...

    def open_output(self, location: str) -> BinaryIO:
        """A stream to a new file; the file is complete once closed.

        Raises `FileAlreadyExistsError` where a file of that name is there.
        """
        ...

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        Of several racing callers exactly one succeeds, and no reader sees a part of it. A store
        that knows that the file is not there and will not come raises `FileNotWrittenError`; any
        other error leaves that open, and so does `FileAlreadyExistsError` where the store repeats
        requests: who must know compares the bytes.
        """
        ...

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file; only for hints that may be lost."""
        ...

    def delete(self, location: str) -> None:
        """Delete a file; one that is not there is no error."""
        ...

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """All files below a folder, recursively; nothing if the folder is not there."""
        ...
