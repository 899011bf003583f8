"""Folders of stores that are not local, for catalogs whose namespaces are folders.

HDFS has folders. An object store has only names, so a folder is there as long as a name begins with
it. One that is to be there without a file holds an empty file of a name that other programs hide.
The counterpart for local files is `folders.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from iceberg_pyspark.errors import FileAlreadyExistsError
from iceberg_pyspark.storage.folders import (
    create_folder,
    folder_exists,
    list_folder,
    remove_empty_folder,
    remove_empty_folders,
)
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO
from iceberg_pyspark.storage.object_store_io import ObjectStoreFileIO

_MARKER = ".iceberg-folder"


class Folders(Protocol):
    """What a catalog does with folders."""

    def exists(self, location: str) -> bool:
        """Whether there is a folder of that name."""
        ...

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Names of a folder's folders and files, both sorted; nothing if it is not there."""
        ...

    def create(self, location: str) -> None:
        """Make a folder; raises `FileAlreadyExistsError` where one of that name is."""
        ...

    def remove_empty(self, location: str) -> bool:
        """Remove an empty folder; False: it is not empty and stays. True also without a folder."""
        ...

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree, and itself where nothing else is in it."""
        ...


class LocalFolders:
    """Folders of the local file system."""

    def exists(self, location: str) -> bool:
        """Whether there is a folder of that name."""
        return folder_exists(location)

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Names of a folder's folders and files, both sorted."""
        return list_folder(location)

    def create(self, location: str) -> None:
        """Make a folder and its parents."""
        create_folder(location)

    def remove_empty(self, location: str) -> bool:
        """Remove an empty folder."""
        return remove_empty_folder(location)

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree."""
        remove_empty_folders(location)


@dataclass(frozen=True, slots=True)
class ObjectFolders:
    """Folders of an object store; a table that is made meanwhile keeps its folder."""

    io: ObjectStoreFileIO

    def exists(self, location: str) -> bool:
        """Whether any name begins with that of the folder."""
        return any(self.io.list_folder(location))

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Names of a folder's folders and files, both sorted."""
        folders, files = self.io.list_folder(location)
        return folders, [name for name in files if name != _MARKER]

    def create(self, location: str) -> None:
        """Make a folder."""
        if self.exists(location):
            raise FileAlreadyExistsError(f"cannot create folder {location}: it exists already")
        self.io.create_exclusive(f"{location}/{_MARKER}", b"")

    def remove_empty(self, location: str) -> bool:
        """Remove an empty folder."""
        if any(self.list(location)):
            return False
        self.io.delete(f"{location}/{_MARKER}")
        return True

    def remove_empty_below(self, location: str) -> None:
        """Nothing to do: without a file there is no folder."""


@dataclass(frozen=True, slots=True)
class HdfsFolders:
    """Folders of HDFS."""

    io: HdfsFileIO

    def exists(self, location: str) -> bool:
        """Whether there is a folder of that name."""
        return self.io.folder_exists(location)

    def list(self, location: str) -> tuple[list[str], list[str]]:
        """Names of a folder's folders and files, both sorted."""
        return self.io.list_folder(location)

    def create(self, location: str) -> None:
        """Make a folder and its parents."""
        self.io.create_folder(location)

    def remove_empty(self, location: str) -> bool:
        """Remove an empty folder."""
        return self.io.remove_empty_folder(location)

    def remove_empty_below(self, location: str) -> None:
        """Remove the empty folders of a tree."""
        for name in self.io.list_folder(location)[0]:
            self.remove_empty_below(f"{location}/{name}")
        self.io.remove_empty_folder(location)
