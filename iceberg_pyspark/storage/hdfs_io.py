"""Files of HDFS, through a native client for name nodes and data nodes, without Java.

A name node makes each change of names atomically, so only one of several racing renames that may
not replace a file succeeds: a file is created exclusively by renaming it to its final name. The
machine's Hadoop configuration (HADOOP_CONF_DIR) defines which nodes serve a name, and Kerberos.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from iceberg_pyspark.errors import FileAlreadyExistsError, FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file, temporary_name
from iceberg_pyspark.storage.files.places import check_scheme
from iceberg_pyspark.storage.objects.object_streams import UploadStream
from iceberg_pyspark.storage.objects.store_errors import store_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from iceberg_pyspark.storage.hdfs_client import HdfsClient, HdfsInput

_USER = "hdfs.user"
_TICKET = "hdfs.kerberos_ticket"
_BUFFER_BYTES = 1 << 20
_USER_NAME = re.compile(r"[\w.$-]+", re.ASCII)
# the name node refuses these names, or Hadoop's file systems cannot have them in a path
_NO_NAME = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00:]")


def is_hdfs(location: str) -> bool:
    """Return whether a location is in HDFS.

    >>> is_hdfs("hdfs://names:8020/t"), is_hdfs("/t"), is_hdfs("s3://b/t")
    (True, False, False)
    """
    return location[:7].lower() == "hdfs://"


@dataclass(frozen=True, slots=True)
class HdfsFileIO:
    """Reads, exclusive creates and deletes; `properties` are Iceberg's and are never shown."""

    properties: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"HdfsFileIO(properties: {', '.join(sorted(self.properties)) or 'none'})"

    def check_scheme(self, location: str) -> None:
        """Raise `StorageError` unless the installed packages can reach HDFS."""
        with self._errors("open", location):
            self._place(location)

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        with self._errors("read", location):
            client, path = self._place(location)
            return io.BufferedReader(_Input(client.read(path), self, location), _BUFFER_BYTES)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        with self._errors("read", location):
            client, path = self._place(location)
            file = client.read(path)
            # the client panics on a range beyond the end
            return file.read_range(0, len(file)) if len(file) else b""

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        with self._errors("read", location):
            client, path = self._place(location)
            file = client.read(path)
            if offset < 0 or length < 0 or offset + length > len(file):
                raise outside_file(location, offset, length, len(file))
            return file.read_range(offset, length) if length else b""

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        with self._errors("read", location):
            client, path = self._place(location)
            status = client.get_file_info(path)
            if status.isdir:
                raise StorageError(f"cannot read {location}: it is a folder")
            return int(status.length)

    def exists(self, location: str) -> bool:
        """Return whether the file exists; a folder does not count."""
        return self._is_folder(location) is False

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file; a failed write leaves no file."""
        with self._errors("create", location):
            client, path = self._place(location)
            upload = client.create(path)
            output = _Output(upload, location, self.properties, lambda: client.delete(path))
            return cast(BinaryIO, io.BufferedWriter(output, _BUFFER_BYTES))

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        A client that repeats the request to another name node may find its own file; a caller that
        must know compares the bytes.
        """
        try:
            with self._errors("create", location):
                client, path = self._place(location)
                temporary = _written_beside(client, path, data)
        except StorageError as e:
            raise FileNotWrittenError(str(e)) from e
        try:
            with self._errors("create", location):
                client.rename(temporary, path, overwrite=False)
        except FileAlreadyExistsError:
            _try_to_delete(client, temporary)
            raise

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        with self._errors("write", location):
            client, path = self._place(location)
            temporary = _written_beside(client, path, data)
            try:
                client.rename(temporary, path, overwrite=True)
            except Exception:
                _try_to_delete(client, temporary)
                raise

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        with self._errors("delete", location):
            client, path = self._place(location)
            with contextlib.suppress(FileNotFoundError):
                if client.get_file_info(path).isdir:
                    raise StorageError(f"cannot delete {location}: it is a folder")
                client.delete(path)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively; locations begin with `prefix` unchanged."""
        folder = prefix.rstrip("/")
        with self._errors("list", prefix):
            client, path = self._place(folder)
            entries = client.list_status(path, recursive=True)
        while True:
            with self._errors("list", prefix):
                try:
                    entry = next(entries, None)
                except FileNotFoundError:
                    return
            if entry is None:
                return
            if not entry.isdir and entry.path.startswith(f"{path.rstrip('/')}/"):
                yield FileInfo(
                    location=folder + entry.path[len(path.rstrip("/")) :],
                    size=int(entry.length),
                    modified_ms=int(entry.modification_time),
                )

    # methods for folders, for catalogs whose namespaces are folders

    def list_folder(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files; empty lists for a missing folder."""
        folders: list[str] = []
        files: list[str] = []
        with self._errors("list", location):
            client, path = self._place(location)
            with contextlib.suppress(FileNotFoundError):
                for entry in client.list_status(path, recursive=False):
                    if entry.path.rstrip("/") != path.rstrip("/"):
                        (folders if entry.isdir else files).append(entry.path.rpartition("/")[2])
        return sorted(folders), sorted(files)

    def folder_exists(self, location: str) -> bool:
        """Return whether a folder with the name exists."""
        return self._is_folder(location) is True

    def create_folder(self, location: str) -> None:
        """Create a folder and its parents; raise `FileAlreadyExistsError` if the folder exists."""
        if self.folder_exists(location):
            raise FileAlreadyExistsError(f"cannot create folder {location}: it exists already")
        with self._errors("create folder", location):
            client, path = self._place(location)
            client.mkdirs(path)

    def remove_empty_folder(self, location: str) -> bool:
        """Remove a folder; return False if it is not empty, True if it is removed or missing."""
        if any(self.list_folder(location)):
            return False
        with self._errors("remove folder", location):
            client, path = self._place(location)
            with contextlib.suppress(FileNotFoundError):
                try:
                    client.delete(path)
                except RuntimeError as e:
                    if "PathIsNotEmptyDirectoryException" in str(e):
                        return False
                    raise
        return True

    def _is_folder(self, location: str) -> bool | None:
        """Return whether a folder has the name, and not a file; None if neither has it."""
        with self._errors("look for", location):
            client, path = self._place(location)
            try:
                return bool(client.get_file_info(path).isdir)
            except FileNotFoundError:
                return None

    def _place(self, location: str) -> tuple[HdfsClient, str]:
        """Return the client for the location's name nodes, and the path in HDFS."""
        check_scheme(location)
        authority, slash, name = location.partition("://")[2].partition("/")
        if name and _NO_NAME.search(name.rstrip("/")):
            raise StorageError(
                f"{location}: names with an empty folder ('//'), '.', '..', a colon or a NUL are "
                "not supported in HDFS; write the table's files under plain names"
            )
        user = self.properties.get(_USER, "")
        if user and not _USER_NAME.fullmatch(user):
            raise StorageError(f"{_USER} = {user!r}: not the name of a user")
        if authority and user and "@" not in authority:
            authority = f"{user}@{authority}"
        # the process id is a cache key because a client does not survive a fork
        client = _client(authority, self.properties.get(_TICKET), os.getpid())
        return client, f"{slash or '/'}{name}".rstrip("/") or "/"

    def _errors(self, action: str, location: str) -> contextlib.AbstractContextManager[None]:
        return store_errors(action, location, self.properties)


