"""Defines the actions that create a snapshot, and plans the changes of an action on a base.

Specification, "Snapshots" (operations) and "Scan Planning" for the deletes that are removed with
their data file. A retry plans again with fresh metadata; the files of an action never change.
`conflicts.py` checks for conflicts with other commits, `manifest_changes.py` plans the manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from iceberg_pyspark.changes.conflicts import ConflictChecks, check_conflicts
from iceberg_pyspark.changes.manifest_changes import (
    FilteredManifests,
    RewriteManifests,
    SnapshotBase,
    SnapshotOperation,
    SnapshotPlan,
    added_manifests,
    filter_manifests,
    may_list,
    plan_manifest_rewrite,
)
from iceberg_pyspark.changes.removals import (
    DeleteFileId,
    Origin,
    Removal,
    RemoveAll,
    RemoveFiles,
    RemoveNothing,
    RemovePartitions,
    delete_file_id,
)
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestContent, ManifestFile
from iceberg_pyspark.spec.partitioning import check_writable, partition_key
from iceberg_pyspark.spec.retyped_columns import is_readable_as
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import MANIFEST_TARGET_SIZE


@dataclass(frozen=True, kw_only=True)
class AppendFiles:
    """An append of data files, which never conflicts; `merge` False is a fast append.

    A fast append does not merge small manifests.
    """

    data_files: tuple[DataFile, ...]
    merge: bool = True


@dataclass(frozen=True, kw_only=True)
class OverwriteFiles:
    """A removal of files and an addition of data files in one step.

    `RemoveAll` makes it a static overwrite of the table, `RemoveFiles` a copy-on-write rewrite;
    `OverwritePartitions` is the dynamic overwrite.
    """

    removal: Removal
    data_files: tuple[DataFile, ...] = ()
    checks: ConflictChecks | None = None


@dataclass(frozen=True, kw_only=True)
class OverwritePartitions:
    """A replacement of the partitions of the new data files (dynamic overwrite)."""

    data_files: tuple[DataFile, ...]
    checks: ConflictChecks | None = None


@dataclass(frozen=True, kw_only=True)
class RowDelta:
    """An addition of delete files or deletion vectors, and data files, for the rows that were read.

    `removed_data_paths` are data files without any remaining row. `removed_deletes` are delete
    files and deletion vectors that the new ones replace. `origin` is that of all these files, and
    of all deletes of the data files that get new ones.
    """

    data_files: tuple[DataFile, ...] = ()
    delete_files: tuple[DataFile, ...] = ()
    removed_data_paths: frozenset[str] = frozenset()
    removed_deletes: frozenset[DeleteFileId] = frozenset()
    origin: Origin | None = None
    checks: ConflictChecks


@dataclass(frozen=True, kw_only=True)
class DeleteFiles:
    """A removal of whole data files, which adds no files."""

    removal: Removal
    checks: ConflictChecks | None = None


@dataclass(frozen=True, kw_only=True)
class RewriteFiles:
    """A replacement of files by new files with the same rows (compaction).

    The new data files get `data_sequence_number` if it is set, so that equality deletes committed
    meanwhile still apply to them. `origin` is that of the removed files, and of all deletes of
    data files that get new ones.
    """

    removed_data_paths: frozenset[str] = frozenset()
    removed_deletes: frozenset[DeleteFileId] = frozenset()
    data_files: tuple[DataFile, ...] = ()
    delete_files: tuple[DataFile, ...] = ()
    data_sequence_number: int | None = None
    origin: Origin | None = None
    checks: ConflictChecks


FileAction: TypeAlias = (
    AppendFiles | OverwriteFiles | OverwritePartitions | RowDelta | DeleteFiles | RewriteFiles
)
SnapshotAction: TypeAlias = FileAction | RewriteManifests


def plan_snapshot(action: SnapshotAction, base: SnapshotBase, snapshot_id: int) -> SnapshotPlan:
    """Return the plan of a snapshot with this id: the action's changes to the base."""
    if isinstance(action, RewriteManifests):
        return plan_manifest_rewrite(action, base)
    new_files = files_of(action)
    check_added_files(new_files, base.metadata)
    removal, operation = _removal_and_operation(action, base.metadata)
    if not isinstance(action, AppendFiles) and action.checks is not None:
        check_conflicts(action.checks, base)
    filtered_manifests = filter_manifests(base, removal, snapshot_id)
    _check_not_live(new_files, base, filtered_manifests)
    origin = action.origin if isinstance(action, RowDelta | RewriteFiles) else None
    _check_one_vector_per_file(new_files, base, filtered_manifests, may_list(base, origin))
    manifests = added_manifests(
        new_files,
        snapshot_id,
        target_size=MANIFEST_TARGET_SIZE.of(base.metadata.properties),
        sequence_number=action.data_sequence_number if isinstance(action, RewriteFiles) else None,
    )
    return SnapshotPlan(
        operation=operation,
        new=manifests + filtered_manifests.rewritten,
        unchanged_manifests=filtered_manifests.unchanged_manifests,
        added_files=new_files,
        removed_files=filtered_manifests.removed_files,
        merge=action.merge if isinstance(action, AppendFiles) else True,
        replaces_partitions=isinstance(action, OverwritePartitions),
    )


