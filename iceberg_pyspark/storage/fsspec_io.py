"""Files of the stores that tables may lie in: S3, Google Cloud Storage, Azure, HDFS, HTTP.

Exclusive creation uses the store's conditional put. A store or library that takes the condition and
ignores it would let two commits overwrite each other, so the first create in a bucket proves it.
Which file system class serves a scheme, and its package, is fsspec's business; which schemes are
served is not: fsspec knows some that run programs, unpack archives or show the machine's own disk.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    FileNotWrittenError,
    IcebergError,
    StorageError,
)
from iceberg_pyspark.redaction import harmless_cause, secret_values, without_secrets
from iceberg_pyspark.storage.file_io import FileInfo
from iceberg_pyspark.storage.library_logs import redact_logs_of
from iceberg_pyspark.storage.places import EQUAL_SCHEMES, check_scheme
from iceberg_pyspark.storage.store_properties import file_system_arguments

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_PACKAGE = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}
# whose loggers say what is sent, at DEBUG
_LOGGING = {
    "s3": ("s3fs", "aiobotocore", "botocore", "urllib3"),
    "gs": ("gcsfs", "google", "urllib3"),
    "abfs": ("adlfs", "azure", "urllib3"),
    "az": ("adlfs", "azure", "urllib3"),
}
# Stores whose libraries turn mode "create" into one atomic request
_CONDITIONAL_PUT = ("s3", "gs", "abfs", "az")
_BUFFER_BYTES = 1 << 20
_CONFLICT_ATTEMPTS = 5
_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")

_memory_lock = threading.Lock()
_proven: set[tuple[str, ...]] = set()


@dataclass(frozen=True, slots=True)
class FsspecFileIO:
    """Reads, exclusive creates and deletes; `properties` are Iceberg's, and are never shown.

    `more_schemes` of fsspec, `memory` for one, are opened for whoever hands in such a store, and
    never because a location names them.
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
        """A seekable stream; the caller closes it."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            if _protocol(location) == "memory":
                # fsspec hands out one stream per file there, its position shared by all readers
                return io.BytesIO(fs.cat_file(path))
            return io.BufferedReader(_Input(fs.open(path, "rb"), self, location), _BUFFER_BYTES)

    def read_bytes(self, location: str) -> bytes:
        """The whole file."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            return bytes(fs.cat_file(path))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`; `StorageError` if the file is shorter."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            if offset < 0 or length < 0:
                raise StorageError(f"cannot read {location}: {length} bytes from {offset}")
            # some stores answer an empty range with the whole file
            end = offset + length
            data = bytes(fs.cat_file(path, start=offset, end=end)) if length else b""
        if len(data) != length:
            raise StorageError(
                f"cannot read {location}: bytes {offset} to {offset + length} are outside the file"
            )
        return data

    def size(self, location: str) -> int:
        """Size in bytes."""
        with self._errors("read", location):
            fs, path = self._file_system(location)
            info = fs.info(path)
            if info["type"] == "directory":
                raise StorageError(f"cannot read {location}: it is a folder")
            return int(info["size"])

    def exists(self, location: str) -> bool:
        """Whether the file is there; a folder is none."""
        with self._errors("look for", location):
            fs, path = self._file_system(location)
            try:
                return bool(fs.info(path)["type"] != "directory")
            except FileNotFoundError:
                return False

    def open_output(self, location: str) -> BinaryIO:
        """A stream to a new file, which appears when the stream is closed."""
        if self.exists(location):
            raise FileAlreadyExistsError(f"cannot create {location}: it exists already")
        with self._errors("create", location):
            fs, path = self._file_system(location)
            _make_folder(fs, path, location)
            return io.BufferedWriter(_Output(fs.open(path, "wb"), self, location), _BUFFER_BYTES)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        A reply lost on the way is repeated by the store's library, and may then find our own file:
        who must know compares its bytes.
        """
        try:
            with self._errors("create", location):
                fs, path = self._ready_to_create(location)
        except StorageError as e:
            raise FileNotWrittenError(str(e)) from e
        with self._errors("create", location):
            if _protocol(location) != "memory":
                _put_if_absent(fs, path, data)
                return
            with _memory_lock:
                if fs.exists(path):
                    raise FileExistsError
                fs.pipe_file(path, data)

    def _ready_to_create(self, location: str) -> tuple[Any, str]:
        """As `_file_system`, once the store is known to create files exclusively."""
        protocol = _protocol(location)
        fs, path = self._file_system(location)
        if protocol == "memory":
            return fs, path
        if protocol not in _CONDITIONAL_PUT:
            raise StorageError(
                f"cannot create {location}: stores of scheme '{protocol}' cannot create a file "
                "exclusively, so racing commits could overwrite each other; keep the table's "
                "metadata in S3, Google Cloud Storage, Azure or a local folder"
            )
        self._prove_conditional_put(fs, path, location)
        return fs, path

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        with self._errors("write", location):
            fs, path = self._file_system(location)
            _make_folder(fs, path, location)
            fs.pipe_file(path, data)

    def delete(self, location: str) -> None:
        """Delete a file; one that is not there is no error."""
        with self._errors("delete", location):
            fs, path = self._file_system(location)
            with contextlib.suppress(FileNotFoundError):
                fs.rm_file(path)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """All files below a folder, recursively, spelled as the folder is."""
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
        """fsspec's file system for a location, and the path it knows the file by.

        Not `fsspec.core.url_to_fs`: that one takes `a::b` for a chain of stores, and a location is
        only ever a name.
        """
        check_scheme(location, self.more_schemes)
        protocol = _protocol(location)
        try:
            # a quarter of what a worker process imports, for nothing where all files are local
            import fsspec  # noqa: PLC0415

            kind = fsspec.get_filesystem_class(protocol)
        except ImportError as e:
            package = _PACKAGE.get(protocol)
            remedy = f"pip install {package}" if package else str(e)
            raise StorageError(
                f"{location}: a package is missing for '{protocol}': {remedy}"
            ) from e
        except ValueError as e:
            raise StorageError(f"{location}: no store is known for scheme '{protocol}'") from e
        redact_logs_of(*_LOGGING.get(protocol, ()))
        rest = location.partition("://")[2]
        url = f"{protocol}://{rest}"
        arguments = file_system_arguments(protocol, self.properties)
        if protocol not in ("s3", "gs", "memory"):
            # account, host and user are part of the location there
            arguments = {**kind._get_kwargs_from_urls(url), **arguments}
        # a cached listing would hide files that others have just written
        return kind(use_listings_cache=False, **arguments), kind._strip_protocol(url)

    def _prove_conditional_put(self, fs: Any, path: str, location: str) -> None:
        bucket = path.split("/", 1)[0]
        place = (_protocol(location), bucket, self.properties.get("s3.endpoint", ""))
        if place in _proven:
            return
        probe = f"{path.rpartition('/')[0]}/.exclusive-create-probe-{uuid.uuid4()}"
        _put_if_absent(fs, probe, b"1")
        try:
            _put_if_absent(fs, probe, b"2")
        except FileExistsError:
            _proven.add(place)
        else:
            raise StorageError(
                f"cannot create {location}: the store, or the installed version of "
                f"{_PACKAGE[place[0]]}, ignores the condition 'only if absent', so racing commits "
                "could overwrite each other; use one that honours it"
            )
        finally:
            # not everyone may delete; the probe is one byte
            with contextlib.suppress(Exception):
                fs.rm_file(probe)

    @contextlib.contextmanager
    def _errors(self, action: str, location: str) -> Iterator[None]:
        try:
            yield
        except IcebergError:
            raise
        except FileNotFoundError as e:
            raise StorageError(f"cannot {action} {location}: no such file") from self._cause(e)
        except FileExistsError as e:
            raise FileAlreadyExistsError(
                f"cannot {action} {location}: it exists already"
            ) from self._cause(e)
        except Exception as e:  # noqa: BLE001 - libraries have no class in common, and text to hide
            text = without_secrets(f"{type(e).__name__}: {e}", secret_values(self.properties))
            raise StorageError(f"cannot {action} {location}: {text}") from self._cause(e)

    def _cause(self, error: Exception) -> BaseException | None:
        return harmless_cause(error, secret_values(self.properties))


def _protocol(location: str) -> str:
    scheme, separator, _ = location.partition("://")
    if not separator:
        raise StorageError(f"{location}: not an absolute location; it has neither scheme nor /")
    scheme = scheme.lower()
    return EQUAL_SCHEMES.get(scheme, scheme)


def _make_folder(fs: Any, path: str, location: str) -> None:
    # an object store has no folders, and would make a bucket
    if _protocol(location) not in _CONDITIONAL_PUT:
        fs.makedirs(fs._parent(path), exist_ok=True)


def _put_if_absent(fs: Any, path: str, data: bytes) -> None:
    for attempt in range(1, _CONFLICT_ATTEMPTS + 1):
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            raise
        except Exception as e:
            code = _store_code(e)
            if code in ("PreconditionFailed", "412"):
                raise FileExistsError(path) from e
            # S3 answers so while another conditional put of that name is under way
            if code != "ConditionalRequestConflict" or attempt == _CONFLICT_ATTEMPTS:
                raise
            time.sleep(0.1 * attempt)
        else:
            return


def _store_code(error: BaseException) -> str | None:
    """The error code in the store's own reply, where the library has kept it."""
    current: BaseException | None = error
    while current is not None:
        response = getattr(current, "response", None)
        if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):
            return str(response["Error"].get("Code"))
        current = current.__cause__
    return None