@lru_cache(maxsize=64)
def _client(authority: str, ticket: str | None, _process: int) -> HdfsClient:
    try:
        # imported here because few processes use HDFS
        from iceberg_pyspark.storage.hdfs_client import HdfsClient  # noqa: PLC0415
    except ImportError as e:
        raise StorageError(
            f"hdfs://{authority}: a package is missing for 'hdfs': "
            "pip install 'iceberg-pyspark[hdfs]'"
        ) from e
    login: dict[str, str] = {} if ticket is None else {"kerberos_cache": ticket}
    url = f"hdfs://{authority}" if authority else None
    return HdfsClient(url, client_settings(authority), **login)


def client_settings(authority: str) -> dict[str, str]:
    """Return the client's settings that add to the machine's Hadoop configuration.

    A name for several name nodes has no port; for such a name the client waits minutes for a
    failover. A host with a port is a single name node without failover, so the client fails within
    seconds.
    """
    return {"dfs.client.failover.max.attempts": "3"} if ":" in authority else {}


def _written_beside(client: HdfsClient, path: str, data: bytes) -> str:
    """Write the data to a new hidden file in the same folder, and return its path."""
    folder = path.rpartition("/")[0]
    temporary = f"{folder}/{temporary_name()}"
    try:
        file = client.create(temporary)
        if data:
            file.write(data)
        file.close()
    except Exception:
        _try_to_delete(client, temporary)
        raise
    return temporary


def _try_to_delete(client: HdfsClient, path: str) -> None:
    """Try to delete a temporary file; if this fails, orphan removal will delete it."""
    with contextlib.suppress(Exception):
        client.delete(path)


class _Input(io.RawIOBase):
    """A raw stream over a stream of the client; errors name the location.

    Reads are limited to the size of the file, because the client panics beyond it.
    """

    def __init__(self, stream: HdfsInput, store: HdfsFileIO, location: str) -> None:
        self._stream = stream
        self._store = store
        self._location = location
        self._size = len(stream)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise StorageError(f"cannot read {self._location}: seek to {start + offset}")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        length = max(min(len(view), self._size - self._position), 0)
        if length:
            with self._store._errors("read", self._location):
                view[:length] = self._stream.read_range(self._position, length)
        self._position += length
        return length


class _Output(UploadStream):
    """A raw stream to a new file, which is deleted if a write failed."""

    def __init__(
        self, upload: Any, location: str, properties: Mapping[str, str], delete: Any
    ) -> None:
        super().__init__(upload, location, properties)
        self._delete = delete

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with store_errors("write", self._location, self._properties):
            try:
                self._upload.close()
            except Exception:
                self._failed = True
                raise
            finally:
                if self._failed:
                    with contextlib.suppress(Exception):
                        self._delete()