def files_of(action: FileAction) -> tuple[DataFile, ...]:
    """Return all files that the action adds."""
    match action:
        case RowDelta(data_files=data, delete_files=deletes):
            return data + deletes
        case RewriteFiles(data_files=data, delete_files=deletes):
            return data + deletes
        case DeleteFiles():
            return ()
        case _:
            return action.data_files


def _removal_and_operation(
    action: FileAction, metadata: TableMetadata
) -> tuple[Removal, SnapshotOperation]:
    match action:
        case AppendFiles():
            return RemoveNothing(), "append"
        case OverwriteFiles(removal=removal, data_files=data):
            if isinstance(removal, RemoveNothing):
                return removal, "append"
            return removal, "overwrite" if data else "delete"
        case OverwritePartitions(data_files=data):
            return _partitions_of(data, metadata), "overwrite"
        case DeleteFiles(removal=removal):
            return removal, "delete"
        case RewriteFiles():
            return (
                _removed_files(action),
                "replace",
            )
        case RowDelta():
            removes_data = bool(action.removed_data_paths)
            removal = (
                _removed_files(action)
                if removes_data or action.removed_deletes
                else RemoveNothing()
            )
            if not action.data_files:
                return removal, "delete"
            only_adds = not action.delete_files and not removes_data
            return removal, "append" if only_adds else "overwrite"


def _removed_files(action: RowDelta | RewriteFiles) -> RemoveFiles:
    return RemoveFiles(
        data_paths=action.removed_data_paths,
        delete_files=action.removed_deletes,
        origin=action.origin,
    )


def _partitions_of(data_files: Sequence[DataFile], metadata: TableMetadata) -> Removal:
    if not data_files:
        return RemoveNothing()
    if any(metadata.spec_by_id[f.spec_id].is_unpartitioned for f in data_files):
        return RemoveAll()
    return RemovePartitions(frozenset((f.spec_id, partition_key(f.partition)) for f in data_files))


def check_added_files(files: Iterable[DataFile], metadata: TableMetadata) -> None:
    """Refuse files that do not fit the table, and a file that is added twice."""
    file_ids: set[DeleteFileId] = set()
    vectors: set[str] = set()
    for f in files:
        if delete_file_id(f) in file_ids:
            raise InvalidRequestError(
                f"{f.file_path} is added twice in one commit; leave one of them out"
            )
        file_ids.add(delete_file_id(f))
        spec = metadata.spec_by_id.get(f.spec_id)
        if spec is None:
            raise InvalidRequestError(
                f"{f.file_path} is written with partition spec {f.spec_id}, which the table "
                f"{metadata.location} does not have"
            )
        check_writable(spec)
        if len(f.partition) != len(spec.fields):
            raise InvalidRequestError(
                f"{f.file_path} has {len(f.partition)} partition values, "
                f"spec {f.spec_id} has {len(spec.fields)} fields"
            )
        if f.content is not FileContent.DATA:
            _check_delete_file(f, metadata, vectors)


