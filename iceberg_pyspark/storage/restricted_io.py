"""A store that is restricted to what one table may read, write and delete.

Another person may have written a table's metadata: a manifest may name `/etc/passwd`, a neighbour's
bucket or `<table>/../other`. Such a location is refused before anything is opened:

- The table may read files of its own store, as its catalog knows it: files that `add_files` or a
  snapshot of a table brought in lie beside the table, with the same permissions.
- It may write new files below its folders.
- It may delete files in the folders that belong to it according to its catalog, whatever its
  metadata says.

Links of a local file system are resolved for deletes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO, Protocol, runtime_checkable

from iceberg_pyspark.errors import InvalidRequestError, LocationRefusedError, StorageError
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO, delete_files, files_per_request
from iceberg_pyspark.storage.files.places import are_in_store, is_below, is_in_store, store_of
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.store_properties import ALLOW_OUTSIDE_LOCATIONS, RESTRICT_LOCATIONS


class ReadRule(Enum):
    """The places from which a table may read files."""

    OWN_FOLDERS = "own folders"
    OWN_STORE = "own store"
    ANY_STORE = "any store"


def read_rule(options: Mapping[str, str]) -> ReadRule:
    """Return the rule that the options select; without an option, the table's own store."""
    anywhere = bool_property(options, ALLOW_OUTSIDE_LOCATIONS, False)
    is_restricted = bool_property(options, RESTRICT_LOCATIONS, False)
    if anywhere and is_restricted:
        raise InvalidRequestError(
            f"{ALLOW_OUTSIDE_LOCATIONS} and {RESTRICT_LOCATIONS} are both true; set one to false"
        )
    if anywhere:
        return ReadRule.ANY_STORE
    return ReadRule.OWN_FOLDERS if is_restricted else ReadRule.OWN_STORE


