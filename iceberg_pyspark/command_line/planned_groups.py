"""The groups of a plan of a rewrite of data files, as the rows of a short table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iceberg_pyspark.table.maintenance.rewrites.rewrite_reasons import PlannedGroup

COLUMNS = ("group", "partition", "files", "bytes", "new files", "reasons")
MAX_ROWS = 20
"""The most groups that are printed; JSON has all."""


def group_rows(groups: Sequence[PlannedGroup]) -> list[tuple[str, ...]]:
    """Return the rows of the table: one per group, and one for the groups that are left out."""
    rows: list[tuple[str, ...]] = [
        (
            str(number),
            "(other specs)" if group.partition is None else group.partition,
            str(group.data_files_count),
            str(group.bytes_count),
            str(group.new_files_count),
            ", ".join(f"{count} {reason}" for reason, count in group.reasons.items()),
        )
        for number, group in enumerate(groups[:MAX_ROWS], start=1)
    ]
    if rest := groups[MAX_ROWS:]:
        files = sum(group.data_files_count for group in rest)
        size = sum(group.bytes_count for group in rest)
        rows.append(("...", f"({len(rest)} more groups)", str(files), str(size), "", ""))
    return rows
