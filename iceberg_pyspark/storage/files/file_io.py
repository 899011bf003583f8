"""The interface of file stores, deletion of many files, and names of temporary files.

Implementations: `local.py` (POSIX), `storage/objects/object_store_io.py` (object stores),
`storage/hdfs_io.py` (HDFS), `storage/fsspec_io.py` (WebDAV, SFTP and others), `memory_files.py`;
`storage/open_storage.py` selects one by location. A location is the string in the metadata
(`file:/a/b`, `/a/b`, `s3://bucket/key`) and is never rewritten.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, runtime_checkable

from iceberg_pyspark.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A listed file; `modified_ms` and `is_link` are None if the store does not report them.

    A symbolic link in the local file system has the size and time of its target.
    """

    location: str
    size: int
    modified_ms: int | None
    is_link: bool | None = None


class FileIO(Protocol):
    """Reads, exclusive creates and deletes of whole files; holds plain data, so it can be pickled.

    Every failure, including a missing file, is a `StorageError` that names the location. Missing
    parent folders of a written file are created if the store has folders.
    """

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        ...

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        ...

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        ...

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        ...

    def exists(self, location: str) -> bool:
        """Return whether the file exists."""
        ...

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file; the file is complete when the stream is closed.

        A store raises `FileAlreadyExistsError` if the file exists. An object store, where a look
        costs a request, looks only if the name contains no UUID; the UUID must be one that the
        caller has made for the name, as the store would replace a file with that name.
        """
        ...

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        If several callers race, exactly one succeeds, and no reader sees a partial file. An object
        store is not tested for this if the name contains a UUID, as only one caller has such a
        name. A store that knows that the file does not exist and will not appear raises
        `FileNotWrittenError`. After any other error the file may or may not exist. The same is true
        of `FileAlreadyExistsError` if the store repeats requests; a caller that must know compares
        the bytes.
        """
        ...

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file; only for hints whose loss does no harm."""
        ...

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        ...

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively; nothing if the folder does not exist."""
        ...


def outside_file(location: str, offset: int, length: int, size: int | None = None) -> StorageError:
    """Return the error for a range of bytes that the file does not have; `size` is its size."""
    of_size = "" if size is None else f" of {size} bytes"
    return StorageError(
        f"cannot read {location}: bytes {offset} to {offset + length} are outside the file{of_size}"
    )


@runtime_checkable
class BulkDeletion(Protocol):
    """A `FileIO` that may delete several files with one request."""

    def files_per_request(self, location: str) -> int:
        """Return how many files of a location's store one request deletes; 1 if it cannot."""
        ...

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        """Delete files; return those that could not be deleted, with the reason.

        A missing file is not an error. A file with an error may be deleted if the answer was lost.
        """
        ...


def files_per_request(io: FileIO, location: str) -> int:
    """Return how many files of a location's store one request deletes; 1 if it cannot."""
    return io.files_per_request(location) if isinstance(io, BulkDeletion) else 1


def delete_files(io: FileIO, locations: Sequence[str]) -> dict[str, StorageError]:
    """Delete files in any store; return those that could not be deleted, with the reason.

    A missing file is not an error.
    """
    if isinstance(io, BulkDeletion):
        return io.delete_files(locations)
    failures: dict[str, StorageError] = {}
    for location in locations:
        try:
            io.delete(location)
        except StorageError as e:
            failures[location] = e
    return failures


_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_FILE = re.compile(rf"\.{_UUID}\.tmp")
_FOLDER = re.compile(f"writing-{_UUID}")


def temporary_name() -> str:
    """Return a new hidden file name, for a file that later gets its final name."""
    return f".{uuid.uuid4()}.tmp"


def writing_folder_name() -> str:
    """Return a new name of a folder for the files of one write, including its temporary files."""
    return f"writing-{uuid.uuid4()}"


def without_temporary(names: Sequence[str]) -> Sequence[str]:
    """Return the names of a path up to the first name that only a write of this package uses.

    >>> without_temporary(["metadata", ".1b4e28ba-2fa1-11d2-883f-0016d3cca427.tmp"])
    ['metadata']
    >>> without_temporary(["data", "writing-1b4e28ba-2fa1-11d2-883f-0016d3cca427", "_other", "a"])
    ['data']
    >>> without_temporary([".tmp", "_writing"])
    ['.tmp', '_writing']
    """
    if _FILE.fullmatch(names[-1]):
        names = names[:-1]
    for i, name in enumerate(names):
        if _FOLDER.fullmatch(name):
            return names[:i]
    return names
