"""A store confined to a table's own folders.

Metadata is data that somebody else wrote: a manifest may name `/etc/passwd`, a neighbour's bucket
or `<table>/../other`. Here such a location is refused before anything is opened. Spellings of one
place (`s3a` for `s3`, `file:/x` for `/x`) count as equal; local links are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.file_io import FileInfo, FileIO
from iceberg_pyspark.storage.places import is_below

ALLOW_OUTSIDE_LOCATIONS = "read.allow-outside-locations"
"""The option that lifts the restriction; never taken from the table's own properties."""


@dataclass(frozen=True, slots=True)
class RestrictedFileIO:
    """Passes on to `io` what lies under one of the `allowed` folders and refuses the rest.

    `hint` names the table in the message.
    """

    io: FileIO
    allowed: tuple[str, ...]
    hint: str

    def check(self, location: str) -> None:
        """Raise `StorageError` if the location is outside the allowed folders."""
        # nearly always it is plainly inside, and a plan asks for every file
        if not any(doubt in location for doubt in ("/.", "%")):
            for folder in self.allowed:
                if location.startswith(folder) and location[len(folder.rstrip("/")) :][:1] == "/":
                    return
        if any(is_below(location, folder) for folder in self.allowed):
            return
        raise StorageError(
            f"{location}: refused, because {self.hint} may only use files under "
            f"{', '.join(self.allowed)}; if you trust whoever wrote its metadata, set the option "
            f"{ALLOW_OUTSIDE_LOCATIONS} to true"
        )

    def open_input(self, location: str) -> BinaryIO:
        """A seekable stream; the caller closes it."""
        self.check(location)
        return self.io.open_input(location)

    def read_bytes(self, location: str) -> bytes:
        """The whole file."""
        self.check(location)
        return self.io.read_bytes(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`; `StorageError` if the file is shorter."""
        self.check(location)
        return self.io.read_range(location, offset, length)

    def size(self, location: str) -> int:
        """Size in bytes."""
        self.check(location)
        return self.io.size(location)

    def exists(self, location: str) -> bool:
        """Whether the file is there."""
        self.check(location)
        return self.io.exists(location)

    def open_output(self, location: str) -> BinaryIO:
        """A stream to a new file; the file is complete once closed."""
        self.check(location)
        return self.io.open_output(location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`."""
        self.check(location)
        self.io.create_exclusive(location, data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        self.check(location)
        self.io.write_bytes(location, data)

    def delete(self, location: str) -> None:
        """Delete a file; one that is not there is no error."""
        self.check(location)
        self.io.delete(location)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """All files below a folder, recursively."""
        self.check(prefix)
        return self.io.list_files(prefix)
