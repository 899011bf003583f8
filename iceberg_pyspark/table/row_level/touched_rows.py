"""Merges the results of tasks: new files, removed positions by data file, counts.

At most one source row may match a target row, in all tasks together, because the result would be
ambiguous otherwise. Spark's MERGE raises the same error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyroaring import BitMap64

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.row_level.change_task import Op, TaskChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """The counts of changed rows, and the id of the snapshot that the operation created.

    Without any change, `snapshot_id` is the id of the unchanged snapshot. `copied` rows were
    written again unchanged, because their files were rewritten.
    """

    snapshot_id: int | None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    copied: int = 0


@dataclass(frozen=True, kw_only=True)
class TouchedRows:
    """The new files and the removed rows, by data file path, of a whole operation."""

    data_files: tuple[DataFile, ...] = ()
    removed_positions: Mapping[str, BitMap64] = field(default_factory=dict)
    duplicate_match: str | None = None
    counts: Mapping[Op, int] = field(default_factory=dict)

    @property
    def deleted_count(self) -> int:
        """The number of deleted rows.

        They are counted by position, if there are positions: several rows of a source may have
        deleted the same row.
        """
        if not self.removed_positions:
            return self.counts.get(Op.DELETE, 0)
        return sum(map(len, self.removed_positions.values())) - self.counts.get(Op.UPDATE, 0)

    def check_single_matches(self, table: str) -> None:
        """Raise `InvalidRequestError` if several source rows match one target row."""
        if self.duplicate_match is not None:
            raise InvalidRequestError(
                f"MERGE into {table}: several rows of the source match one row of the table (in "
                f"{self.duplicate_match}), so the result is ambiguous; make the source's "
                "keys unique, or the condition more precise"
            )


def unite(tasks: Iterable[TaskChanges], data_files: Iterable[DataFile] = ()) -> TouchedRows:
    """Return the merged changes of all tasks; bitmaps are merged one task at a time.

    `data_files` are new files besides those of the tasks.
    """
    files = list(data_files)
    removed: dict[str, BitMap64] = {}
    unchanged: dict[str, BitMap64] = {}
    counts: dict[Op, int] = {}
    duplicate_match: str | None = None
    for task in tasks:
        files.extend(task.data_files)
        for op, count in task.counts.items():
            counts[op] = counts.get(op, 0) + count
        duplicate_match = duplicate_match or task.duplicate_match
        for serialized, bitmaps in (
            (task.removed_positions, removed),
            (task.unchanged_positions, unchanged),
        ):
            for path, data in serialized.items():
                duplicate_match = _add(bitmaps, path, data) or duplicate_match
    for path, bitmap in unchanged.items():
        if path in removed and removed[path].intersect(bitmap):
            duplicate_match = path
    return TouchedRows(
        data_files=tuple(files),
        removed_positions=removed,
        duplicate_match=duplicate_match,
        counts=counts,
    )


def _add(bitmaps: dict[str, BitMap64], path: str, data: bytes) -> str | None:
    """Add a bitmap; return the path if a position was already in the earlier bitmap."""
    bitmap = BitMap64.deserialize(data)
    earlier = bitmaps.get(path)
    if earlier is None:
        bitmaps[path] = bitmap
        return None
    twice = path if earlier.intersect(bitmap) else None
    bitmaps[path] = earlier | bitmap
    return twice