def check_columns_stay(before: Schema, metadata: TableMetadata) -> None:
    """Refuse an operation if a column has got a type to which its type before is not a promotion.

    `before` is the schema with which the operation began. Only the replacement of a table gives a
    column such a type. A file of the old type would make the whole table unreadable, and a filter
    of the old type would misread the bounds of new files.
    """
    now = metadata.current_schema
    for field_id, f in before.field_by_id.items():
        new = now.field_by_id.get(field_id)
        if new is not None and not is_readable_as(f.type, new.type, metadata.format_version):
            raise ConcurrentChangeError(
                f"table {metadata.location}: column '{before.name_by_id[field_id]}' was {f.type} "
                f"when this operation began, and is {new.type} since the table was replaced; load "
                "the table again, and run the operation with its new columns"
            )


def _check_not_live(
    new_files: Iterable[DataFile], base: SnapshotBase, filtered_manifests: FilteredManifests
) -> None:
    """Refuse data files that the branch already has, because their rows would be duplicated.

    Only files that the commit's writer did not create are searched, in every manifest and under
    every spelling of their path that another engine may use.
    """
    paths = {f.file_path for f in new_files if f.content is FileContent.DATA} - base.fresh_paths
    if not paths:
        return
    names = {_name(path) for path in paths}
    identities = {base.identity_of(path) for path in paths}

    def refuse_live(live_paths: Iterable[str]) -> None:
        same_name = [path for path in live_paths if _name(path) in names]
        _refuse({path for path in same_name if base.identity_of(path) in identities}, base)

    for manifest in filtered_manifests.unchanged_manifests:
        if manifest.content is ManifestContent.DATA:
            refuse_live(base.read_paths(manifest))
    for rewritten in filtered_manifests.rewritten:
        if rewritten.content is ManifestContent.DATA:
            refuse_live(e.data_file.file_path for e in rewritten.entries if e.is_live)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _refuse(paths: Set[str], base: SnapshotBase) -> None:
    if paths:
        raise InvalidRequestError(
            f"{len(paths)} of the files to add are in table {base.metadata.location} already, "
            f"among them {min(paths)}; adding them again would duplicate their rows: leave them "
            "out, or remove them in the same commit"
        )


def _check_delete_file(f: DataFile, metadata: TableMetadata, vectors: set[str]) -> None:
    version = metadata.format_version
    if version < 2:
        raise InvalidRequestError(
            f"{f.file_path} is a delete file; version 1 tables have none: upgrade the table"
        )
    if f.content is FileContent.EQUALITY_DELETES:
        if not f.equality_ids:
            raise InvalidRequestError(
                f"{f.file_path}: an equality delete file needs equality ids; set the ids of its "
                "columns"
            )
        return
    if f.is_deletion_vector:
        if version < 3:
            raise InvalidRequestError(
                f"{f.file_path} holds a deletion vector; version {version} tables have none"
            )
        target = f.referenced_data_file
        if target is None or f.content_offset is None or f.content_size_in_bytes is None:
            raise InvalidRequestError(
                f"{f.file_path}: a deletion vector needs its data file, offset and size"
            )
        if target in vectors:
            raise InvalidRequestError(
                f"two deletion vectors are added for {target}; merge them into one"
            )
        vectors.add(target)
    elif version >= 3:
        raise InvalidRequestError(
            f"{f.file_path}: position delete files are not written to version {version} tables; "
            "write deletion vectors"
        )


def _check_one_vector_per_file(
    new_files: Sequence[DataFile],
    base: SnapshotBase,
    filtered_manifests: FilteredManifests,
    searched: Callable[[ManifestFile], bool],
) -> None:
    """Check that a data file has at most one vector (specification, "Deletion Vectors").

    Only `searched` manifests can list vectors of these files.
    """
    vectors = (f for f in new_files if f.is_deletion_vector)
    targets = {f.referenced_data_file for f in vectors if f.referenced_data_file is not None}
    if not targets:
        return
    removed_ids = {delete_file_id(f) for f in filtered_manifests.removed_files}
    for manifest in base.manifests:
        if manifest.content is not ManifestContent.DELETES or not manifest.has_live_files:
            continue
        if not searched(manifest):
            continue
        for entry in base.find_entries(manifest, targets):
            f = entry.data_file
            if (
                entry.is_live
                and f.is_deletion_vector
                and f.referenced_data_file in targets
                and delete_file_id(f) not in removed_ids
            ):
                raise ConcurrentChangeError(
                    f"{f.referenced_data_file} already has a deletion vector in {f.file_path}; "
                    "another commit added it: run the operation again"
                )
