"""Data and delete files that are written and in no snapshot yet: who may remove them, and when.

This is the one place that removes files of a commit that failed. It asks for the proof that the
commit is in no table: that no swap was sent, or the value with which the catalog refused it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from iceberg_pyspark.commits.outcomes import NeverSent, NotCommitted
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.file_io import FileIO

_log = logging.getLogger(__name__)


class WrittenFiles:
    """The files of one operation, until a commit takes them over.

    Leaving its `with` block by an error removes them. Once `hand_over` was called, only `remove`
    does, which a commit calls with the catalog's refusal.
    """

    def __init__(self, io: FileIO, files: Iterable[DataFile] = ()) -> None:
        self._io = io
        self._files = list(files)
        self._handed_over = False

    def add(self, files: Iterable[DataFile]) -> None:
        """More files of the operation."""
        self._files.extend(files)

    @property
    def locations(self) -> frozenset[str]:
        """Where they are."""
        return frozenset(f.file_path for f in self._files)

    def hand_over(self) -> None:
        """From here on a swap may be under way that makes the files part of a table."""
        self._handed_over = True

    def remove(self, proof: NotCommitted) -> None:
        """Delete the files: no snapshot has them, nor will."""
        # vectors share a file
        remove_files(self._io, dict.fromkeys(f.file_path for f in self._files), proof)
        self._files.clear()

    def __enter__(self) -> WrittenFiles:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None and not self._handed_over:
            self.remove(NeverSent())


def remove_files(io: FileIO, locations: Iterable[str], _proof: NotCommitted) -> None:
    """Delete files written for a commit that is in no table; what cannot be deleted is logged."""
    for location in locations:
        try:
            io.delete(location)
        except IcebergError as e:
            # an orphan is harmless, and orphan removal finds it; the outcome must not change
            _log.warning("could not delete %s: %s", location, e)
