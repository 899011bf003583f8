"""Folders of the local file system, for catalogs whose namespaces are folders.

Object stores have no folders, so `FileIO` does not include them. Failures are `StorageError`s that
name the folder.
"""

from __future__ import annotations

import contextlib
import errno
import os

from iceberg_pyspark.storage.files.local import local_errors, local_path


def folder_exists(location: str) -> bool:
    """Return whether a folder with the name exists."""
    with local_errors("look for folder", location):
        return os.path.isdir(local_path(location))


def list_folder(location: str) -> tuple[list[str], list[str]]:
    """Return the sorted names of subfolders and of files; empty lists for a missing folder."""
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


def create_folder(location: str) -> None:
    """Create a folder and its parents; raise `FileAlreadyExistsError` if the name exists."""
    with local_errors("create folder", location):
        path = local_path(location)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkdir(path)


def remove_empty_folder(location: str) -> bool:
    """Remove a folder; return False if it is not empty, True if it is removed or missing."""
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


def remove_empty_folders(location: str) -> None:
    """Remove the empty folders of a tree, including the top folder if it becomes empty."""
    with local_errors("remove folder", location):
        for folder, _folders, files in os.walk(local_path(location), topdown=False):
            if not files:
                with contextlib.suppress(OSError):  # not empty
                    os.rmdir(folder)
