"""Finds the delete files of a snapshot, and the data files to which each applies.

Specification, "Scan Planning". A delete file that applies to no data file deletes nothing: its data
files were removed, or have deletion vectors, which include its positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from iceberg_pyspark.changes.manifest_changes import DeleteFileId, delete_file_id
from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.planning.scan_plan import ScanPlan
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.files.file_io import FileIO


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
        read_entries=partial(read_entries, io),
    )