@runtime_checkable
class NarrowedFileIO(Protocol):
    """A store that can be reduced to the properties of one location's store."""

    def within(self, location: str) -> FileIO:
        """Return a store that reaches only the store of a location."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictedFileIO:
    """A store that passes permitted operations to `io` and refuses all others.

    `known_location` is a location that the catalog confirms: its scheme and authority are the
    table's store. `folders` are the table's folders according to its metadata; folders in other
    stores count only with `ReadRule.ANY_STORE`. `hint` names the table in messages.
    """

    io: FileIO
    known_location: str
    folders: tuple[str, ...]
    hint: str
    rule: ReadRule = ReadRule.OWN_STORE
    own: OwnFolders = field(default_factory=OwnFolders)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for tasks in other processes, without secrets of stores that are not readable."""
        io = self.io
        if self.rule is not ReadRule.ANY_STORE and isinstance(io, NarrowedFileIO):
            io = io.within(self.known_location)
        return _restrict, (
            *(io, self.known_location, self.folders),
            *(self.hint, self.rule, self.own),
        )

    def check_read(self, location: str) -> None:
        """Raise `LocationRefusedError` if the table may not read the location."""
        match self.rule:
            case ReadRule.OWN_STORE if not is_in_store(location, self.known_location):
                raise LocationRefusedError(
                    f"{location}: refused, because {self.hint} may only read files of its own "
                    f"store, {store_of(self.known_location)} (of its own folders with "
                    f"{RESTRICT_LOCATIONS} true); {self._remedy()}"
                )
            case ReadRule.OWN_FOLDERS if not self._is_in_folders(location):
                raise LocationRefusedError(
                    f"{location}: refused, because {RESTRICT_LOCATIONS} is true and {self.hint} "
                    f"may only read files under {self._folder_texts()}; set it to false for all "
                    f"files of the store, or, {self._remedy()}"
                )

    def check_reads(self, locations: Sequence[str]) -> None:
        """Raise `LocationRefusedError` if the table may not read one of the locations."""
        if self.rule is ReadRule.OWN_STORE and are_in_store(locations, self.known_location):
            return
        for location in locations:
            self.check_read(location)

    def check_write(self, location: str) -> None:
        """Raise `LocationRefusedError` if the table may not write new files at the location."""
        if not self._is_in_folders(location):
            raise LocationRefusedError(
                f"{location}: refused, because {self.hint} may only write files under "
                f"{self._folder_texts()}; keep its location, write.data.path and "
                f"write.metadata.path in one store, or, {self._remedy()}; {RESTRICT_LOCATIONS} "
                "applies to reads"
            )

    def _check_delete(self, location: str) -> None:
        if not self.own.owns(location):
            raise self._outside(location)

    def _outside(self, location: str) -> StorageError:
        folders = ", ".join(self.own.folders) or "none that its catalog knows"
        return StorageError(
            f"{location}: not deleted, because it is outside of the folder of {self.hint} "
            f"({folders})"
        )

    def _is_in_folders(self, location: str) -> bool:
        # a fast path: a plan checks every file, and nearly all are plainly inside
        for folder in self.folders:
            if location.startswith(folder) and self._counts(folder):
                below = location[len(folder.rstrip("/")) :]
                if below[:1] == "/" and not any(d in below for d in ("/.", "//", "%", "\\")):
                    return True
        return any(is_below(location, folder) for folder in self.folders if self._counts(folder))

    def _counts(self, folder: str) -> bool:
        return self.rule is ReadRule.ANY_STORE or is_in_store(folder, self.known_location)

    def _folder_texts(self) -> str:
        return ", ".join(f for f in self.folders if self._counts(f))

    def _remedy(self) -> str:
        return (
            f"if you trust whoever wrote its metadata, set {ALLOW_OUTSIDE_LOCATIONS} to true, for "
            "the catalog, the session or the read"
        )

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        self.check_read(location)
        return self.io.open_input(location)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        self.check_read(location)
        return self.io.read_bytes(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        self.check_read(location)
        return self.io.read_range(location, offset, length)

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        self.check_read(location)
        return self.io.size(location)

    def exists(self, location: str) -> bool:
        """Return whether the file exists."""
        self.check_read(location)
        return self.io.exists(location)

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file; the file is complete when the stream is closed."""
        self.check_write(location)
        return self.io.open_output(location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`."""
        self.check_write(location)
        self.io.create_exclusive(location, data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        self.check_write(location)
        self.io.write_bytes(location, data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        if not self.own.delete(self.io, location):
            raise self._outside(location)

    def files_per_request(self, location: str) -> int:
        """Return how many files of a location's store one request deletes; 1 if it cannot."""
        return files_per_request(self.io, location)

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        """Delete files; return those that were refused or could not be deleted, with the reason.

        All locations are checked before the first file is deleted.
        """
        failures: dict[str, StorageError] = {}
        permitted_locations: list[str] = []
        for location in locations:
            try:
                self._check_delete(location)
            except StorageError as e:
                failures[location] = e
            else:
                permitted_locations.append(location)
        return failures | delete_files(self.io, permitted_locations)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively."""
        self.check_read(prefix)
        return self.io.list_files(prefix)


def _restrict(
    io: FileIO,
    known_location: str,
    folders: tuple[str, ...],
    hint: str,
    rule: ReadRule,
    own: OwnFolders,
) -> RestrictedFileIO:
    return RestrictedFileIO(
        io=io, known_location=known_location, folders=folders, hint=hint, rule=rule, own=own
    )


def store_behind(io: FileIO) -> FileIO:
    """Return the store behind a restricted store, for locations that need no check."""
    return io.io if isinstance(io, RestrictedFileIO) else io


def check_read(io: FileIO, location: str) -> None:
    """Raise `LocationRefusedError` if another program must not read the file for the table."""
    if isinstance(io, RestrictedFileIO):
        io.check_read(location)


def check_reads(io: FileIO, locations: Sequence[str]) -> None:
    """Raise `LocationRefusedError` if another program must not read one of the files."""
    if isinstance(io, RestrictedFileIO):
        io.check_reads(locations)


def check_write(io: FileIO, location: str) -> None:
    """Raise `LocationRefusedError` if another program must not write the file for the table."""
    if isinstance(io, RestrictedFileIO):
        io.check_write(location)
