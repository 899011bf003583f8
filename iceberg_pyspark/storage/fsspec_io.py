"""Files of the stores that only fsspec reaches: WebDAV, SFTP, SMB and others.

fsspec selects the file system for a scheme and names the package for it; `storage/files/places.py`
decides which schemes are allowed. A file system gets the options `fsspec.<scheme>.<option>`.

None of these stores is known to create a file exclusively, so a file is created only if its name
contains a UUID, which no other writer has. A new file is collected in a temporary file and sent as
a whole, so that a failed write sends nothing and memory stays bounded.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote

from iceberg_pyspark.errors import FileNotWrittenError, LocationRefusedError, StorageError
from iceberg_pyspark.redaction import is_secret_key
from iceberg_pyspark.storage.credentials.server_endpoints import SERVER_PROPERTIES
from iceberg_pyspark.storage.files.cache import is_written_once
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file
from iceberg_pyspark.storage.files.places import check_scheme
from iceberg_pyspark.storage.objects.object_streams import UploadStream
from iceberg_pyspark.storage.objects.store_errors import RequestError, store_errors

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER_BYTES = 1 << 20
_MODIFIED_KEYS = ("LastModified", "last_modified", "modified", "mtime", "updated", "created")
_TIMEOUTS_S = {"webdav": 60, "dav": 60, "sftp": 30, "ssh": 30}
"""The option `timeout`, where a library's default is none or a few seconds."""

_ANSWER_S = 120
_WEBDAV = ("webdav", "dav")
_SSH = ("sftp", "ssh")
_NO_NAME = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f\\]")
# the client of WebDAV drops a space at the end when it lists a folder; others are not tested
_CHANGED_BY_WEBDAV = re.compile(r"\s(?:/|$)")
_CHANGED_BY_OTHERS = re.compile(r"[%?#]|\s(?:/|$)")
_FILE_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)

_lock = threading.Lock()
_systems: dict[tuple[str, ...], Any] = {}
_turns: dict[str, threading.RLock] = {}
"""One lock for each scheme whose file systems serve one thread at a time."""


