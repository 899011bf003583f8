"""Files of object stores: S3, Google Cloud Storage, Azure; and of web servers, which are only read.

Exclusive creation uses the store's conditional put (`If-None-Match: *`; on Google, the object's
generation must be 0). A store that accepts the condition but ignores it would let two commits
overwrite each other. Therefore the first create in a bucket tests the store, and a store that fails
the test is refused; only `storage.allow-unsafe-commits` allows such a store. A file whose name
contains a UUID needs no test, because only one writer has the name.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, cast

from iceberg_pyspark.errors import FileNotWrittenError, StorageError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.storage.credentials.table_services import is_signed_remotely
from iceberg_pyspark.storage.credentials.vended_credentials import properties_at
from iceberg_pyspark.storage.files.cache import is_written_once
from iceberg_pyspark.storage.files.file_io import FileInfo, outside_file
from iceberg_pyspark.storage.files.places import check_scheme, is_web
from iceberg_pyspark.storage.objects.object_stores import object_place, open_object_store
from iceberg_pyspark.storage.objects.object_streams import ObjectInput, ObjectOutput
from iceberg_pyspark.storage.objects.store_errors import store_errors

ALLOW_UNSAFE_COMMITS = "storage.allow-unsafe-commits"
"""The property that allows tables in a store that cannot create a file exclusively."""

_LISTED_AT_ONCE = 1000
_DELETED_AT_ONCE = {"s3": 1000, "abfs": 256, "az": 256}
"""The most files of one request, where the store has such a request."""
_PARTS_OF_FAILED_REQUEST = 32
_ENDPOINTS = {"s3": "s3.endpoint", "gs": "gcs.service.host"}

_honours_conditions: dict[tuple[str, ...], bool] = {}
"""Whether a store, given by its place, honours the condition of a put that creates."""
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ObjectStoreFileIO:
    """Reads, exclusive creates and deletes; `properties` are Iceberg's and are never shown."""

    properties: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ObjectStoreFileIO(properties: {', '.join(sorted(self.properties)) or 'none'})"

    def check_scheme(self, location: str) -> None:
        """Raise `StorageError` unless the store of the location can be opened."""
        with self._errors(location, "open"):
            self._place(location)

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        with self._errors(location, "read"):
            store, name = self._place(location)
            return cast(BinaryIO, ObjectInput(store, name, partial(self._errors, location)))

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file."""
        with self._errors(location, "read"):
            store, name = self._place(location)
            return bytes(store.get(name).bytes())

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        if offset < 0 or length < 0 or offset + length >= 1 << 62:
            raise StorageError(f"cannot read {location}: {length} bytes from {offset}")
        with self._errors(location, "read"):
            store, name = self._place(location)
            if length == 0:
                return b""
            data = bytes(store.get_range(name, start=offset, length=length))
        if len(data) != length:
            raise outside_file(location, offset, length)
        return data

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        with self._errors(location, "read"):
            store, name = self._place(location)
            return int(store.head(name)["size"])

    def exists(self, location: str) -> bool:
        """Return whether the file exists; a folder does not count."""
        with self._errors(location, "look for"):
            store, name = self._place(location)
            try:
                store.head(name)
            except FileNotFoundError:
                return False
            return True

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file, which appears when the stream is closed.

        A request looks for the name first, unless the name contains a UUID, as only one caller has
        such a name.
        """
        with self._errors(location, "create"):
            store, name = self._place(location)
            if not _has_own_name(name) and self.exists(location):
                raise FileExistsError(name)
            return cast(BinaryIO, ObjectOutput(store, name, location, self.properties))

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`.

        The library repeats a request after a server error and may then find the file of its first
        attempt; a caller that must know compares the bytes.
        """
        try:
            with self._errors(location, "create"):
                store, name = self._place(location)
                safe = _has_own_name(name) or self._creates_exclusively(store, name, location)
        except StorageError as e:
            raise FileNotWrittenError(str(e)) from e
        with self._errors(location, "create"):
            if not safe and self.exists(location):
                raise FileExistsError(name)
            if safe:
                _put_if_absent(store, name, data)
            else:
                store.put(name, data, use_multipart=False)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        with self._errors(location, "write"):
            store, name = self._place(location)
            store.put(name, data, use_multipart=False)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        with self._errors(location, "delete"):
            store, name = self._place(location)
            with contextlib.suppress(FileNotFoundError):
                store.delete(name)

    def files_per_request(self, location: str) -> int:
        """Return how many files of a location's store one request deletes.

        It is 1 on Google, which has no such request, and if a server signs the requests, as it
        signs only requests for one file.
        """
        try:
            kind, _, _ = object_place(location)
        except StorageError:
            return 1
        if is_signed_remotely(properties_at(location, self.properties)):
            return 1
        return _DELETED_AT_ONCE.get(kind, 1)

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        """Delete files with few requests; return those that could not be deleted, with the reason.

        A missing file is not an error.
        """
        failures: dict[str, StorageError] = {}
        by_store: dict[int, tuple[Any, dict[str, str]]] = {}
        for location in locations:
            try:
                with self._errors(location, "delete"):
                    store, name = self._place(location)
            except StorageError as e:
                failures[location] = e
            else:
                by_store.setdefault(id(store), (store, {}))[1][location] = name
        for store, names in by_store.values():
            size = self.files_per_request(next(iter(names)))
            for part in _parts(names, size):
                failures |= self._delete_together(store, part)
        return failures

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively; locations begin with `prefix` unchanged."""
        folder = prefix.rstrip("/")
        with self._errors(prefix, "list"):
            store, name = self._place(folder)
            pages = iter(store.list(name or None, chunk_size=_LISTED_AT_ONCE))
        while True:
            with self._errors(prefix, "list"):
                page = next(pages, None)
            if page is None:
                return
            for entry in page:
                path = entry["path"]
                if path.startswith(f"{name}/" if name else ""):
                    yield FileInfo(
                        location=folder + path[len(name) :] if name else f"{folder}/{path}",
                        size=int(entry["size"]),
                        modified_ms=int(entry["last_modified"].timestamp() * 1000),
                    )

    def list_folder(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files; empty lists for a missing folder."""
        folder = location.rstrip("/")
        with self._errors(location, "list"):
            store, name = self._place(folder)
            listing = store.list_with_delimiter(name or None)
        start = len(name) + 1 if name else 0
        folders = sorted(p[start:] for p in listing["common_prefixes"])
        return folders, sorted(
            o["path"][start:] for o in listing["objects"] if len(o["path"]) > start
        )

    def _delete_together(self, store: Any, names: Mapping[str, str]) -> dict[str, StorageError]:
        """Delete the names of locations with one request; return the failures by location.

        The library reports only the first file that the store did not delete, and on Azure also a
        missing file. Therefore a request with a failure is repeated in parts, down to one file.
        """
        location = next(iter(names))
        failures: dict[str, StorageError] = {}
        if len(names) == 1:
            try:
                self.delete(location)
            except StorageError as e:
                failures[location] = e
            return failures
        try:
            with self._errors(location, "delete"):
                store.delete(list(dict.fromkeys(names.values())))
        except StorageError as e:
            _log.debug("a request to delete %d files is repeated in parts: %s", len(names), e)
            for part in _parts(names, max(len(names) // _PARTS_OF_FAILED_REQUEST, 1)):
                failures |= self._delete_together(store, part)
        return failures

    def _place(self, location: str) -> tuple[Any, str]:
        check_scheme(location)
        if is_web(location):
            from iceberg_pyspark.storage.objects.web_store import web_store  # noqa: PLC0415 - rare

            return web_store(os.getpid()), location
        return open_object_store(location, self.properties)

    def _creates_exclusively(self, store: Any, name: str, location: str) -> bool:
        """Return whether the store honours the condition; raise `StorageError` if it must.

        The test is two puts of one new name; a store is tested once per process.
        """
        kind, bucket, _ = object_place(location)
        place = (kind, bucket, self.properties.get(_ENDPOINTS.get(kind, ""), ""))
        if place not in _honours_conditions:
            _honours_conditions[place] = self._test_condition(store, name)
        if _honours_conditions[place]:
            return True
        if bool_property(self.properties, ALLOW_UNSAFE_COMMITS, False):
            return False
        raise StorageError(
            f"cannot create {location}: the store of {kind}://{bucket} ignores the condition 'only "
            "if absent', so racing commits could overwrite each other; use one that honours it, "
            f"keep the pointer in a catalog, or set {ALLOW_UNSAFE_COMMITS} to true if you have one "
            "writer only"
        )

    def _test_condition(self, store: Any, name: str) -> bool:
        """Return whether the store refuses to create an object that it has."""
        probe = f"{name.rpartition('/')[0]}/.exclusive-create-probe-{uuid.uuid4()}".lstrip("/")
        _put_if_absent(store, probe, b"1")
        try:
            _put_if_absent(store, probe, b"2")
        except FileExistsError:
            return True
        finally:
            # the caller may lack the permission to delete; the probe is only one byte
            with contextlib.suppress(Exception):
                store.delete(probe)
        return False

    def _errors(self, location: str, action: str) -> AbstractContextManager[None]:
        return store_errors(action, location, self.properties)


def _parts(names: Mapping[str, str], size: int) -> Iterator[dict[str, str]]:
    entries = iter(names.items())
    while part := dict(islice(entries, size)):
        yield part


def _has_own_name(name: str) -> bool:
    """Return whether the name of a file contains a UUID, so that only one caller has the name."""
    return is_written_once(name.rpartition("/")[2])


def _put_if_absent(store: Any, name: str, data: bytes) -> None:
    """Create an object; raise `FileExistsError` if the name exists.

    S3 also reports a taken name while another create of the name is in progress, which may be an
    earlier attempt whose reply was lost, so `head` checks that the object exists.
    """
    try:
        store.put(name, data, mode="create", use_multipart=False)
    except _name_taken_errors() as e:
        try:
            store.head(name)
        except FileNotFoundError:
            raise StorageError(f"{name}: another create of that file is in progress") from None
        raise FileExistsError(name) from e


def _name_taken_errors() -> tuple[type[Exception], ...]:
    """Return the exception types that report a taken name."""
    try:
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415
    except ImportError:
        # stores with remote signing do not need obstore
        return (FileExistsError,)
    return FileExistsError, AlreadyExistsError, PreconditionError
