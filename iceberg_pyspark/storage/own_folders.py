"""The folders whose files a table may delete because they belong to the table.

Another person may have written a table's metadata, and it may name any file, so metadata does not
decide here: the catalog knows the folders (`catalogs/table_folders.py`). Links of the local file
system are resolved before the comparison, so that no link leads out of a folder.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import is_local, local_path
from iceberg_pyspark.storage.files.places import depth, is_below

_METADATA_SUFFIXES = (".metadata.json", ".metadata.json.gz")
_MIN_DEPTH = 2
_LOOKED_UP_SECONDS = 1
_ODD = re.compile(r"[^\w.=+-]|\.\.")
"""Characters that some store may interpret, so that the name refers to another place."""


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Folders that belong to a table completely, and one of which only the metadata files belong.

    The root of a store, a bucket, or a folder directly below `/` never belongs to a table. Without
    folders no file belongs to the table.
    """

    folders: tuple[str, ...] = ()
    metadata_folder: str | None = None

    def owns(self, location: str) -> bool:
        """Return whether the file at a location may be deleted as a part of the table.

        A link is not followed. The folder of a local location is looked up in the file system at
        most once a second.
        """
        return self._real_location(location) is not None

    def delete(self, io: FileIO, location: str) -> bool:
        """Delete the file if it may be deleted as a part of the table; return whether it may.

        In the local file system, the file goes from the folder that was looked at: where a folder
        has become a link since, nothing is deleted, and a `StorageError` is raised.
        """
        real_location = self._real_location(location)
        if real_location is None:
            return False
        if is_local(location) and isinstance(io, DeletionWithoutLinks):
            io.delete_without_links(real_location)
        else:
            io.delete(location)
        return True

    def _real_location(self, location: str) -> str | None:
        """Return the location of an own file without links to folders, None for all others."""
        try:
            for folder in self.folders:
                if (real := _inside(location, folder)) is not None:
                    return real
            if self.metadata_folder is None:
                return None
            return _metadata_file(location, self.metadata_folder)
        except (StorageError, OSError, ValueError):
            # not the location of a file
            return None


@runtime_checkable
class DeletionWithoutLinks(Protocol):
    """A store that can delete local files without following links to folders."""

    def delete_without_links(self, location: str) -> None:
        """Delete a local file; raise `StorageError` if a folder on its path is a link."""
        ...


def _inside(location: str, folder: str) -> str | None:
    """Return the location of a file somewhere below a folder, without links to folders, or None.

    A link to a file counts as the file.
    """
    parent, _, name = location.rpartition("/")
    if name in ("", ".", "..") or not parent:
        return None
    real_parent = _held(parent, name if _ODD.search(name) else "x", folder, _moment())
    return None if real_parent is None else f"{real_parent}/{name}"


def _moment() -> int:
    return int(time.monotonic() / _LOOKED_UP_SECONDS)


@lru_cache(maxsize=4096)
def _held(parent: str, name: str, folder: str, _of_moment: int) -> str | None:
    """Return a folder without links if a name in it is below another folder, otherwise None.

    The answer is cached briefly: many files of a folder are deleted at the same time, and each is
    checked several times.
    """
    location = f"{parent}/{name}"
    if depth(folder) < _MIN_DEPTH or is_local(location) != is_local(folder):
        return None
    if not is_local(location):
        is_inside = is_below(location, folder) and not is_below(folder, location)
        return parent if is_inside else None
    real_folder = os.path.realpath(local_path(folder))
    above, last = os.path.split(local_path(location))
    if last in ("", ".", "..") or depth(real_folder) < _MIN_DEPTH:
        return None
    real_parent = os.path.realpath(above)
    return real_parent if is_below(real_parent, real_folder) else None


def _metadata_file(location: str, folder: str) -> str | None:
    parent, name = posixpath.split(location)
    is_own = is_metadata_file(name) and is_below(folder, parent)
    return _inside(location, folder) if is_own else None


def is_metadata_file(location: str) -> bool:
    """Return whether a location is a table's metadata file, judged by its name.

    >>> is_metadata_file("/t/metadata/v3.gz.metadata.json"), is_metadata_file("/t/data/a.parquet")
    (True, False)
    """
    return location.endswith(_METADATA_SUFFIXES)
