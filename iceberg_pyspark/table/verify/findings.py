"""The result of a verification: broken rules, and where; read errors become findings too.

Decoded files are cached by name for equal stores. A verification must read the present content of
the files, so its store is equal to no other store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias, cast

from iceberg_pyspark.display import printable
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    LocationRefusedError,
    StorageError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.places import check_scheme

Problem: TypeAlias = tuple[str, str]
"""A rule's name, and a description of the problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that a table breaks; `rules.py` has the rules by name.

    `snapshot_id` is the first snapshot with the problem, or None for a problem of the whole table;
    `file` is the wrong file, or the file with a wrong statement about another file; `entry` is the
    position of the entry in that file, counted from 0, if the problem is in one entry.
    """

    rule: str
    snapshot_id: int | None
    file: str
    entry: int | None = None
    what: str

    def __str__(self) -> str:
        where = self.file if self.entry is None else f"{self.file}, entry {self.entry}"
        snapshot = "" if self.snapshot_id is None else f"snapshot {self.snapshot_id}: "
        return printable(f"{self.rule}: {snapshot}{where}: {self.what}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TableVerification:
    """The findings about one version of a table, which `metadata_location` identifies.

    Its text has a line for each finding, and a summary line.
    """

    table: str
    metadata_location: str
    snapshots: int
    manifests: int
    files_were_checked: bool
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the result by field name, in JSON types."""
        return {"ok": self.ok, **asdict(self), "findings": [asdict(f) for f in self.findings]}

    @property
    def summary(self) -> str:
        """A summary of the result in one line."""
        count = len(self.findings)
        verdict = f"{count} finding{'s' * (count != 1)}" if count else "nothing wrong"
        files = "data files were checked" if self.files_were_checked else "no data file was checked"
        return printable(
            f"{self.table}: {verdict} in {_count_text(self.snapshots, 'snapshot')} and "
            f"{_count_text(self.manifests, 'manifest')}; {files}"
        )

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.findings), self.summary])


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


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
