"""Removing dangling deletes: delete files that apply to no data file of a branch any more.

Specification, "Scan Planning". They delete nothing, and are read by nobody; a data file that would
be older than they are cannot come any more, since whatever rewrites files keeps or raises numbers.
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
    """The table as committed, and how many delete files and deletion vectors went.

    With `dry_run`, how many would go now. Raises `ConcurrentChangeError`, `CommitConflictError` and
    `CommitStateUnknownError`.
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
