"""Removes dangling deletes: delete files that no longer apply to any data file of a branch.

Specification, "Scan Planning". Such files delete nothing, and no scan reads them. No older data
file can appear later, since rewrites keep or raise sequence numbers.
"""

from __future__ import annotations

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, check_same_table
from iceberg_pyspark.commits.conflicts import ConflictChecks
from iceberg_pyspark.commits.snapshot_changes import RewriteFiles
from iceberg_pyspark.maintenance.applied_deletes import applied_deletes
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.manifest_lists import manifests_to_build_on
from iceberg_pyspark.table.changes.commit import Clock
from iceberg_pyspark.table.changes.commit_files import commit_action
from iceberg_pyspark.table.changes.commit_options import CommitOptions


def remove_dangling_deletes(
    catalog: Catalog, table: LoadedTable, io: FileIO, *, branch: str, clock: Clock, dry_run: bool
) -> tuple[LoadedTable, int]:
    """Return the table as committed, and the number of removed delete files and vectors.

    With `dry_run`, return the number that would be removed. Raises `ConcurrentChangeError`,
    `CommitConflictError` and `CommitStateUnknownError`.
    """
    table = check_same_table(table, catalog.load_table(table.identifier))
    metadata = table.metadata
    ref = metadata.refs.get(branch)
    if ref is None:
        return table, 0
    snapshot = metadata.snapshot(ref.snapshot_id)
    dangling = applied_deletes(io, metadata, manifests_to_build_on(io, snapshot)).dangling
    if dry_run or not dangling:
        return table, len(dangling)
    action = RewriteFiles(
        removed_data_paths=frozenset(),
        removed_deletes=dangling,
        checks=ConflictChecks(base_snapshot_id=snapshot.snapshot_id),
    )
    options = CommitOptions(branch=branch)
    return commit_action(catalog, table, io, action, options, clock=clock), len(dangling)
