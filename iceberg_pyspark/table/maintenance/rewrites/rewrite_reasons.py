"""The reasons for which data files are rewritten, and the groups of a plan that says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class RewriteReason(Enum):
    """The reason for which a rewrite chooses a data file; the value is the phrase of a plan.

    A file has one reason, the first of this list that applies: deletes alone are worth a rewrite,
    a small file only in a group with others.
    """

    ALL_FILES = "rewrite of all files"
    MANY_DELETE_FILES = "many delete files"
    MANY_DELETED_ROWS = "many deleted rows"
    TOO_SMALL = "too small"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """Data files that a rewrite would write together, of `bytes_count` bytes in total.

    `partition` is written as the folders of partitions are, such as `day=2026-01-01`, and empty for
    a table without partitions; it is None for files of other partition specs than that of the new
    files. `new_files_count` is the approximate number of new files of one partition. `reasons` has
    the number of files by the phrase of their reason.
    """

    partition: str | None
    data_files_count: int
    bytes_count: int
    new_files_count: int
    reasons: Mapping[str, int]
