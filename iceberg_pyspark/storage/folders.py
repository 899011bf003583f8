"""Folders of all kinds of stores, for catalogs whose namespaces are folders.

The local file system and HDFS have folders. An object store has only names, so a folder exists as
long as a name begins with it, and `FileIO` does not include folders. An empty folder is represented
by an empty file, whose name other programs treat as hidden. Failures are `StorageError`s that name
the folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from typing import Protocol

from iceberg_pyspark.errors import FileAlreadyExistsError
from iceberg_pyspark.storage.files.local import local_errors, local_path
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO

_MARKER = ".iceberg-folder"


class Folders(Protocol):
    """The folder operations that a catalog needs."""

    def exists(self, location: str) -> bool:
        """Return whether a folder with the name exists."""
        ...

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files; empty lists for a missing folder."""
        ...

    def create(self, location: str) -> None:
        """Create a folder; raise `FileAlreadyExistsError` if the name exists."""
        ...

    def remove_empty(self, location: str) -> bool:
        """Remove a folder; return False if it is not empty, True if it is removed or missing."""
        ...

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree, including the top folder if it becomes empty."""
        ...


class LocalFolders:
    """Folders of the local file system."""

    def exists(self, location: str) -> bool:
        """Return whether a folder with the name exists."""
        with local_errors("look for folder", location):
            return os.path.isdir(local_path(location))

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files."""
        folders: list[str] = []
        files: list[str] = []
        with local_errors("list folder", location):
            try:
                with os.scandir(local_path(location)) as entries:
                    for entry in entries:
                        (folders if entry.is_dir() else files).append(entry.name)
            except (FileNotFoundError, NotADirectoryError):
                return [], []
        return sorted(folders), sorted(files)

    def create(self, location: str) -> None:
        """Create a folder and its parents."""
        with local_errors("create folder", location):
            path = local_path(location)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.mkdir(path)

    def remove_empty(self, location: str) -> bool:
        """Remove a folder if it is empty; return False if it is not."""
        with local_errors("remove folder", location):
            try:
                os.rmdir(local_path(location))
            except FileNotFoundError:
                return True
            except OSError as e:
                if e.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
            return True

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree."""
        with local_errors("remove folder", location):
            for folder, _folders, files in os.walk(local_path(location), topdown=False):
                if not files:
                    with contextlib.suppress(OSError):  # not empty
                        os.rmdir(folder)


@dataclass(frozen=True, slots=True)
class ObjectFolders:
    """Folders of an object store; a folder in which a table is created concurrently is kept."""

    io: ObjectStoreFileIO

    def exists(self, location: str) -> bool:
        """Return whether any object name begins with the folder's name."""
        return any(self.io.list_folder(location))

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files."""
        folders, files = self.io.list_folder(location)
        return folders, [name for name in files if name != _MARKER]

    def create(self, location: str) -> None:
        """Create a folder."""
        if self.exists(location):
            raise FileAlreadyExistsError(f"cannot create folder {location}: it exists already")
        self.io.create_exclusive(f"{location}/{_MARKER}", b"")

    def remove_empty(self, location: str) -> bool:
        """Remove a folder if it is empty; return False if it is not."""
        if any(self.list(location)):
            return False
        self.io.delete(f"{location}/{_MARKER}")
        return True

    def remove_empty_below(self, location: str) -> None:
        """Do nothing: without a file there is no folder."""


@dataclass(frozen=True, slots=True)
class HdfsFolders:
    """Folders of HDFS."""

    io: HdfsFileIO

    def exists(self, location: str) -> bool:
        """Return whether a folder with the name exists."""
        return self.io.folder_exists(location)

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Return the sorted names of subfolders and of files."""
        return self.io.list_folder(location)

    def create(self, location: str) -> None:
        """Create a folder and its parents."""
        self.io.create_folder(location)

    def remove_empty(self, location: str) -> bool:
        """Remove a folder if it is empty; return False if it is not."""
        return self.io.remove_empty_folder(location)

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree."""
        for name in self.io.list_folder(location)[0]:
            self.remove_empty_below(f"{location}/{name}")
        self.io.remove_empty_folder(location)
