"""Selects the store for a location by its scheme, for each file separately.

A table's files may be in several stores (data in a bucket, metadata on a mount), so the store that
is opened for one location also serves all others. Stores for one scan have the credentials that a
catalog vends for its files (Open API specification of the REST catalog, `storage-credentials` of a
plan): they replace the credentials of the table and are not renewed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.credential_renewal import RENEWAL
from iceberg_pyspark.storage.credentials.table_services import check_tasks_sign
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    properties_at,
    properties_of_store,
)
from iceberg_pyspark.storage.files.cache import MetadataCache, metadata_cache
from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO, delete_files, files_per_request
from iceberg_pyspark.storage.files.local import LocalFileIO, is_local, local_path
from iceberg_pyspark.storage.files.memory_files import check_tasks_reach, is_memory, process_memory
from iceberg_pyspark.storage.files.places import is_web
from iceberg_pyspark.storage.fsspec_io import FsspecFileIO
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO, is_hdfs
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.objects.object_stores import is_object
from iceberg_pyspark.storage.own_folders import DeletionWithoutLinks
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO


def open_storage(location: str, properties: Mapping[str, str]) -> FileIO:
    """Return the store of a table at `location`, which also reaches every other location.

    `properties` are Iceberg's storage properties (`s3.endpoint`, ...). Raises `StorageError` if the
    location's scheme is unknown or the package for it is missing.
    """
    # this package also logs locations and the errors of libraries
    objects, remote = ObjectStoreFileIO(dict(properties)), FsspecFileIO(dict(properties))
    hdfs = HdfsFileIO(dict(properties))
    if is_local(location):
        local_path(location)
    elif is_object(location) or is_web(location):
        objects.check_scheme(location)
    elif is_hdfs(location):
        hdfs.check_scheme(location)
    elif is_memory(location):
        process_memory(location)
    else:
        remote.check_scheme(location)
    return RoutingFileIO(
        local=LocalFileIO(),
        objects=objects,
        hdfs=hdfs,
        remote=remote,
        remote_cache=metadata_cache(properties),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingFileIO:
    """A store that selects by scheme: local, objects (and web servers), HDFS, or `remote`.

    Immutable metadata that is not local is cached. Locations of `memory://` are in the memory of
    this process, if a catalog has opened it.
    """

    local: FileIO
    objects: FileIO
    remote: FileIO
    hdfs: FileIO = field(default_factory=HdfsFileIO)
    remote_cache: MetadataCache | None = None

    def within(self, location: str) -> RoutingFileIO:
        """Return a store with the properties of a location's store and no secret of others.

        Raises `UnsupportedFeatureError` if tasks could not sign requests for the location, or lack
        the memory that it is in.
        """
        check_tasks_reach(location)
        objects, remote, hdfs = self.objects, self.remote, self.hdfs
        if isinstance(objects, ObjectStoreFileIO):
            objects = replace(objects, properties=properties_of_store(location, objects.properties))
            check_tasks_sign(properties_at(location, objects.properties))
        if isinstance(remote, FsspecFileIO):
            remote = replace(remote, properties=properties_of_store(location, remote.properties))
        if isinstance(hdfs, HdfsFileIO):
            hdfs = replace(hdfs, properties=properties_of_store(location, hdfs.properties))
        return replace(self, objects=objects, remote=remote, hdfs=hdfs)

    @property
    def object_properties(self) -> Mapping[str, str]:
        """The storage properties for objects, for another program that must reach them."""
        return self.objects.properties if isinstance(self.objects, ObjectStoreFileIO) else {}

    def _store(self, location: str) -> FileIO:
        if is_local(location):
            return self.local
        if is_object(location) or is_web(location):
            return self.objects
        if is_memory(location):
            return process_memory(location)
        return self.hdfs if is_hdfs(location) else self.remote

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream; the caller closes it."""
        return self._store(location).open_input(location)

    def read_bytes(self, location: str) -> bytes:
        """Return the content of the whole file, from the cache if possible."""
        store = self._store(location)
        is_remote = store is not self.local and not is_memory(location)
        if is_remote and self.remote_cache is not None:
            return self.remote_cache.read(location, store.read_bytes)
        return store.read_bytes(location)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        return self._store(location).read_range(location, offset, length)

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        return self._store(location).size(location)

    def exists(self, location: str) -> bool:
        """Return whether the file exists."""
        return self._store(location).exists(location)

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream to a new file; the file is complete when the stream is closed."""
        return self._store(location).open_output(location)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Publish a whole file atomically, or raise `FileAlreadyExistsError`."""
        self._store(location).create_exclusive(location, data)

    def write_bytes(self, location: str, data: bytes) -> None:
        """Write or replace a whole file."""
        self._store(location).write_bytes(location, data)

    def delete(self, location: str) -> None:
        """Delete a file; a missing file is not an error."""
        self._store(location).delete(location)

    def delete_without_links(self, location: str) -> None:
        """Delete a local file; raise `StorageError` if a folder on its path is a link."""
        if isinstance(self.local, DeletionWithoutLinks):
            self.local.delete_without_links(location)
        else:
            self.local.delete(location)

    def files_per_request(self, location: str) -> int:
        """Return how many files of a location's store one request deletes; 1 if it cannot."""
        return files_per_request(self._store(location), location)

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        """Delete files in each store; return those that could not be deleted, with the reason."""
        by_store: dict[int, tuple[FileIO, list[str]]] = {}
        for location in locations:
            store = self._store(location)
            by_store.setdefault(id(store), (store, []))[1].append(location)
        failures: dict[str, StorageError] = {}
        for store, own_locations in by_store.values():
            failures |= delete_files(store, own_locations)
        return failures

    def list_files(self, prefix: str) -> Iterator[FileInfo]:
        """Yield all files below a folder, recursively."""
        return self._store(prefix).list_files(prefix)


def with_scan_credentials(properties: Mapping[str, str], credentials: str) -> dict[str, str]:
    """Return storage properties with the credentials of a scan, a value of `VENDED_CREDENTIALS`."""
    return {k: v for k, v in properties.items() if k != RENEWAL} | {VENDED_CREDENTIALS: credentials}


def opened_for_scan(io: FileIO, credentials: str) -> FileIO:
    """Return a table's store with the credentials of a scan, if the store has properties."""
    match io:
        case RestrictedFileIO(io=inner):
            return replace(io, io=opened_for_scan(inner, credentials))
        case RoutingFileIO(objects=objects, remote=remote):
            return replace(
                io,
                objects=opened_for_scan(objects, credentials),
                remote=opened_for_scan(remote, credentials),
            )
        case ObjectStoreFileIO() | FsspecFileIO():
            return replace(io, properties=with_scan_credentials(io.properties, credentials))
        case _:
            return io
