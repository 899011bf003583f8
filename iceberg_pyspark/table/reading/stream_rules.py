"""What a user asks of a stream: where it begins, what it passes, and how much a batch reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

OverwriteMode = Literal["fail", "skip", "added-files-only"]
EARLIEST, LATEST, CURRENT = "earliest", "latest", "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that a batch reads; None means no limit.

    `max_files` is never exceeded. The file that reaches `max_rows` or `max_bytes` is the last one
    of its batch, so a batch may be larger by a part of a file.
    """

    max_files: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None


NO_LIMITS = BatchLimits()


@dataclass(slots=True)
class BatchRoom:
    """How much more a batch may read."""

    limits: BatchLimits
    files: int = 0
    rows: int = 0
    size: int = 0

    @property
    def is_left(self) -> bool:
        """Whether one more file fits."""
        return (
            self.files < _number(self.limits.max_files)
            and self.rows < _number(self.limits.max_rows)
            and self.size < _number(self.limits.max_bytes)
        )

    def take(self, files: int, rows: int, size: int) -> None:
        """Count files that the batch reads."""
        self.files, self.rows, self.size = self.files + files, self.rows + rows, self.size + size


def _number(limit: int | None) -> float:
    return math.inf if limit is None else limit


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRules:
    """Where a stream begins, and what it does with snapshots that do not append rows.

    At most one of `from_timestamp_ms` (the first snapshot at that time or later) and
    `from_snapshot` is given: `earliest` begins with the oldest snapshot that has not expired,
    `current` with all rows of the current snapshot, `latest` with what follows it, and the id of a
    snapshot or the name of a branch or tag with what follows that snapshot.
    """

    from_timestamp_ms: int | None = None
    from_snapshot: str | None = None
    skips_deletes: bool = False
    overwrites: OverwriteMode = "fail"
