"""Collects findings, and turns read errors into findings.

Wraps a store so that no file decoded earlier is used.

Decoded files are cached by name for equal stores. A verification must read the present content of
the files, so its store is equal to no other store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    LocationRefusedError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import check_scheme
from iceberg_pyspark.table.verify.findings import Finding


def read_anew(io: FileIO) -> FileIO:
    """Return the same store with another identity; it caches decoded files of its own."""
    return cast("FileIO", _ReadAnew(io))


class _ReadAnew:
    def __init__(self, io: FileIO) -> None:
        self._io = io

    def __getattr__(self, name: str) -> Any:
        return getattr(self._io, name)


@dataclass
class Report:
    """The findings so far; each is reported once, for the first snapshot that has it."""

    io: FileIO
    findings: dict[tuple[str, str, int | None, str], Finding] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    count: int = 0
    """The number of reported problems, including repetitions."""
    _files: set[str] = field(default_factory=set)

    def add(
        self,
        rule: str,
        snapshot_id: int | None,
        file: str,
        problem: str,
        entry: int | None = None,
    ) -> None:
        """Add a finding, unless an equal one exists."""
        self.count += 1
        self._files.add(file)
        finding = Finding(rule=rule, snapshot_id=snapshot_id, file=file, entry=entry, what=problem)
        self.findings.setdefault((rule, file, entry, problem), finding)

    def add_problems(
        self,
        problems: Iterable[tuple[str, str]],
        snapshot_id: int | None,
        file: str,
        entry: int | None = None,
    ) -> None:
        """Add a finding for each pair of a rule's name and a description of the problem."""
        for rule, problem in problems:
            self.add(rule, snapshot_id, file, problem, entry)

    @contextmanager
    def reading(self, snapshot_id: int | None, file: str) -> Iterator[None]:
        """Turn errors of the block about a damaged file into a finding.

        If the file has findings already, no finding is added: the error is usually a consequence.
        Raises the `StorageError` of a store that does not answer, since nothing is known then.
        """
        try:
            yield
        except (InvalidMetadataError, UnsupportedFeatureError, LocationRefusedError) as e:
            self._unreadable(snapshot_id, file, e)
        except StorageError as e:
            if not _is_location(file) or not self.is_missing(snapshot_id, file):
                self._unreadable(snapshot_id, file, e)

    def _unreadable(self, snapshot_id: int | None, file: str, error: Exception) -> None:
        if file not in self._files:
            self.add("readable", snapshot_id, file, str(error))

    def is_missing(self, snapshot_id: int | None, file: str) -> bool:
        """Return whether a file is missing; a missing file becomes a finding."""
        if file not in self.missing and self.io.exists(file):
            return False
        self.missing.add(file)
        self.add("file-exists", snapshot_id, file, "the file is not there")
        return True


def _is_location(file: str) -> bool:
    """Return whether the text can be a location in a store."""
    try:
        check_scheme(file)
    except StorageError:
        return False
    return True
