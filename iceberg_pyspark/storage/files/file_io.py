"""The interface of file stores.

Implementations: `local.py` (POSIX), `storage/objects/object_store_io.py` (object stores),
`storage/hdfs_io.py` (HDFS), `storage/fsspec_io.py` (WebDAV, SFTP and others), `memory_files.py`;
`storage/open_storage.py` selects one by location. A location is the string in the metadata
(`file:/a/b`, `/a/b`, `s3://bucket/key`) and is never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

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
