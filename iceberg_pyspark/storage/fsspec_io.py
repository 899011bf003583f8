"""Files of the stores that fsspec reaches: HTTP, for reading.

Object stores are in `storage/objects/object_store_io.py`, HDFS in `hdfs_io.py`. fsspec selects the
file system class for a scheme and names the package for it, but this module decides which schemes
are allowed: fsspec has some that run programs, unpack archives or expose the machine's own disk.

How fsspec asks web servers: whole bytes, and never a server that another one names.

A table may read the files of its own server only. A redirect to another one, perhaps to an address
of the reader's own network, would let the server choose which bytes the table has, so only
redirects to the same address, or from http to https on the same host, are followed.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    FileNotWrittenError,
    StorageError,
)
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file
from iceberg_pyspark.storage.files.places import EQUAL_SCHEMES, check_scheme
from iceberg_pyspark.storage.objects.object_streams import UploadStream
from iceberg_pyspark.storage.objects.store_errors import RequestError, store_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


WEB_SCHEMES = frozenset(("http", "https"))
"""The schemes of web servers, which are only read."""

# a range of a compressed answer has other offsets than the file
_HEADERS = {"Accept-Encoding": "identity"}
_MISSING_STATUSES = (404, 410)


@lru_cache(maxsize=1)
def web_options() -> dict[str, Any]:
    """Return the arguments of fsspec's file system for web servers."""
    # the extra `http` brings it, after fsspec has named it as missing
    from aiohttp import TraceConfig  # noqa: PLC0415

    trace = TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    return {"headers": _HEADERS, "client_kwargs": {"trace_configs": [trace]}}


def is_missing(error: FileNotFoundError) -> bool:
    """Return whether the server said that there is no such file.

    fsspec raises `FileNotFoundError` for any failure of the request that asks for the size.
    """
    cause = error.__cause__
    if cause is None or isinstance(cause, FileNotFoundError):
        return True
    return getattr(cause, "status", None) in _MISSING_STATUSES


async def _check_redirect(_session: Any, _context: Any, params: Any) -> None:
    answer = params.response
    source = answer.url
    target = source.join(type(source)(answer.headers.get("Location") or ""))
    if target.origin() == source.origin():
        return
    if target.host == source.host and target.scheme == "https":
        return
    answer.close()
    raise RequestError(
        f"the server redirects to {target.origin()}; redirects to another server are not followed, "
        "because it would choose the table's bytes: use the location to which the server redirects"
    )


_REMEDY = {
    "http": "pip install 'iceberg-pyspark[http]'",
    "https": "pip install 'iceberg-pyspark[http]'",
}
_BUFFER_BYTES = 1 << 20
_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")