@dataclass(frozen=True, slots=True)
class FsspecFileIO:
    """Reads, creates and deletes; `properties` are Iceberg's and are never shown."""

    properties: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"FsspecFileIO(properties: {', '.join(sorted(self.properties)) or 'none'})"

    def check_scheme(self, location: str) -> None:
        """Raise `StorageError` unless a file system for the location's scheme is installed."""
        check_scheme(location)
        with self._errors("open", location):
            _kind(_scheme(location))

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        with self._errors("read", location):
            system, path = self._place(location)
            if system.info(path)["type"] == "directory":
                raise IsADirectoryError(path)
            stream = system.open(path, "rb")
            return io.BufferedReader(_Input(stream, self, location), _BUFFER_BYTES)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        with self.open_input(location) as stream:
            return stream.read()

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        if offset < 0 or length < 0:
            raise StorageError(f"cannot read {location}: {length} bytes from {offset}")
        with self._errors("read", location):
            size = self.size(location)
            if offset + length > size:
                raise outside_file(location, offset, length, size)
            system, path = self._place(location)
            # some stores return the whole file for an empty range
            data = (
                bytes(system.cat_file(path, start=offset, end=offset + length)) if length else b""
            )
        if len(data) != length:
            raise StorageError(
                f"cannot read {location}: the server sent {len(data)} bytes for a range of {length}"
            )
        return data

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        with self._errors("read", location):
            system, path = self._place(location)
            info = system.info(path)
            if info["type"] == "directory":
                raise IsADirectoryError(path)
            return int(info["size"])

    def exists(self, location: str) -> bool:
        """Return whether the file exists; a folder does not count."""
        with self._errors("look for", location):
            system, path = self._place(location)
            try:
                return bool(system.info(path)["type"] != "directory")
            except FileNotFoundError:
                return False

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file, which is sent when the stream is closed."""
        with self._errors("create", location):
            if not is_written_once(location.rpartition("/")[2]) and self.exists(location):
                raise FileExistsError
            self._place(location)
        return cast(BinaryIO, _Output(self, location))

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Create a file whose name contains a UUID; for another name, raise `FileNotWrittenError`.

        Without a UUID two writers could create the file, and one would replace the other's.
        """
        if not is_written_once(location.rpartition("/")[2]):
            raise FileNotWrittenError(
                f"cannot create {location}: stores of scheme '{_scheme(location)}' cannot create a "
                "file exclusively, so racing commits could overwrite each other; use a catalog "
                "that keeps the pointer to the metadata (sql, rest, glue, hive)"
            )
        with self.open_output(location) as stream:
            stream.write(data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        with cast(BinaryIO, _Output(self, location)) as stream:
            stream.write(data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        with self._errors("delete", location):
            system, path = self._place(location)
            # a server may delete a folder with its content
            with contextlib.suppress(FileNotFoundError):
                if system.info(path)["type"] == "directory":
                    raise IsADirectoryError(path)
                system.rm_file(path)

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively; locations begin with `prefix` unchanged."""
        folders = [prefix.rstrip("/")]
        while folders:
            folder = folders.pop()
            with self._errors("list", folder):
                entries = self._entries(folder)
            for name, info in entries:
                if info["type"] == "directory":
                    folders.append(f"{folder}/{name}")
                elif info["type"] == "file":
                    yield FileInfo(
                        location=f"{folder}/{name}",
                        size=int(info["size"]),
                        modified_ms=_modified_ms(info),
                    )

    def _entries(self, folder: str) -> list[tuple[str, Mapping[str, Any]]]:
        system, path = self._place(folder)
        try:
            listed = system.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        start = f"{path.strip('/')}/"
        entries = []
        for info in listed:
            name = info["name"].strip("/")
            if f"{name}/" == start:
                continue
            below = name.removeprefix(start)
            if below == name or "/" in below:
                raise RequestError(
                    f"the server lists '{name}' in the folder '{start}'; rename files and folders "
                    "whose names have characters that the server changes"
                )
            entries.append((below, info))
        return entries

    def send(self, location: str, file: str, size: int) -> None:
        """Create a file with the content of a local one; what is there afterwards has its size."""
        with self._errors("create", location):
            system, path = self._place(location)
            if folder := system._parent(path).strip("/"):
                folder = path[: path.index(folder)] + folder
                try:
                    system.makedirs(folder, exist_ok=True)
                except Exception:
                    # another writer has just created it
                    if not system.isdir(folder):
                        raise
            system.put_file(file, path)
            system.invalidate_cache()
            there = int(system.info(path)["size"])
            if there != size:
                raise RequestError(f"{size} bytes were sent, and the server has {there}")

    def _place(self, location: str) -> tuple[Any, str]:
        """Return fsspec's file system for a location, and the path of the file in it.

        `fsspec.core.url_to_fs` is not used: it reads `a::b` as a chain of stores, but a location is
        always a plain name.
        """
        check_scheme(location)
        scheme = _scheme(location)
        root, slash, name = location.partition("://")[2].partition("/")
        name = name.rstrip("/")
        if any(part and _NO_NAME.search(part) for part in (root, name)) or (
            re.search("[?#]", root) or _is_changed(scheme, name)
        ):
            raise StorageError(
                f"{location}: names with an empty folder ('//'), '.', '..', a backslash or "
                "a control character are not supported in stores of fsspec, nor, except in SFTP, a "
                "space at the end, nor, except in SFTP and WebDAV, '%', '?' and '#'; use other "
                "names for the table's files"
            )
        kind = _kind(scheme)
        url = f"{scheme}://{root}{slash}"
        options = _options(scheme, self.properties)
        if scheme in _TIMEOUTS_S:
            options.setdefault("timeout", _TIMEOUTS_S[scheme])
        # the host and user in the location
        of_url = {k: v for k, v in kind._get_kwargs_from_urls(url).items() if v is not None}
        self._check_host(location, of_url.get("host"))
        options |= of_url
        system = _system(scheme, kind, options)
        # what fsspec makes of a name must be the name
        path = str(kind._strip_protocol(f"{url}x"))[:-1] + name
        if name and kind._strip_protocol(path) != path:
            raise StorageError(f"{location}: fsspec reads this name as another; use another one")
        # a cached listing would hide files that other programs have just written
        system.invalidate_cache()
        return system, path or "/"

    def _check_host(self, location: str, host: str | None) -> None:
        """Refuse to bring a user's password to a host that the user may not have chosen."""
        scheme = _scheme(location)
        options = _options(scheme, self.properties)
        own = options.get("host")
        if host is None or host == own or not options:
            return
        if own is not None or SERVER_PROPERTIES in self.properties:
            raise LocationRefusedError(
                f"{location}: refused, because options fsspec.{scheme}.* go only to the host that "
                f"fsspec.{scheme}.host names; set it to {host} if that host may have them"
            )

    @contextlib.contextmanager
    def _errors(self, action: str, location: str) -> Iterator[None]:
        scheme = _scheme(location)
        values = _texts(_options(scheme, self.properties))
        shown = {f"fsspec.{scheme}.{n}": value for n, value in enumerate(values)}
        with store_errors(action, location, {**self.properties, **shown}), _turn(scheme):
            try:
                yield
            except (StorageError, RequestError, *_FILE_ERRORS) as e:
                if isinstance(e, IsADirectoryError):
                    raise RequestError("it is a folder") from None
                raise
            except Exception as e:
                # the connection may be broken
                _forget(scheme)
                if (error := _typed(e)) is not None:
                    raise error from e
                raise


def _scheme(location: str) -> str:
    scheme, separator, _ = location.partition("://")
    if not separator:
        raise StorageError(f"{location}: not an absolute location; it has neither scheme nor /")
    return scheme.lower()


def _is_changed(scheme: str, name: str) -> bool:
    """Return whether a client may make another name of a name."""
    if scheme in _SSH:
        return False
    pattern = _CHANGED_BY_WEBDAV if scheme in _WEBDAV else _CHANGED_BY_OTHERS
    return pattern.search(name) is not None


def _kind(scheme: str) -> Any:
    """Return fsspec's class for a scheme; raise `RequestError` if a package is missing."""
    import fsspec  # noqa: PLC0415 - as in `is_fsspec_scheme`

    try:
        return fsspec.get_filesystem_class(scheme)
    except ImportError as e:
        raise RequestError(f"a package is missing for '{scheme}': {e}", is_known=True) from None


def _options(scheme: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a file system; a value that is JSON has the type that JSON says.

    PyIceberg's `hf.token` and `hf.endpoint` are options too.

    >>> _options("sftp", {"fsspec.sftp.port": "22", "fsspec.sftp.password": "22"})
    {'port': 22, 'password': '22'}
    """
    options: dict[str, Any] = {}
    for prefix in (*(("hf.",) if scheme == "hf" else ()), f"fsspec.{scheme}."):
        for key, text in properties.items():
            if key.startswith(prefix):
                options[key[len(prefix) :]] = _value(key[len(prefix) :], text)
    return options


def _value(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list):
        # a user and a password
        return tuple(value)
    # a password of digits is a text
    return text if is_secret_key(name) else value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for part in value.values():
                yield from _texts(part)
        case list() | tuple():
            for part in value:
                yield from _texts(part)
        case str():
            yield value


def _system(scheme: str, kind: Any, options: Mapping[str, Any]) -> Any:
    """Return the file system, of which a process has one for each set of options."""
    # the process counts, because a connection does not survive a fork
    key = (scheme, json.dumps(options, sort_keys=True, default=str), str(os.getpid()))
    with _lock:
        if not (key in _systems and kind.cachable and _is_connected(scheme, _systems[key])):
            try:
                system = kind(skip_instance_cache=True, **options)
            except TypeError as e:
                raise RequestError(
                    f"fsspec could not open its file system ({e}); set its options by properties "
                    f"fsspec.{scheme}.<option>"
                ) from None
            if scheme in _WEBDAV:
                _encode_names(system.client)
            if scheme in _SSH:
                system.ftp.get_channel().settimeout(_ANSWER_S)
            _systems[key] = system
        return _systems[key]


def _is_connected(scheme: str, system: Any) -> bool:
    """Return False if the server has ended the connection, as it may after a pause."""
    if scheme not in _SSH:
        return True
    transport = system.client.get_transport()
    return transport is not None and transport.is_active()


def _encode_names(client: Any) -> None:
    """Let a client of WebDAV encode every name; it leaves what looks encoded, such as `a%20b`."""
    join = client.join_url
    client.join_url = lambda path, **options: join(quote(path), **options)


def _turn(scheme: str) -> AbstractContextManager[Any]:
    if scheme in _WEBDAV:
        # a client of HTTP, which serves several threads
        return contextlib.nullcontext()
    with _lock:
        return _turns.setdefault(scheme, threading.RLock())


def _forget(scheme: str) -> None:
    with _lock:
        for key in [k for k in _systems if k[0] == scheme]:
            del _systems[key]


def _typed(error: Exception) -> RequestError | None:
    """Return one error for a refusal or a lack of time, which libraries report in many ways."""
    name = type(error).__name__
    status = getattr(error, "status_code", None)
    if status in (401, 403) or isinstance(error, PermissionError) or "Authentication" in name:
        return RequestError(f"access denied ({name})")
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return RequestError(f"the server did not answer in time ({name})")
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
        with self._errors():
            self._stream.seek(offset, whence)
            return int(self._stream.tell())

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with self._errors():
            view = memoryview(buffer)
            data = self._stream.read(len(view))
            view[: len(data)] = data
            return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._errors():
                self._stream.close()

    def _errors(self) -> AbstractContextManager[None]:
        return self._store._errors("read", self._location)


class _Output(UploadStream):
    """A raw stream into a temporary file, which becomes a file of the store when it is closed."""

    def __init__(self, store: FsspecFileIO, location: str) -> None:
        file = tempfile.NamedTemporaryFile(prefix="iceberg-")  # noqa: SIM115
        super().__init__(file, location, store.properties)
        self._store = store

    def close(self) -> None:
        if self.closed:
            return
        failed = self._failed
        super().close()
        try:
            if failed:
                raise self._error_after_failure()
            with store_errors("write", self._location, self._properties):
                # the machine's disk may be full
                self._upload.flush()
            self._store.send(self._location, self._upload.name, self._position)
        finally:
            self._upload.close()

    def discard(self) -> None:
        if not self.closed:
            super().close()
            self._upload.close()

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            self.close()
        else:
            # a partial file must not be published
            self.discard()

    def __del__(self) -> None:
        # closing would publish the file, which the caller did not request
        self.discard()
