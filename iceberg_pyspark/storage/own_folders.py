"""The folders whose files a table may delete because they belong to the table.

Another person may have written a table's metadata, and it may name any file, so metadata does not
decide here: the catalog knows the folders (`catalogs/own_folders.py`). Links of the local file
system are resolved before the comparison, so that no link leads out of a folder.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from dataclasses import dataclass
from functools import lru_cache

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.local import is_local, local_path
from iceberg_pyspark.storage.metadata_files import is_metadata_file
from iceberg_pyspark.storage.places import depth, is_below

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
        try:
            if any(_is_inside(location, folder) for folder in self.folders):
                return True
            return self.metadata_folder is not None and _is_metadata_file(
                location, self.metadata_folder
            )
        except (StorageError, OSError, ValueError):
            # not the location of a file
            return False


def _is_inside(location: str, folder: str) -> bool:
    """Return whether a file is somewhere below a folder; a link to a file counts as the file."""
    parent, _, name = location.rpartition("/")
    if name in ("", ".", "..") or not parent:
        return False
    return _holds(parent, name if _ODD.search(name) else "x", folder, _moment())


def _moment() -> int:
    return int(time.monotonic() / _LOOKED_UP_SECONDS)


@lru_cache(maxsize=4096)
def _holds(parent: str, name: str, folder: str, _of_moment: int) -> bool:
    """Return whether a name in one folder is below another folder; the answer is cached briefly.

    Many files of a folder are deleted at the same time, and each is checked several times.
    """
    location = f"{parent}/{name}"
    if depth(folder) < _MIN_DEPTH or is_local(location) != is_local(folder):
        return False
    if not is_local(location):
        return is_below(location, folder) and not is_below(folder, location)
    real_folder = os.path.realpath(local_path(folder))
    above, last = os.path.split(local_path(location))
    if last in ("", ".", "..") or depth(real_folder) < _MIN_DEPTH:
        return False
    return is_below(os.path.realpath(above), real_folder)


def _is_metadata_file(location: str, folder: str) -> bool:
    parent, name = posixpath.split(location)
    return is_metadata_file(name) and _is_inside(location, folder) and is_below(folder, parent)
