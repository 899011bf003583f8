"""Finds the delete files of a snapshot, and the data files to which each applies.

Specification, "Scan Planning". A delete file that applies to no data file deletes nothing: its data
files were removed, or have deletion vectors, which include its positions.

Removes dangling deletes: delete files that no longer apply to any data file of a branch.

Specification, "Scan Planning". Such files delete nothing, and no scan reads them. No older data
file can appear later, since rewrites keep or raise sequence numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import DeleteFileId, delete_file_id
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.formats.manifest_columns import entries_of_manifests
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.planning.scan_plan import ScanPlan
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable


@dataclass(frozen=True, kw_only=True)
class AppliedDeletes:
    """The delete files of a snapshot, by identity, and the tasks of the files they apply to.

    A task covers a whole data file and has all deletes that apply to the file. `tasks` is keyed by
    the location of the data file. `paths` has the data files of each delete file that applies.
    """

    files: Mapping[DeleteFileId, DataFile]
    tasks: Mapping[str, ScanTask]
    paths: Mapping[DeleteFileId, frozenset[str]]

    @property
    def dangling(self) -> frozenset[DeleteFileId]:
        """The delete files that apply to no data file."""
        return frozenset(self.files.keys() - self.paths.keys())

    def paths_of(self, delete_file: DeleteFileId) -> frozenset[str]:
        """Return the data files to which a delete file applies."""
        return self.paths.get(delete_file, frozenset())


def applied_deletes(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> AppliedDeletes:
    """Return the deletes in a snapshot's manifests."""
    files: dict[DeleteFileId, DataFile] = {}
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES:
            spec = metadata.spec_by_id.get(manifest.partition_spec_id)
            if spec is None:
                raise InvalidMetadataError(
                    f"{manifest.manifest_path} has partition spec {manifest.partition_spec_id}, "
                    f"which table {metadata.location} does not have"
                )
            type_ = partition_type(spec, metadata.schemas_newest_first)
            for entry in read_manifest_entries(io, manifest, type_, drop_deleted=True):
                files[delete_file_id(entry.data_file)] = entry.data_file
    tasks: dict[str, ScanTask] = {}
    paths: dict[DeleteFileId, set[str]] = {}
    if files:
        for task in _plan(io, metadata, manifests, AlwaysTrue()).tasks(None):
            if task.deletes:
                tasks[task.file_path] = task
            for ref in task.deletes:
                paths.setdefault((ref.file_path, ref.content_offset), set()).add(task.file_path)
    return AppliedDeletes(
        files=files,
        tasks=tasks,
        paths={delete_file: frozenset(data_paths) for delete_file, data_paths in paths.items()},
    )


def data_files_that_may_match(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], predicate: Predicate
) -> frozenset[str]:
    """Return the data files that may have rows for a bound predicate."""
    plan = _plan(io, metadata, manifests, predicate)
    return frozenset(
        path for files in plan.files() for path in files.entries["file_path"].to_pylist()
    )


def _plan(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], predicate: Predicate
) -> ScanPlan:
    return ScanPlan(
        metadata=metadata,
        manifests=manifests,
        predicate=predicate,
        read_entries=partial(entries_of_manifests, io),
    )


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
