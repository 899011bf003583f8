"""Tables without a catalog: `metadata/v<N>.metadata.json`, where the highest version is the table.

Specification, "File System Tables"; Java's HadoopTableOperations. A commit creates the next
version under a name nobody may overwrite, so of racing writers one wins. `version-hint.text` only
saves a listing: it may be missing, stale or nonsense. Which folder a table's name means is
`filesystem.py` and `path_tables.py`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from iceberg_pyspark.catalogs.pointer_swap import delete_trimmed_metadata, now_ms
from iceberg_pyspark.commits.apply import apply_updates
from iceberg_pyspark.commits.requirements import TableRequirement, check_requirement
from iceberg_pyspark.commits.updates import TableUpdate
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    IcebergError,
    InvalidRequestError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.properties import WRITE_METADATA_PATH
from iceberg_pyspark.spec.table_metadata import TableMetadata, metadata_to_bytes
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.local import is_local, local_path
from iceberg_pyspark.storage.metadata_files import (
    metadata_codec,
    read_table_metadata,
    write_table_metadata,
)

_VERSION_FILE = re.compile(r"v(\d{1,18})(?:\.gz\.metadata\.json|\.metadata\.json(?:\.gz)?)")
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_MAX_FORMAT_VERSION = 3
_LOAD_ATTEMPTS = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One version of a table: its number, its file and what is in it."""

    version: int
    metadata_location: str
    metadata: TableMetadata


def is_version_file(name: str) -> bool:
    """Whether a file of a metadata folder is a version of a table.

    >>> is_version_file("v3.gz.metadata.json"), is_version_file("00003-a.metadata.json")
    (True, False)
    """
    return _VERSION_FILE.fullmatch(name) is not None


def load_version(io: FileIO, location: str) -> TableVersion | None:
    """The current version of the table in a folder; None: there is no such table there."""
    for attempt in range(1, _LOAD_ATTEMPTS + 1):
        found = current_version(io, location)
        if found is None:
            return None
        version, metadata_location = found
        try:
            metadata = read_table_metadata(io, metadata_location)
        except StorageError:
            # many commits later the file may have been trimmed away between the look and the read
            if attempt == _LOAD_ATTEMPTS or io.exists(metadata_location):
                raise
            continue
        return TableVersion(version=version, metadata_location=metadata_location, metadata=metadata)
    raise AssertionError("the last attempt returns or raises")


def current_version(io: FileIO, location: str) -> tuple[int, str] | None:
    """Number and file of a table's current version; None: there is none.

    Found by the hint or a listing, and then as far as files go on.
    """
    version = _hinted_version(io, location)
    found = None if version is None else _file_of(io, location, version)
    if version is None or found is None:
        version = _listed_version(io, location)
        found = None if version is None else _file_of(io, location, version)
        if version is None or found is None:
            return None
    while (following := _file_of(io, location, version + 1)) is not None:
        version, found = version + 1, following
    return version, found


def _hinted_version(io: FileIO, location: str) -> int | None:
    try:
        text = io.read_bytes(_hint_file(location)).decode("utf-8").strip()
    except (StorageError, UnicodeDecodeError):
        return None
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _listed_version(io: FileIO, location: str) -> int | None:
    names = (f.location.rsplit("/", 1)[1] for f in io.list_files(_metadata_folder(location)))
    versions = (int(m[1]) for m in map(_VERSION_FILE.fullmatch, names) if m)
    return max(versions, default=None)


def _file_of(io: FileIO, location: str, version: int) -> str | None:
    """The file of a version; the plain name comes first, as Java looks for it."""
    return next((f for f in _version_files(location, version) if io.exists(f)), None)


def _version_files(location: str, version: int) -> tuple[str, ...]:
    return tuple(f"{_metadata_folder(location)}/v{version}{suffix}" for suffix in _SUFFIXES)


def _hint_file(location: str) -> str:
    return f"{_metadata_folder(location)}/version-hint.text"


def _metadata_folder(location: str) -> str:
    return f"{location}/metadata"


def create_first_version(io: FileIO, location: str, metadata: TableMetadata) -> TableVersion:
    """Publish version 1; raises `TableAlreadyExistsError` where the folder is a table."""
    _check(metadata, location)
    if current_version(io, location) is not None:
        raise _taken(location)
    try:
        # always the plain name: two creators must race for the same one
        file = _publish(io, location, 1, _SUFFIXES[0], metadata)
    except CommitConflictError as e:
        raise _taken(location) from e
    if (found := current_version(io, location)) is not None and found[0] > 1:
        later = read_table_metadata(io, found[1])
        # the versions of a table that was dropped may come back under a writer that did not see it
        # go
        if later.table_uuid != metadata.table_uuid:
            io.delete(file)
            raise _taken(location)
    _write_hint(io, location, 1)
    return TableVersion(version=1, metadata_location=file, metadata=metadata)


def _taken(location: str) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(f"folder {location} already holds a table")


