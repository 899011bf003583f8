"""Defines the result of a verification: broken rules, and where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from iceberg_pyspark.display import printable

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
