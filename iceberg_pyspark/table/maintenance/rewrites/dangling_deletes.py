"""Removes dangling deletes: delete files that no longer apply to any data file of a branch.

Specification, "Scan Planning". Such files delete nothing, and no scan reads them. No older data
file can appear later, since rewrites keep or raise sequence numbers.
"""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.maintenance.rewrites.applied_deletes import applied_deletes


def remove_dangling_deletes(
    table: MaintainedTable, *, branch: str, dry_run: bool
) -> tuple[LoadedTable, int]:
    """Return the table as committed, and the number of removed delete files and vectors.

    With `dry_run`, return the number that would be removed. Raises `ConcurrentChangeError`,
    `CommitConflictError` and `CommitStateUnknownError`.
    """
    newest = table.newest()
    metadata = newest.metadata
    ref = metadata.refs.get(branch)
    if ref is None:
        return newest, 0
    snapshot = metadata.snapshot(ref.snapshot_id)
    manifests = manifests_to_build_on(table.io, snapshot)
    dangling = applied_deletes(table.io, metadata, manifests).dangling
    if dry_run or not dangling:
        return newest, len(dangling)
    action = RewriteFiles(
        removed_data_paths=frozenset(),
        removed_deletes=dangling,
        checks=ConflictChecks(base_snapshot_id=snapshot.snapshot_id),
    )
    options = CommitOptions(branch=branch)
    new_table = commit_action(table.catalog, newest, table.io, action, options, clock=table.clock)
    return new_table, len(dangling)
