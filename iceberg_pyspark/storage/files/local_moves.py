"""Move local files that another program has written into a table.

`sync_file` and `move_file` together correspond to `LocalFileIO.open_output`, whose files are safely
on disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil

from iceberg_pyspark.errors import FileAlreadyExistsError, StorageError
from iceberg_pyspark.storage.files.local import local_path


def files_below(location: str) -> list[tuple[str, str]]:
    """Return the relative folder and the name of every file below a folder, sorted by both."""
    top = local_path(location)
    files = []
    for folder, _, names in os.walk(top):
        relative = os.path.relpath(folder, top)
        files += [(relative, name) for name in names]
    return sorted(files)


def sync_file(location: str) -> int:
    """Sync a finished file to disk and return its size in bytes."""
    try:
        descriptor = os.open(local_path(location), os.O_RDONLY)
        try:
            os.fsync(descriptor)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    except OSError as e:
        raise StorageError(f"cannot sync {location}: {e.strerror or e}") from e


def move_file(source: str, location: str) -> None:
    """Rename a file within one file system; no other process may use the new name."""
    target = local_path(location)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            raise FileAlreadyExistsError(f"cannot move {source} to {location}: it exists already")
        os.rename(local_path(source), target)
    except OSError as e:
        raise StorageError(f"cannot move {source} to {location}: {e.strerror or e}") from e


def remove_folder(location: str) -> None:
    """Remove a folder with its content; anything that cannot be removed stays."""
    with contextlib.suppress(OSError):
        shutil.rmtree(local_path(location))
