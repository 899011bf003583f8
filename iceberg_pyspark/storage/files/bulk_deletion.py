"""Deletes many files with few requests in stores that can; other stores delete them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.files.file_io import FileIO


@runtime_checkable
class BulkDeletion(Protocol):
    """A `FileIO` that may delete several files with one request."""

    def files_per_request(self, location: str) -> int:
        """Return how many files of a location's store one request deletes; 1 if it cannot."""
        ...

    def delete_files(self, locations: Sequence[str]) -> dict[str, StorageError]:
        """Delete files; return those that could not be deleted, with the reason.

        A missing file is not an error. A file with an error may be deleted if the answer was lost.
        """
        ...


def files_per_request(io: FileIO, location: str) -> int:
    """Return how many files of a location's store one request deletes; 1 if it cannot."""
    return io.files_per_request(location) if isinstance(io, BulkDeletion) else 1


def delete_files(io: FileIO, locations: Sequence[str]) -> dict[str, StorageError]:
    """Delete files in any store; return those that could not be deleted, with the reason.

    A missing file is not an error.
    """
    if isinstance(io, BulkDeletion):
        return io.delete_files(locations)
    failures: dict[str, StorageError] = {}
    for location in locations:
        try:
            io.delete(location)
        except StorageError as e:
            failures[location] = e
    return failures
