"""Builds snapshot summaries. Specification, Appendix F; keys and conditions are Java's.

Values are strings. A total is written only if the parent's summary has it, because a wrong total is
worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from iceberg_pyspark.changes.manifest_changes import SnapshotOperation
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.snapshots import Snapshot

WRITE_ID = "iceberg-pyspark.write-id"
"""A key of this project: the uuid of the write, which identifies the snapshot of a commit."""

REPLACE_PARTITIONS = "replace-partitions"
"""Java's key that marks a dynamic overwrite; its value is "true"."""


@dataclass(slots=True)
class _Counts:
    """The totals of a set of files."""

    files_size: int = 0
    data_files: int = 0
    delete_files: int = 0
    equality_delete_files: int = 0
    position_delete_files: int = 0
    dvs: int = 0
    records: int = 0
    position_deletes: int = 0
    equality_deletes: int = 0

    def add(self, f: DataFile) -> None:
        """Count one file."""
        if f.is_deletion_vector and f.content_size_in_bytes is not None:
            self.files_size += f.content_size_in_bytes
        else:
            self.files_size += f.file_size_in_bytes
        match f.content:
            case FileContent.DATA:
                self.data_files += 1
                self.records += f.record_count
            case FileContent.POSITION_DELETES:
                self.delete_files += 1
                self.position_deletes += f.record_count
                if f.is_deletion_vector:
                    self.dvs += 1
                else:
                    self.position_delete_files += 1
            case FileContent.EQUALITY_DELETES:
                self.delete_files += 1
                self.equality_delete_files += 1
                self.equality_deletes += f.record_count


class _Changes:
    """Added and removed counts, of the table or of one partition."""

    def __init__(self) -> None:
        self.added_counts = _Counts()
        self.removed_counts = _Counts()

    def entries(self) -> dict[str, int]:
        """Return the summary keys and values that are above zero."""
        added_counts, removed_counts = self.added_counts, self.removed_counts
        counts = {
            "added-files-size": added_counts.files_size,
            "removed-files-size": removed_counts.files_size,
            "added-data-files": added_counts.data_files,
            "deleted-data-files": removed_counts.data_files,
            "added-equality-delete-files": added_counts.equality_delete_files,
            "removed-equality-delete-files": removed_counts.equality_delete_files,
            "added-position-delete-files": added_counts.position_delete_files,
            "removed-position-delete-files": removed_counts.position_delete_files,
            "added-dvs": added_counts.dvs,
            "removed-dvs": removed_counts.dvs,
            "added-delete-files": added_counts.delete_files,
            "removed-delete-files": removed_counts.delete_files,
            "added-records": added_counts.records,
            "deleted-records": removed_counts.records,
            "added-position-deletes": added_counts.position_deletes,
            "removed-position-deletes": removed_counts.position_deletes,
            "added-equality-deletes": added_counts.equality_deletes,
            "removed-equality-deletes": removed_counts.equality_deletes,
        }
        return {key: value for key, value in counts.items() if value > 0}


_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


def snapshot_summary(
    operation: SnapshotOperation,
    added_files: Iterable[DataFile],
    removed_files: Iterable[DataFile],
    *,
    parent: Snapshot | None,
    partition_path: Callable[[DataFile], str],
    partition_limit: int,
    manifest_counts: Mapping[str, int],
    properties: Mapping[str, str],
) -> dict[str, str]:
    """Return the summary of a new snapshot.

    `manifest_counts` has `manifests-created`, `-kept` and `-replaced`. `properties` are additional
    entries that the user asks for; they cannot override the computed entries.
    """
    table = _Changes()
    partitions: dict[str, _Changes] = {}
    for f in added_files:
        table.added_counts.add(f)
        partitions.setdefault(partition_path(f), _Changes()).added_counts.add(f)
    for f in removed_files:
        table.removed_counts.add(f)
        partitions.setdefault(partition_path(f), _Changes()).removed_counts.add(f)
    changes = table.entries()
    summary: dict[str, str] = {"operation": operation}
    summary |= {key: str(value) for key, value in changes.items()}
    summary["changed-partition-count"] = str(len(partitions))
    if 0 < len(partitions) <= partition_limit:
        summary["partition-summaries-included"] = "true"
        for path, partition in partitions.items():
            if not path:
                # the only partition of an unpartitioned table is the table
                continue
            summary[f"partitions.{path}"] = ",".join(
                f"{key}={value}" for key, value in partition.entries().items()
            )
    summary |= {key: str(value) for key, value in manifest_counts.items()}
    summary |= _totals(changes, parent)
    return {**properties, **summary}


def _totals(changes: Mapping[str, int], parent: Snapshot | None) -> dict[str, str]:
    totals: dict[str, str] = {}
    for total, plus, minus in _TOTALS:
        before = 0 if parent is None else parent.number(total)
        if before is None:
            continue
        after = before + changes.get(plus, 0) - changes.get(minus, 0)
        if after >= 0:
            totals[total] = str(after)
    return totals
