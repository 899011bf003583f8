"""Tracks data and delete files that are written but in no snapshot yet, and removes them.

Only this module removes the files of a failed commit. It requires a proof that no table contains
the commit: either no swap was sent, or the catalog's value that the swap was refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from iceberg_pyspark.changes.outcomes import NeverSent, NotCommitted
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.storage.files.file_io import FileIO

_log = get_logger(__name__)


class WrittenFiles:
    """The files of one operation, until a commit takes ownership of them.

    Leaving its `with` block by an error removes the files. After `hand_over`, only `remove` deletes
    them, which a commit calls with the catalog's refusal.
    """

    def __init__(self, io: FileIO, files: Iterable[DataFile] = ()) -> None:
        self._io = io
        self._files = list(files)
        self._handed_over = False

    def add(self, files: Iterable[DataFile]) -> None:
        """Add more files of the operation."""
        self._files.extend(files)

    @property
    def locations(self) -> frozenset[str]:
        """The locations of the files."""
        return frozenset(f.file_path for f in self._files)

    def hand_over(self) -> None:
        """Give the files to a commit: from now on, a swap may make them part of a table."""
        self._handed_over = True

    def remove(self, proof: NotCommitted) -> None:
        """Delete the files, which are in no snapshot and never will be."""
        # several deletion vectors share a file
        remove_files(self._io, dict.fromkeys(f.file_path for f in self._files), proof)
        self._files.clear()

    def __enter__(self) -> WrittenFiles:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is not None and not self._handed_over:
            self.remove(NeverSent())


def remove_files(io: FileIO, locations: Iterable[str], _proof: NotCommitted) -> None:
    """Delete files of a commit that is in no table; log a file that cannot be deleted."""
    for location in locations:
        try:
            io.delete(location)
        except IcebergError as e:
            # An orphan file is harmless, and orphan removal finds it; the error must not hide the
            # outcome.
            _log.warning("could not delete %s: %s", location, e)
