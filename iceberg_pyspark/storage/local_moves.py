"""Files of the local file system that another program has written, given their place in a table.

With both steps the counterpart of `LocalFileIO.open_output`, whose files are safe on disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil

from iceberg_pyspark.errors import FileAlreadyExistsError, StorageError
from iceberg_pyspark.storage.local import local_path


def files_below(location: str) -> list[tuple[str, str]]:
    """Folder and name of every file below a folder, relative to it, in the order of both."""
    top = local_path(location)
    files = []
    for folder, _, names in os.walk(top):
        relative = os.path.relpath(folder, top)
        files += [(relative, name) for name in names]
    return sorted(files)


def sync_file(location: str) -> int:
    """Have a finished file on disk; its size."""
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
    """Give a file another name on the same file system, one that nobody else gives."""
    target = local_path(location)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            raise FileAlreadyExistsError(f"cannot move {source} to {location}: it exists already")
        os.rename(local_path(source), target)
    except OSError as e:
        raise StorageError(f"cannot move {source} to {location}: {e.strerror or e}") from e


def remove_folder(location: str) -> None:
    """Remove a folder with all that is in it; what cannot be removed is left."""
    with contextlib.suppress(OSError):
        shutil.rmtree(local_path(location))
