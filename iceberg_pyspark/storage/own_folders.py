"""The folders whose files are a table's own to delete.

A table's metadata may be somebody else's work and may name any file there is, so it has no say
here: which folders these are is what the catalog knows (`catalogs/own_folders.py`). Links of the
local file system are followed before the comparison, so that none leads out of the folder.
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
from iceberg_pyspark.storage.places import depth, is_below

_METADATA_ENDS = (".metadata.json", ".metadata.json.gz")
_LEAST_DEPTH = 2
_LOOKED_UP_SECONDS = 1
_ODD = re.compile(r"[^\w.=+-]|\.\.")
"""What may mean another place, in some store, than a name in a folder."""


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Folders with all that is in them, and one of which only the metadata files are.

    The root of a store, a bucket or a folder right below `/` is never a table's own. Without a
    folder nothing is.
    """

    folders: tuple[str, ...] = ()
    metadata_folder: str | None = None

    def owns(self, location: str) -> bool:
        """Whether the file at a location may be deleted together with what the table is.

        A link is not followed. A local location's folder is looked up in the file system, once a
        second.
        """
        try:
            if any(_is_inside(location, folder) for folder in self.folders):
                return True
            return self.metadata_folder is not None and _is_metadata_file(
                location, self.metadata_folder
            )
        except (StorageError, OSError, ValueError):
            # no location of a file, in no folder
            return False


def _is_inside(location: str, folder: str) -> bool:
    """Whether a file is somewhere below a folder; a link to it counts as the file."""
    parent, _, name = location.rpartition("/")
    if name in ("", ".", "..") or not parent:
        return False
    return _holds(parent, name if _ODD.search(name) else "x", folder, _moment())


def _moment() -> int:
    return int(time.monotonic() / _LOOKED_UP_SECONDS)


@lru_cache(maxsize=4096)
def _holds(parent: str, name: str, folder: str, _of_moment: int) -> bool:
    """Whether what has a name in a folder is below another folder, found out once a moment.

    Many files of a folder are deleted in the same moment, several times asked for each.
    """
    location = f"{parent}/{name}"
    if depth(folder) < _LEAST_DEPTH or is_local(location) != is_local(folder):
        return False
    if not is_local(location):
        return is_below(location, folder) and not is_below(folder, location)
    real_folder = os.path.realpath(local_path(folder))
    above, last = os.path.split(local_path(location))
    if last in ("", ".", "..") or depth(real_folder) < _LEAST_DEPTH:
        return False
    return is_below(os.path.realpath(above), real_folder)


def _is_metadata_file(location: str, folder: str) -> bool:
    parent, name = posixpath.split(location)
    return (
        name.endswith(_METADATA_ENDS) and _is_inside(location, folder) and is_below(folder, parent)
    )
