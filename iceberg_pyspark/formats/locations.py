"""The locations and names of new files.

Layouts and names are those of the Java implementation, so tools that know a table's folders (orphan
removal, object-store throttling rules) work for every writer. This module opens no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spec.murmur3 import murmur3_32
from iceberg_pyspark.spec.table_properties import (
    OBJECT_STORAGE,
    PARTITIONED_PATHS,
    WRITE_DATA_PATH,
    WRITE_METADATA_PATH,
)

_PROVIDER_IMPL = "write.location-provider.impl"
DEPRECATED_PATHS = ("write.object-storage.path", "write.folder-storage.path")

_HASH_DIGITS = 20
_HASH_FOLDER_ENDS = ((0, 4), (4, 8), (8, 12), (12, 20))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationProvider:
    """The locations of a table's new files; created by `location_provider`.

    `context` is placed between hash and name if tables share the data folder.
    """

    data_location: str
    metadata_location: str
    object_storage: bool = False
    partitioned_paths: bool = True
    context: str | None = None

    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        """Return the location of a new data or delete file.

        `partition_path` is the result of `partition_path` for the file's partition tuple; None if
        unpartitioned.
        """
        if not self.object_storage:
            name = _below(partition_path, file_name)
            return f"{self.data_location}/{name}"
        name = _below(partition_path, file_name) if self.partitioned_paths else file_name
        folders = _hash_folders(name)
        if self.context is not None:
            return f"{self.data_location}/{folders}/{self.context}/{name}"
        separator = "/" if self.partitioned_paths else "-"
        return f"{self.data_location}/{folders}{separator}{name}"

    def new_metadata_location(self, file_name: str) -> str:
        """Return the location of a new metadata, manifest, manifest list or statistics file."""
        return f"{self.metadata_location}/{file_name}"


def location_provider(table_location: str, properties: Mapping[str, str]) -> LocationProvider:
    """Return the location provider that the table's `write.*` properties select."""
    if impl := properties.get(_PROVIDER_IMPL):
        raise UnsupportedFeatureError(
            f"table {table_location}: {_PROVIDER_IMPL} = {impl} names a Java class, which "
            f"cannot be loaded here; remove the property, or use {OBJECT_STORAGE.name} or "
            f"{WRITE_DATA_PATH}"
        )
    for name in DEPRECATED_PATHS:
        if name in properties:
            raise InvalidRequestError(
                f"table {table_location}: property {name} has no effect any more; remove it, and "
                f"set {WRITE_DATA_PATH} instead"
            )
    table = _without_trailing_slash(table_location)
    data = _without_trailing_slash(properties.get(WRITE_DATA_PATH, f"{table}/data"))
    metadata = _without_trailing_slash(properties.get(WRITE_METADATA_PATH, f"{table}/metadata"))
    object_storage = OBJECT_STORAGE.of(properties)
    return LocationProvider(
        data_location=data,
        metadata_location=metadata,
        object_storage=object_storage,
        partitioned_paths=PARTITIONED_PATHS.of(properties),
        # a plain prefix test without regard to folder boundaries, as in Java
        context=None if not object_storage or data.startswith(table) else _context(table),
    )


def data_file_name(
    *,
    partition_id: int,
    task_id: int,
    operation_id: str,
    file_count: int,
    extension: str,
    suffix: str = "",
) -> str:
    """Return the name of a data or delete file; `file_count` counts from 1 within the task.

    `operation_id` must differ between writes and, in a stream, between epochs: a restarted stream
    that repeated its names would overwrite live files.

    >>> data_file_name(
    ...     partition_id=0, task_id=12, operation_id="5f", file_count=1, extension="parquet"
    ... )
    '00000-12-5f-00001.parquet'
    """
    tail = f"-{suffix}" if suffix else ""
    return f"{partition_id:05d}-{task_id}-{operation_id}-{file_count:05d}{tail}.{extension}"


def manifest_file_name(commit_uuid: str, count: int) -> str:
    """Return the name of a manifest; `count` counts from 0 within the commit."""
    return f"{commit_uuid}-m{count}.avro"


def manifest_list_file_name(snapshot_id: int, attempt: int, commit_uuid: str) -> str:
    """Return the name of a manifest list; each attempt to commit writes a new one."""
    return f"snap-{snapshot_id}-{attempt}-{commit_uuid}.avro"


def root_manifest_file_name(snapshot_id: int, attempt: int, commit_uuid: str) -> str:
    """Return the name of a root manifest; each attempt to commit writes a new one."""
    return f"snap-{snapshot_id}-{attempt}-{commit_uuid}.parquet"


def leaf_manifest_file_name(commit_uuid: str, count: int) -> str:
    """Return the name of a leaf manifest of version 4; `count` counts from 0 within the commit."""
    return f"{commit_uuid}-m{count}.parquet"


def manifest_vectors_file_name(commit_uuid: str, count: int) -> str:
    """Return the name of a Puffin file with deletion vectors of manifests."""
    return f"{commit_uuid}-m{count}-mdv.puffin"


def statistics_file_name(snapshot_id: int, file_uuid: str) -> str:
    """Return the name of a table statistics file."""
    return f"{snapshot_id}-{file_uuid}.stats"


def partition_statistics_file_name(snapshot_id: int, file_uuid: str, file_format: str) -> str:
    """Return the name of a partition statistics file in the given file format."""
    return f"partition-stats-{snapshot_id}-{file_uuid}.{file_format}"


def _below(folder: str | None, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _hash_folders(name: str) -> str:
    digits = format(murmur3_32(name.encode()) & ((1 << _HASH_DIGITS) - 1), f"0{_HASH_DIGITS}b")
    return "/".join(digits[start:end] for start, end in _HASH_FOLDER_ENDS)


def _context(table_location: str) -> str:
    """Return the last two folders of the table's path, without the authority."""
    path = table_location
    if "://" in path:
        path = path.split("://", 1)[1].partition("/")[2]
    elif path.lower().startswith("file:"):
        path = path[5:]
    return "/".join([part for part in path.split("/") if part][-2:])


def _without_trailing_slash(location: str) -> str:
    path = location
    while path.endswith("/") and not path.endswith("://"):
        path = path[:-1]
    return path
