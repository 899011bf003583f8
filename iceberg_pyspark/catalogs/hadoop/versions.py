"""The versions of a table without a catalog: `metadata/v<N>.metadata.json`, the highest is current.

Specification, "File System Tables"; Java's HadoopTableOperations. `version-hint.text` only saves a
listing: the hint may be missing, outdated or invalid. `folder_versions.py` creates and deletes
versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO

_VERSION_FILE = re.compile(r"v(\d{1,18})(?:\.gz\.metadata\.json|\.metadata\.json(?:\.gz)?)")
SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
"""The possible file name suffixes of a version; if several files exist, the first suffix counts."""
_LOAD_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """One version of a table: its number, its metadata file and the metadata."""

    version: int
    metadata_location: str
    metadata: TableMetadata


def is_version_file(name: str) -> bool:
    """Return whether a file in a metadata folder is a version of a table.

    >>> is_version_file("v3.gz.metadata.json"), is_version_file("00003-a.metadata.json")
    (True, False)
    """
    return _VERSION_FILE.fullmatch(name) is not None


def load_version(io: FileIO, location: str) -> TableVersion | None:
    """Load the current version of the table in a folder; None if there is no such table."""
    for attempt in range(1, _LOAD_ATTEMPTS + 1):
        current = current_version(io, location)
        if current is None:
            return None
        version, metadata_location = current
        try:
            metadata = read_table_metadata(io, metadata_location)
        except StorageError:
            # concurrent commits may have deleted the file between the listing and the read
            if attempt == _LOAD_ATTEMPTS or io.exists(metadata_location):
                raise
            continue
        return TableVersion(version=version, metadata_location=metadata_location, metadata=metadata)
    raise AssertionError("the last attempt returns or raises")


def current_version(io: FileIO, location: str) -> tuple[int, str] | None:
    """Return the number and file of a table's current version, or None if there is none.

    Start with the version from the hint, or else from a listing, and continue while the next
    version exists.
    """
    version = hinted_version(io, location)
    file = None if version is None else _file_of(io, location, version)
    if version is None or file is None:
        version = _highest_version(io, location)
        file = None if version is None else _file_of(io, location, version)
        if version is None or file is None:
            return None
    while (following := _file_of(io, location, version + 1)) is not None:
        version, file = version + 1, following
    return version, file


def hinted_version(io: FileIO, location: str) -> int | None:
    """Return the version number in the hint, or None if the hint is missing or not a number."""
    text = _hint(io, location)
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def named_metadata_file(io: FileIO, location: str) -> str | None:
    """Return the existing metadata file that the hint names without its suffix, or None."""
    name = _hint(io, location)
    if re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z-]{0,99}", name) is None:
        return None
    files = (f"{versions_folder(location)}/{name}{suffix}" for suffix in SUFFIXES)
    return next((f for f in files if io.exists(f)), None)


def _hint(io: FileIO, location: str) -> str:
    try:
        return io.read_bytes(hint_file(location)).decode("utf-8").strip()
    except (StorageError, UnicodeDecodeError):
        return ""


def _highest_version(io: FileIO, location: str) -> int | None:
    return max((version for version, _ in all_versions(io, location)), default=None)


def all_versions(io: FileIO, location: str) -> list[tuple[int, str]]:
    """Return the numbers and files of all existing versions, in the order of the listing."""
    versions = []
    for info in io.list_files(versions_folder(location)):
        if m := _VERSION_FILE.fullmatch(info.location.rsplit("/", 1)[1]):
            versions.append((int(m[1]), info.location))
    return versions


def _file_of(io: FileIO, location: str, version: int) -> str | None:
    """Return the existing file of a version; the uncompressed name comes first, as in Java."""
    return next((f for f in version_files(location, version) if io.exists(f)), None)


def version_files(location: str, version: int) -> tuple[str, ...]:
    """Return the possible file names of a version, in order of precedence."""
    return tuple(f"{versions_folder(location)}/v{version}{suffix}" for suffix in SUFFIXES)


def hint_file(location: str) -> str:
    """Return the location of the version hint."""
    return f"{versions_folder(location)}/version-hint.text"


def versions_folder(location: str) -> str:
    """Return the folder that contains a table's versions."""
    return f"{location}/metadata"