def _modified_ms(info: Mapping[str, Any]) -> int | None:
    for key in _MODIFIED_KEYS:
        match info.get(key):
            case datetime() as moment:
                return int(moment.timestamp() * 1000)
            case float() | int() as seconds:
                return int(seconds * 1000)
    return None


class _Input(io.RawIOBase):
    """A stream of fsspec whose errors name the location."""

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


class _Output(io.RawIOBase):
    """A stream of fsspec whose errors name the location."""

    def __init__(self, stream: Any, store: FsspecFileIO, location: str) -> None:
        self._stream = stream
        self._store = store
        self._location = location
        self._position = 0
        self._failed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        with self._store._errors("write", self._location):
            if self._failed:
                raise StorageError(f"cannot write {self._location}: an earlier write failed")
            content = bytes(data)
            self._failed = True
            self._stream.write(content)
            self._failed = False
            self._position += len(content)
            return len(content)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with self._store._errors("write", self._location):
            if self._failed and _can_be_discarded(self._stream):
                # closing would publish what has been sent so far as if it were the whole
                self._stream.closed = True
                self._stream.discard()
            else:
                self._stream.close()


def _can_be_discarded(stream: Any) -> bool:
    from fsspec.spec import AbstractBufferedFile  # noqa: PLC0415

    return isinstance(stream, AbstractBufferedFile)