def commit_next_version(
    io: FileIO,
    location: str,
    base: TableVersion,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> TableVersion:
    """Publish the version after `base`; raises `CommitConflictError` if there is one."""
    for requirement in requirements:
        check_requirement(requirement, base.metadata)
    metadata = apply_updates(
        base.metadata,
        updates,
        now_ms=now_ms(),
        previous_metadata_location=base.metadata_location,
    )
    if metadata is base.metadata:
        return base
    _check(metadata, location)
    version = base.version + 1
    # by what the base says, not the new metadata: writers that race for a version then race for
    # one name
    gzipped = metadata_codec(base.metadata.properties) == "gzip"
    suffix = _SUFFIXES[1] if gzipped else _SUFFIXES[0]
    file = _publish(io, location, version, suffix, metadata)
    if not _still_there(io, base):
        # the base is gone: the table was dropped, or so many commits passed that versions were
        # trimmed and the name was free again; nothing that counts follows from our version
        io.delete(file)
        raise CommitConflictError(
            f"table {location} moved on from version {base.version} long ago; refresh and retry"
        )
    _write_hint(io, location, version)
    delete_trimmed_metadata(io, base.metadata, metadata)
    return TableVersion(version=version, metadata_location=file, metadata=metadata)


def _publish(io: FileIO, location: str, version: int, suffix: str, metadata: TableMetadata) -> str:
    file = f"{_metadata_folder(location)}/v{version}{suffix}"
    others = [f for f in _version_files(location, version) if f != file]
    conflict = (
        f"version {version} of table {location} was published by another writer; refresh and retry"
    )
    if any(io.exists(f) for f in others):
        raise CommitConflictError(conflict)
    try:
        write_table_metadata(io, metadata, file)
    except StorageError as e:
        _look_what_happened(io, file, metadata, conflict, e)
    if any(io.exists(f) for f in others):
        # a writer that changes the codec took the other name in the same moment; it does not look
        # again
        io.delete(file)
        raise CommitConflictError(conflict)
    return file


def _look_what_happened(
    io: FileIO, file: str, metadata: TableMetadata, conflict: str, error: StorageError
) -> None:
    """Return if the file is the one we wrote; else raise what the failed write came to."""
    try:
        if not io.exists(file):
            if isinstance(error, FileAlreadyExistsError):
                raise CommitConflictError(conflict) from error
            raise error
        found = read_table_metadata(io, file)
    except (StorageError, IcebergError) as e:
        if e is error or isinstance(e, CommitConflictError):
            raise
        raise CommitStateUnknownError(
            f"{file} may have been published ({error}), and looking failed ({e}); look at the "
            "table "
            "before trying again and delete nothing"
        ) from error
    if metadata_to_bytes(found) != metadata_to_bytes(metadata):
        raise CommitConflictError(conflict) from error


def _still_there(io: FileIO, base: TableVersion) -> bool:
    if not io.exists(base.metadata_location):
        return False
    found = read_table_metadata(io, base.metadata_location)
    return (found.table_uuid, found.last_updated_ms) == (
        base.metadata.table_uuid,
        base.metadata.last_updated_ms,
    )


def _write_hint(io: FileIO, location: str, version: int) -> None:
    # the commit is done; readers find their way without the hint
    try:
        io.write_bytes(_hint_file(location), str(version).encode("ascii"))
    except StorageError as e:
        _log.warning("could not write the version hint of table %s: %s", location, e)


def drop_versions(io: FileIO, location: str) -> bool:
    """Take the table out of a folder; all other files stay. False: there was no table.

    The last metadata stays as `dropped-v<N>-<uuid>.metadata.json`, from which the table can be
    registered in another catalog. Versions go oldest first, so that until the last one is gone the
    table is whole.
    """
    current = load_version(io, location)
    if current is None:
        return False
    while current is not None:
        _keep_as_dropped(io, location, current)
        io.delete(_hint_file(location))
        for version, file in sorted(_all_versions(io, location)):
            if version <= current.version:
                io.delete(file)
        # a commit that won the race against this drop goes with it
        current = load_version(io, location)
    return True


def _all_versions(io: FileIO, location: str) -> list[tuple[int, str]]:
    found = []
    for info in io.list_files(_metadata_folder(location)):
        if m := _VERSION_FILE.fullmatch(info.location.rsplit("/", 1)[1]):
            found.append((int(m[1]), info.location))
    return found


def _keep_as_dropped(io: FileIO, location: str, current: TableVersion) -> None:
    name = f"dropped-v{current.version}-{current.metadata.table_uuid}.metadata.json"
    try:
        write_table_metadata(io, current.metadata, f"{_metadata_folder(location)}/{name}")
    except FileAlreadyExistsError:
        # a drop that was cut short left it
        return


def _check(metadata: TableMetadata, location: str) -> None:
    if metadata.format_version > _MAX_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"table {location}: tables of a file system end with format version "
            f"{_MAX_FORMAT_VERSION}; "
            "use a catalog for newer ones"
        )
    if not _same_place(metadata.location, location):
        raise InvalidRequestError(
            f"table in folder {location}: its location cannot be {metadata.location}; a table of "
            "a file system stays "
            "in its folder (a moved or copied one can be read, not written)"
        )
    if WRITE_METADATA_PATH in metadata.properties:
        raise InvalidRequestError(
            f"table {location}: property '{WRITE_METADATA_PATH}' cannot be set; the metadata of a "
            "table of a "
            "file system is found in its folder only"
        )


def _same_place(a: str, b: str) -> bool:
    if a.rstrip("/") == b.rstrip("/"):
        return True
    return (
        is_local(a)
        and is_local(b)
        and os.path.realpath(local_path(a)) == os.path.realpath(local_path(b))
    )
