"""Rewrites delete files: fewer files, deletion vectors in version 3, and no equality deletes.

Specification, "Deletion Vectors", "Position Delete Files" and "Equality Delete Files". The set of
deleted rows stays the same. A commit that meanwhile removes one of the data files, or deletes its
rows, is a conflict, since it may be based on deletes that are replaced here. Equality deletes that
are committed meanwhile have a higher sequence number than the data files, and still apply.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap64

from iceberg_pyspark.arrow.read.position_deletes import bitmap_of, read_deleted_rows
from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.conflicts import ConflictChecks, TouchedFile
from iceberg_pyspark.changes.outcomes import NeverSent
from iceberg_pyspark.changes.removals import DeleteFileId, delete_file_id
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.formats.manifest_lists import manifests_to_build_on
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileContent, ManifestFile
from iceberg_pyspark.spec.metadata_columns import DELETED, POS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import DELETE_GRANULARITY
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.row_deletes import (
    DeletedRowsOfFile,
    RowDeletes,
    write_position_delete_files,
    write_row_deletes,
)
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.rewrites.delete_targets import (
    AppliedDeletes,
    applied_deletes,
    data_files_that_may_match,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import (
    DeleteFileOptions,
    chosen_groups,
)
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress
from iceberg_pyspark.table.reading.table_scan import scan_table


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenDeleteFiles:
    """The delete files and deletion vectors that a rewrite replaced or removed, and the new ones.

    `removed_data_files_count` data files had no remaining rows.
    """

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    removed_data_files_count: int = 0


@dataclass(frozen=True, kw_only=True)
class _Rewrite:
    """The changes of a commit; `needed_paths` are data files that must still be in the table."""

    row_deletes: RowDeletes
    needed_paths: frozenset[str] = frozenset()


class DeleteFileRewrite:
    """One rewrite of the delete files of one table."""

    def __init__(self, table: MaintainedTable, *, dry_run: bool) -> None:
        """Remove written files again if `dry_run` is true."""
        self._table = table
        self._newest = table.newest()
        self._dry_run = dry_run
        self._write_id = str(uuid.uuid4())
        metadata = self._newest.metadata
        self._manifests: Sequence[ManifestFile] = (
            []
            if metadata.current_snapshot is None
            else manifests_to_build_on(table.io, metadata.current_snapshot)
        )
        self._deletes = applied_deletes(table.io, metadata, self._manifests)
        self._context = scan_table(
            table.name, metadata, table.io, projection=lambda _: Schema(fields=(POS, DELETED))
        ).context

    def position_deletes(
        self,
        where: Callable[[TableMetadata], Predicate] | None,
        options: DeleteFileOptions,
    ) -> tuple[LoadedTable, RewrittenDeleteFiles]:
        """Rewrite position delete files; `where` returns a bound predicate for the table."""
        deletes = self._deletes
        considered_ids = [
            i for i, f in deletes.files.items() if f.content is FileContent.POSITION_DELETES
        ]
        if where is None:
            dangling = frozenset(i for i in considered_ids if not deletes.paths_of(i))
        else:
            dangling = frozenset()
            may_match = data_files_that_may_match(
                self._table.io, self._metadata, self._manifests, where(self._metadata)
            )
            considered_ids = [i for i in considered_ids if deletes.paths_of(i) & may_match]
        files = [
            f
            for i in considered_ids
            if not (f := deletes.files[i]).is_deletion_vector and i not in dangling
        ]
        rewrite = (
            self._to_vectors(files)
            if self._metadata.format_version >= 3
            else self._to_fewer(files, options)
        )
        return self._commit(rewrite, dangling)

    def equality_deletes(self) -> tuple[LoadedTable, RewrittenDeleteFiles]:
        """Replace equality deletes by deletes of the same rows by position."""
        deletes = self._deletes
        equality = frozenset(
            i for i, f in deletes.files.items() if f.content is FileContent.EQUALITY_DELETES
        )
        paths = frozenset(p for i in equality for p in deletes.paths_of(i))
        tasks = [deletes.tasks[path] for path in sorted(paths)]
        rows = self._rows_by_path(tasks, self._deleted_by_value, self._table.progress)
        return self._commit(
            _Rewrite(row_deletes=self._deleted_by_position(rows), needed_paths=paths), equality
        )

    @property
    def _metadata(self) -> TableMetadata:
        return self._newest.metadata

    def _to_vectors(self, files: Iterable[DataFile]) -> _Rewrite:
        """Write vectors with all deletes of each data file to which one of the files applies."""
        deletes = self._deletes
        paths = frozenset(p for f in files for p in deletes.paths_of(delete_file_id(f)))
        tasks = [deletes.tasks[path] for path in sorted(paths)]
        rows = self._rows_by_path(tasks, self._positions, self._table.progress)
        row_deletes = self._deleted_by_position(rows)
        applied_fully = frozenset(
            i for i, data_paths in deletes.paths.items() if data_paths <= paths
        )
        replaced_ids = {
            i
            for i in applied_fully
            if (f := deletes.files[i]).content is FileContent.POSITION_DELETES
            and not f.is_deletion_vector
        }
        return _Rewrite(
            row_deletes=replace(
                row_deletes, removed_deletes=row_deletes.removed_deletes | replaced_ids
            ),
            needed_paths=paths,
        )

    def _to_fewer(self, files: Iterable[DataFile], options: DeleteFileOptions) -> _Rewrite:
        """Combine the position delete files of each partition; drop rows of removed data files."""
        per_file = DELETE_GRANULARITY.of(self._metadata.properties) == "file"
        removed_ids: set[DeleteFileId] = set()
        kept_rows: list[DeletedRowsOfFile] = []
        groups = chosen_groups(files, options)
        for group in with_progress(
            self._table.progress, "groups of delete files", groups, len(groups)
        ):
            ids = {delete_file_id(f) for f in group}
            paths = sorted({p for i in ids for p in self._deletes.paths_of(i)})
            tasks = [_with_deletes(self._deletes.tasks[path], ids) for path in paths]
            rows = self._rows_by_path(tasks, self._positions)
            count = len(rows) if per_file else min(len(rows), 1)
            is_smaller = sum(map(len, rows.values())) < sum(f.record_count for f in group)
            if count < len(group) or is_smaller or options.rewrite_all:
                removed_ids |= ids
                kept_rows += [
                    DeletedRowsOfFile(t, rows[t.file_path]) for t in tasks if t.file_path in rows
                ]
        new_delete_files = write_position_delete_files(
            self._metadata, self._table.io, kept_rows, self._write_id, per_file=per_file
        )
        return _Rewrite(
            row_deletes=RowDeletes(
                delete_files=new_delete_files, removed_deletes=frozenset(removed_ids)
            ),
            needed_paths=frozenset(d.task.file_path for d in kept_rows),
        )

    def _deleted_by_position(self, rows: Mapping[str, BitMap64]) -> RowDeletes:
        return write_row_deletes(
            self._table.name,
            self._metadata,
            self._table.io,
            rows,
            self._deletes.tasks,
            write_id=self._write_id,
        )

    def _rows_by_path(
        self,
        tasks: Sequence[ScanTask],
        rows_of: Callable[[ScanTask], BitMap64],
        progress: Progress = no_progress,
    ) -> dict[str, BitMap64]:
        """Return the deleted rows of each data file that has deleted rows."""
        results = threaded_map(rows_of, tasks, lambda t: t.file_path)
        rows_by_task = zip(tasks, results, strict=True)
        steps = with_progress(progress, "data files and their deletes", rows_by_task, len(tasks))
        return {task.file_path: rows for task, rows in steps if rows}

    def _positions(self, task: ScanTask) -> BitMap64:
        rows = read_deleted_rows(
            self._table.io, task, self._table.name, verify_checksums=self._context.verify_checksums
        )
        return BitMap64() if rows is None else rows.bitmap()

    def _deleted_by_value(self, task: ScanTask) -> BitMap64:
        """Return the rows that only equality deletes delete."""
        equality = tuple(d for d in task.deletes if d.content is FileContent.EQUALITY_DELETES)
        rows = BitMap64()
        for batch in read_task(self._context, replace(task, deletes=equality), self._table.io):
            rows |= bitmap_of(batch.column(0).filter(batch.column(1)).to_numpy())
        return rows - self._positions(task)

    def _commit(
        self, rewrite: _Rewrite, more: frozenset[DeleteFileId]
    ) -> tuple[LoadedTable, RewrittenDeleteFiles]:
        """Commit the rewrite, together with the removal of further delete files."""
        row_deletes = rewrite.row_deletes
        removed_ids = row_deletes.removed_deletes | more
        result = _result(self._deletes, row_deletes, removed_ids)
        if not removed_ids and not row_deletes.delete_files and not row_deletes.removed_data_paths:
            return self._newest, result
        with WrittenFiles(self._table.io, row_deletes.delete_files) as files:
            if self._dry_run:
                files.remove(NeverSent())
                return self._newest, result
            tasks = self._deletes.tasks
            action = RewriteFiles(
                removed_data_paths=row_deletes.removed_data_paths,
                removed_deletes=removed_ids,
                delete_files=row_deletes.delete_files,
                checks=ConflictChecks(
                    base_snapshot_id=self._metadata.current_snapshot_id,
                    still_live=rewrite.needed_paths,
                    no_new_deletes_for=tuple(
                        TouchedFile(
                            file_path=path,
                            spec_id=tasks[path].spec_id,
                            partition=tasks[path].partition,
                        )
                        for path in sorted(rewrite.needed_paths)
                    ),
                    equality_deletes_still_apply=True,
                ),
            )
            new_table = commit_action(
                self._table.catalog,
                self._newest,
                self._table.io,
                action,
                CommitOptions(write_id=self._write_id),
                written_files=files,
                clock=self._table.clock,
            )
            return new_table, result


def _with_deletes(task: ScanTask, ids: set[DeleteFileId]) -> ScanTask:
    return replace(
        task, deletes=tuple(d for d in task.deletes if (d.file_path, d.content_offset) in ids)
    )


def _result(
    deletes: AppliedDeletes, row_deletes: RowDeletes, removed_ids: frozenset[DeleteFileId]
) -> RewrittenDeleteFiles:
    # deletes of removed data files are in `removed_ids` too
    return RewrittenDeleteFiles(
        rewritten_delete_files_count=len(removed_ids),
        added_delete_files_count=len(row_deletes.delete_files),
        rewritten_bytes_count=sum(_size(deletes.files[i]) for i in removed_ids),
        added_bytes_count=sum(map(_size, row_deletes.delete_files)),
        removed_data_files_count=len(row_deletes.removed_data_paths),
    )


def _size(f: DataFile) -> int:
    size = f.content_size_in_bytes if f.is_deletion_vector else None
    return f.file_size_in_bytes if size is None else size
