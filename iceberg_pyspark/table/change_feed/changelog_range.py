"""The change feed that Spark 4.2 and newer ask a catalog for: its columns, and ranges of versions.

The version of a commit is the sequence number of its snapshot: versions rise from commit to commit,
as ids do not. Rows of format version 3 have row ids, by which Spark itself leaves out rows that
were only copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spec.metadata_columns import (
    CHANGE_TYPE,
    COMMIT_SEQUENCE_NUMBER,
    COMMIT_TIMESTAMP,
    ROW_LINEAGE_VERSION,
    lineage_columns,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.metadata_tables.changes_table import ChangeForm, commit_times_us
from iceberg_pyspark.table.metadata_tables.lookup import changing_snapshots
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector

CHANGELOG = "changelog"
"""The table of changes as Spark's change feed has them, with copied rows."""

NET_CHANGELOG = "net_changelog"
"""The same without copied rows."""

FORMS = {
    CHANGELOG: ChangeForm(insert="insert", delete="delete"),
    NET_CHANGELOG: ChangeForm(insert="insert", delete="delete", compares=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogRange:
    """The versions or times of a feed; without a bound, it begins or ends where the table does.

    A version is a sequence number, the id of a snapshot, or the name of a branch or tag.
    """

    start_version: str | None = None
    end_version: str | None = None
    start_time_us: int | None = None
    end_time_us: int | None = None
    start_inclusive: bool = True
    end_inclusive: bool = True


def feed_columns(table: str, metadata: TableMetadata, schema: Schema) -> Schema:
    """Return the columns that the feed has after those of the table's schema.

    Raise `InvalidRequestError` if the schema has one of their names.
    """
    lineage = (replace(f, required=True) for f in lineage_columns(metadata.format_version))
    version = replace(COMMIT_SEQUENCE_NUMBER, name="_commit_version")
    described = (CHANGE_TYPE, version, COMMIT_TIMESTAMP, *lineage)
    names = {f.name for f in schema.fields}
    clashing = [f.name for f in described if f.name in names]
    if clashing:
        raise InvalidRequestError(
            f"table {table} has columns with the names of columns of its change feed "
            f"({', '.join(clashing)}); rename them to read it"
        )
    return Schema(fields=described)


def feed_of(table: LoadedTable, *, deduplication: str, compute_updates: bool) -> str:
    """Return which feed has what Spark asks for; raise `InvalidRequestError` for no feed.

    `deduplication` is a mode of Spark, in its spelling of an enum.
    """
    if table.metadata.format_version >= ROW_LINEAGE_VERSION:
        return CHANGELOG
    wanted = "computeUpdates" if compute_updates else "deduplicationMode netChanges"
    if compute_updates or deduplication == "NET_CHANGES":
        raise InvalidRequestError(
            f"table {table.identifier}: {wanted} matches rows by their row ids, which tables have "
            "since format version 3; leave it out, upgrade the table, or match rows by columns "
            "with the procedure create_changelog_view"
        )
    return CHANGELOG if deduplication == "NONE" else NET_CHANGELOG


def selector_of_range(
    table: LoadedTable, wanted: ChangelogRange, branch: str | None
) -> SnapshotSelector:
    """Return the selector of the snapshots in a range.

    Raise `NoSuchSnapshotError` if some of them are not known.
    """
    lineage = changing_snapshots(table, SnapshotSelector(branch=branch))[::-1]
    if not lineage:
        return SnapshotSelector(branch=branch)
    versions = _Versions(table, lineage)
    times_us = commit_times_us(table.metadata, lineage[-1].snapshot_id)
    chosen = list(lineage)
    if wanted.start_version is not None:
        first = versions.number(wanted.start_version, last=lineage[-1].sequence_number + 1)
        first += not wanted.start_inclusive
        versions.check_begin(first < lineage[0].sequence_number, wanted.start_version)
        chosen = [s for s in chosen if s.sequence_number >= first]
    if wanted.end_version is not None:
        last = versions.number(wanted.end_version, last=lineage[-1].sequence_number)
        last -= not wanted.end_inclusive
        chosen = [s for s in chosen if s.sequence_number <= last]
    if wanted.start_time_us is not None:
        first = wanted.start_time_us + (not wanted.start_inclusive)
        is_before = first < times_us[lineage[0].snapshot_id]
        versions.check_begin(is_before, "at the starting timestamp")
        chosen = [s for s in chosen if times_us[s.snapshot_id] >= first]
    if wanted.end_time_us is not None:
        last = wanted.end_time_us - (not wanted.end_inclusive)
        chosen = [s for s in chosen if times_us[s.snapshot_id] <= last]
    if any(s.sequence_number == 0 for s in (lineage[-1], *chosen)):
        raise InvalidRequestError(
            f"table {table.identifier}: snapshots of format version 1 have no sequence number, "
            "which is the version in a change feed; begin after them, or read the metadata table "
            "changes"
        )
    if not chosen:
        head_id = lineage[-1].snapshot_id
        return SnapshotSelector(branch=branch, start_snapshot_id=head_id)
    has_end = wanted.end_version is not None or wanted.end_time_us is not None
    return SnapshotSelector(
        branch=branch,
        start_snapshot_id=chosen[0].parent_snapshot_id,
        end_snapshot_id=chosen[-1].snapshot_id if has_end else None,
    )


class _Versions:
    """The versions of a lineage, whose oldest snapshot is first."""

    def __init__(self, table: LoadedTable, lineage: Sequence[Snapshot]) -> None:
        self._table = table
        self._lineage = lineage

    def number(self, version: str, *, last: int) -> int:
        """Return a sequence number; raise `NoSuchSnapshotError` if it is greater than the last."""
        metadata = self._table.metadata
        numbers = {s.snapshot_id: s.sequence_number for s in self._lineage}
        if version in metadata.refs or not version.isdecimal():
            snapshot_id = metadata.ref_snapshot(version).snapshot_id
        else:
            snapshot_id = int(version)
            if snapshot_id <= last:
                return snapshot_id
        if snapshot_id not in numbers:
            raise NoSuchSnapshotError(
                f"table {self._table.identifier} has no version {version}: versions are sequence "
                "numbers or ids of snapshots, branches or tags of one history, whose newest "
                f"sequence number is {self._lineage[-1].sequence_number}"
            )
        return numbers[snapshot_id]

    def check_begin(self, is_before_oldest: bool, begin: str) -> None:
        """Raise `NoSuchSnapshotError` if the range begins in a part that has expired."""
        oldest = self._lineage[0]
        if is_before_oldest and oldest.parent_snapshot_id is not None:
            raise NoSuchSnapshotError(
                f"table {self._table.identifier}: what changed since version {begin} is not known, "
                f"because snapshots have expired; begin with version {oldest.sequence_number + 1}"
            )


def check_row_ids(table: str, metadata: TableMetadata, snapshots: Sequence[Snapshot]) -> None:
    """Raise `InvalidRequestError` if a row of the feed had no row id yet."""
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return
    for snapshot in snapshots:
        parent = metadata.snapshot_by_id.get(snapshot.parent_snapshot_id or -1)
        is_old = parent is not None and parent.first_row_id is None
        removes_old = is_old and snapshot.operation not in ("append", "replace")
        if snapshot.first_row_id is None or removes_old:
            raise InvalidRequestError(
                f"table {table}: snapshot {snapshot.snapshot_id} changed rows that had no row id "
                "before the table was upgraded to format version 3; begin after version "
                f"{snapshot.sequence_number}, or read the metadata table changes"
            )