_memory_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class FsspecFileIO:
    """Reads, exclusive creates and deletes; `properties` are Iceberg's and are never shown.

    `more_schemes` are further fsspec schemes, such as `memory`. They are allowed for a caller that
    creates the store with them, and never because a location names them.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    more_schemes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"FsspecFileIO(properties: {', '.join(sorted(self.properties)) or 'none'})"

    def check_scheme(self, location: str) -> None:
        """Raise `StorageError` unless a file system for the location's scheme is installed."""
        with self._errors("open", location):
            self._file_system(location)

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            if _protocol(location) == "memory":
                # for `memory`, fsspec returns one stream per file, whose position all readers share
                return io.BytesIO(fs.cat_file(path))
            with _real_errors():
                stream = fs.open(path, "rb")
            return io.BufferedReader(_Input(stream, self, location), _BUFFER_BYTES)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            return bytes(fs.cat_file(path))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            if offset < 0 or length < 0:
                raise StorageError(f"cannot read {location}: {length} bytes from {offset}")
            # some stores return the whole file for an empty range
            end = offset + length
            data = bytes(fs.cat_file(path, start=offset, end=end)) if length else b""
        if len(data) > length:
            raise StorageError(
                f"cannot read {location}: the server sent {len(data)} bytes for a range of "
                f"{length}; it must support ranges"
            )
        if len(data) != length:
            raise outside_file(location, offset, length)
        return data

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            with _real_errors():
                info = fs.info(path)
            if info["type"] == "directory":
                raise StorageError(f"cannot read {location}: it is a folder")
            return int(info["size"])

    def exists(self, location: str) -> bool:
        """Return whether the file exists; a folder does not count."""
        with self._errors("look for", location):
            fs, path = self._file_system(location)
            try:
                with _real_errors():
                    return bool(fs.info(path)["type"] != "directory")
            except FileNotFoundError:
                return False

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file, which appears when the stream is closed."""
        _check_writable("create", location)
        if self.exists(location):
            raise FileAlreadyExistsError(f"cannot create {location}: it exists already")
        with self._errors("create", location):
            fs, path = self._file_system(location)
            fs.makedirs(fs._parent(path), exist_ok=True)
            return io.BufferedWriter(
                _Output(fs.open(path, "wb"), location, self.properties), _BUFFER_BYTES
            )

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Raise `FileNotWrittenError`: these stores might replace an existing file.

        Only the scheme `memory` supports exclusive creates.
        """
        with self._errors("create", location):
            fs, path = self._file_system(location)
        if _protocol(location) != "memory":
            raise FileNotWrittenError(
                f"cannot create {location}: stores of scheme '{_protocol(location)}' cannot create "
                "a file exclusively, so racing commits could overwrite each other; keep the "
                "table's metadata in S3, Google Cloud Storage, Azure or a local folder"
            )
        with self._errors("create", location), _memory_lock:
            if fs.exists(path):
                raise FileExistsError
            fs.pipe_file(path, data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        _check_writable("write", location)
        with self._errors("write", location):
            fs, path = self._file_system(location)
            fs.makedirs(fs._parent(path), exist_ok=True)
            fs.pipe_file(path, data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        _check_writable("delete", location)
        with self._errors("delete", location):
            fs, path = self._file_system(location)
            with contextlib.suppress(FileNotFoundError):
                fs.rm_file(path)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively; locations begin with `prefix` unchanged."""
        with self._errors("list", prefix):
            fs, path = self._file_system(prefix)
            try:
                entries = fs.find(path, detail=True)
            except FileNotFoundError:
                return
        folder = path.rstrip("/")
        for name, info in entries.items():
            if info["type"] == "file" and name.startswith(f"{folder}/"):
                yield FileInfo(
                    location=prefix.rstrip("/") + name[len(folder) :],
                    size=int(info["size"]),
                    modified_ms=_modified_ms(info),
                )

    def _file_system(self, location: str) -> tuple[Any, str]:
        """Return fsspec's file system for a location, and the path of the file in it.

        `fsspec.core.url_to_fs` is not used: it reads `a::b` as a chain of stores, but a location is
        always a plain name.
        """
        check_scheme(location, self.more_schemes)
        protocol = _protocol(location)
        try:
            # fsspec would be a quarter of a worker's imports, unused if all files are local
            import fsspec  # noqa: PLC0415

            kind = fsspec.get_filesystem_class(protocol)
        except ImportError as e:
            raise StorageError(
                f"{location}: a package is missing for '{protocol}': "
                f"{_REMEDY.get(protocol, str(e))}"
            ) from e
        except ValueError as e:
            raise StorageError(f"{location}: no store is known for scheme '{protocol}'") from e
        url = f"{protocol}://{location.partition('://')[2]}"
        # these arguments are the host and user in the location
        arguments = {} if protocol == "memory" else kind._get_kwargs_from_urls(url)
        if protocol in WEB_SCHEMES:
            arguments |= web_options()
        # a cached listing would hide files that other programs have just written
        return kind(use_listings_cache=False, **arguments), kind._strip_protocol(url)

    def _errors(self, action: str, location: str) -> AbstractContextManager[None]:
        return store_errors(action, location, self.properties)


def _protocol(location: str) -> str:
    scheme, separator, _ = location.partition("://")
    if not separator:
        raise StorageError(f"{location}: not an absolute location; it has neither scheme nor /")
    scheme = scheme.lower()
    return EQUAL_SCHEMES.get(scheme, scheme)


def _check_writable(action: str, location: str) -> None:
    if _protocol(location) in WEB_SCHEMES:
        kind = StorageError if action == "delete" else FileNotWrittenError
        raise kind(
            f"cannot {action} {location}: web servers are only read; register the table in a "
            "catalog with its files in a store that can be written"
        )


@contextlib.contextmanager
def _real_errors() -> Iterator[None]:
    """Raise the failure of a request, which fsspec reports as a file that does not exist."""
    try:
        yield
    except FileNotFoundError as e:
        if is_missing(e) or e.__cause__ is None:
            raise
        raise e.__cause__ from None


def _modified_ms(info: Mapping[str, Any]) -> int | None:
    for key in _MODIFIED_KEYS:
        match info.get(key):
            case datetime() as moment:
                return int(moment.timestamp() * 1000)
            case float() | int() as seconds:
                return int(seconds * 1000)
    return None


class _Input(io.RawIOBase):
    """A raw stream over a stream of fsspec; its errors name the location."""

    def __init__(self, stream: Any, store: FsspecFileIO, location: str) -> None:
        self._stream = stream
        self._store = store
        self._location = location

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with self._store._errors("read", self._location):
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with self._store._errors("read", self._location):
            view = memoryview(buffer)
            data = self._stream.read(len(view))
            view[: len(data)] = data
            return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._stream.close()


class _Output(UploadStream):
    """A raw stream over a stream of fsspec; closing it publishes the data."""

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with store_errors("write", self._location, self._properties):
            if self._failed and _can_be_discarded(self._upload):
                # closing would publish the partial data as if it were the whole file
                self._upload.closed = True
                self._upload.discard()
            else:
                self._upload.close()


def _can_be_discarded(stream: Any) -> bool:
    from fsspec.spec import AbstractBufferedFile  # noqa: PLC0415

    return isinstance(stream, AbstractBufferedFile)
