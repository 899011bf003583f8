"""Rewrites data files: few large files in place of many small ones, without deleted rows.

Specification, "Snapshots" (operation `replace`), "Sequence Number Inheritance" and "Row Lineage".
New files keep the sequence number of the snapshot that was read, so that equality deletes committed
meanwhile still apply to them. A row delete that was committed meanwhile for a rewritten file makes
the commit fail, so that no deleted row reappears.
"""

from __future__ import annotations

import contextlib
import math
import os
import uuid
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial

import pyarrow as pa

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.changes import Changes
from iceberg_pyspark.changes.conflicts import ConflictChecks, TouchedFile
from iceberg_pyspark.changes.outcomes import after_commit
from iceberg_pyspark.changes.removals import DeleteFileId
from iceberg_pyspark.changes.snapshot_changes import RewriteFiles
from iceberg_pyspark.errors import (
    CommitConflictError,
    ConcurrentChangeError,
    IcebergError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.expressions.predicates import Filter
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.metadata_columns import lineage_columns
from iceberg_pyspark.spec.partitioning import partition_path
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits.commit import MetadataStep, snapshot_to_build_on
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.maintained_table import MaintainedTable
from iceberg_pyspark.table.commits.new_data import partition_spec, write_context_of
from iceberg_pyspark.table.commits.row_deletes import origin_of
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.rewrites.delete_targets import remove_dangling_deletes
from iceberg_pyspark.table.maintenance.rewrites.file_groups import (
    MAX_FILES,
    OUTPUT_SPEC,
    FileGroup,
    RewriteOptions,
    plan_groups,
)
from iceberg_pyspark.table.maintenance.rewrites.group_writer import (
    GroupRunner,
    GroupWriter,
    RewriteProgress,
)
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import PlannedGroup
from iceberg_pyspark.table.maintenance.rewrites.rewrite_strategy import RewriteStrategy
from iceberg_pyspark.table.maintenance.rewrites.written_groups import WrittenGroups
from iceberg_pyspark.table.reading.snapshot_selection import branch_selector
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table

_log = get_logger(__name__)
_CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenDataFiles:
    """The result of a rewrite of data files, or of a `dry_run`, which has no added files.

    `failed_data_files_count` counts, with `partial-progress.enabled`, the files of groups that
    could not be read or written, or that conflicted with other commits.
    `removed_delete_files_count` counts the deletes of single data files, which are removed with
    them, and, with `remove-dangling-deletes`, deletes that no longer apply to any data file; a
    `dry_run` counts only those that are dangling already. `file_group_count` is the number of
    chosen groups; a `dry_run` also lists the `groups`, with the reasons for which their files are
    chosen. Files of other partition specs count twice if their new files are rewritten again
    with small files of the same partition; a `dry_run` cannot predict the second rewrite.
    """

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    file_group_count: int = 0
    groups: tuple[PlannedGroup, ...] = ()


class DataFileRewrite:
    """One rewrite of data files of a branch, with the options of the JVM connector's procedure."""

    def __init__(
        self,
        table: MaintainedTable,
        *,
        options: Mapping[str, str],
        strategy: str | None = None,
        sort_order: str | None = None,
        where: Filter | None = None,
        branch: str = MAIN,
        runner: GroupRunner | None = None,
        pinned: bool = False,
    ) -> None:
        """Load the newest version of the table; raise `InvalidRequestError` for an invalid option.

        `runner` is where groups are written; None means threads of this process. With `pinned`, or
        if the groups are written already, the table's groups are those of the version as loaded.
        """
        is_written = isinstance(runner, WrittenGroups)
        self._again = partial(
            DataFileRewrite,
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            branch=branch,
            runner=None if is_written else runner,
        )
        self._option_texts = options
        self._runner = runner
        if not (pinned or is_written):
            table = replace(table, loaded=table.newest())
        self._table = table
        self._branch = branch
        self._metadata = table.loaded.metadata
        self._strategy = RewriteStrategy.of(
            strategy,
            sort_order,
            self._metadata,
            table.name,
            case_sensitive=table.case_sensitive,
        )
        self._options = RewriteOptions.of(
            options, self._metadata.properties, self._strategy.options_without_effect
        )
        if table.loaded.plan_scan is not None:
            raise UnsupportedFeatureError(
                f"table {table.name}: its catalog's server plans its scans and does not "
                "send the sequence numbers of files, which a rewrite needs; rewrite it with an "
                "engine of the server"
            )
        self._spec = partition_spec(table.name, self._metadata, self._options.output_spec_id)
        self._scan = self._scan_of(where)
        self.writer = GroupWriter(
            scan=self._scan.context, writes=self._write_context(), order=self._strategy.order
        )

    def plan(self) -> list[FileGroup]:
        """Return the groups of files to rewrite, in the order in which they are written."""
        if self._scan.snapshot is None:
            return []
        return plan_groups(self._scan.plan_files(), self._options, self._spec.spec_id)

    def run(self, *, dry_run: bool = False) -> tuple[LoadedTable, RewrittenDataFiles]:
        """Rewrite the files; return the table as committed, and the result."""
        groups = self.plan()
        if dry_run:
            plan_result = RewrittenDataFiles(
                file_group_count=len(groups), groups=tuple(map(self._planned_group, groups))
            )
            result = _with(plan_result, groups, added_count=0)
            return self._table.loaded, self._without_dangling(result, dry_run=True)
        result = self._rewrite(groups)
        if any(g.spec_id is None for g in groups) and result.rewritten_data_files_count:
            with after_commit("rewriting what came to partitions beside other small files"):
                result = _sum(result, self._settle(result))
        result = self._without_dangling(result)
        return self._table.loaded, result

    def _planned_group(self, group: FileGroup) -> PlannedGroup:
        partition = None
        if group.partition is not None:
            partition = partition_path(self._spec, self._metadata.schemas, group.partition)
        return PlannedGroup(
            partition=partition,
            data_files_count=len(group.tasks),
            bytes_count=group.size,
            new_files_count=group.output_file_count,
            reasons={r.value: n for r, n in Counter(group.reasons).most_common()},
        )

    def _settle(self, before: RewrittenDataFiles) -> RewrittenDataFiles:
        """Rewrite files again that were written from files of other partition specs.

        The partitions of these new files are unknown before they are written. In its partition a
        new file may be one of several small files, so a second run would otherwise find something
        to do.
        """
        if self._options.rewrite_all:
            return RewrittenDataFiles()
        options = {**self._option_texts, OUTPUT_SPEC.name: str(self._spec.spec_id)}
        if MAX_FILES.name in options:
            max_files = self._options.max_files - before.rewritten_data_files_count
            if max_files < 1:
                return RewrittenDataFiles()
            options[MAX_FILES.name] = str(max_files)
        rewrite = self._again(table=self._table, options=options)
        result = rewrite._rewrite([g for g in rewrite.plan() if g.spec_id is not None])
        self._table = rewrite._table
        return result

    def _rewrite(self, groups: Sequence[FileGroup]) -> RewrittenDataFiles:
        """Write and commit the groups, and return the result."""
        result = RewrittenDataFiles(file_group_count=len(groups))
        at_once = len(groups)
        if self._options.partial_progress:
            at_once = math.ceil(len(groups) / self._options.max_commits)
        failed_commits = 0
        progress = RewriteProgress(self._table.progress, groups)
        for start in range(0, len(groups), max(at_once, 1)):
            part = groups[start : start + at_once]
            with WrittenFiles(self._table.io) as written_files:
                finished_groups, files = self._write_groups(part, start, written_files, progress)
                count = sum(len(g.tasks) for g in part) - sum(len(g.tasks) for g in finished_groups)
                result = replace(
                    result, failed_data_files_count=result.failed_data_files_count + count
                )
                if not finished_groups:
                    continue
                try:
                    self._commit(finished_groups, files, written_files)
                except (CommitConflictError, ConcurrentChangeError) as e:
                    failed_commits += 1
                    if (
                        not self._options.partial_progress
                        or failed_commits > self._options.max_failed_commits
                    ):
                        raise
                    count = sum(len(g.tasks) for g in finished_groups)
                    _log.warning("%d files were not rewritten: %s", count, e)
                    result = replace(
                        result, failed_data_files_count=result.failed_data_files_count + count
                    )
                else:
                    result = _with(result, finished_groups, added_count=len(files))
        progress.end()
        return result

    def _without_dangling(
        self, result: RewrittenDataFiles, *, dry_run: bool = False
    ) -> RewrittenDataFiles:
        """Add the number of dangling deletes to the result; remove them if the options say so."""
        if not self._options.removes_dangling_deletes:
            return result
        count = 0
        is_done = result.rewritten_data_files_count > 0 and not dry_run
        step = "removing deletes that apply to no data file; the next rewrite removes them"
        with after_commit(step) if is_done else contextlib.nullcontext():
            loaded_table, count = remove_dangling_deletes(
                self._table, branch=self._branch, dry_run=dry_run
            )
            self._table = replace(self._table, loaded=loaded_table)
        return replace(result, removed_delete_files_count=result.removed_delete_files_count + count)

    def _scan_of(self, where: Filter | None) -> TableScan:
        """Return a scan of all rows of the files that may have matching rows."""
        snapshot_to_build_on(self._metadata, self._branch)
        selector = branch_selector(self._metadata, self._branch)
        lineage = lineage_columns(self._metadata.format_version)
        name, io = self._table.name, self._table.io
        scan = scan_table(
            name,
            self._metadata,
            io,
            selector=selector,
            projection=lambda schema: Schema(fields=(*schema.fields, *lineage)),
        )
        if where is None:
            return scan
        # A filtered scan would leave out rows, and deletes of rows that do not match the filter.
        matching_scan = scan_table(
            name,
            self._metadata,
            io,
            selector=selector,
            filter=where,
            case_sensitive=self._table.case_sensitive is not False,
        )
        return scan.of_files(frozenset(t.file_path for t in matching_scan.plan_files()))

    def _write_context(self) -> WriteContext:
        context = write_context_of(
            self._table.name,
            self._metadata,
            self._table.io,
            write_id=str(uuid.uuid4()),
            spec=self._spec,
        )
        fields = (*context.schema.fields, *lineage_columns(self._metadata.format_version))
        return replace(
            context,
            schema=replace(context.schema, fields=fields),
            sort_order_id=self._strategy.sort_order.order_id,
        )

    def _write_groups(
        self,
        groups: Sequence[FileGroup],
        first: int,
        written_files: WrittenFiles,
        progress: RewriteProgress,
    ) -> tuple[list[FileGroup], list[DataFile]]:
        """Write groups, several at a time; return the finished groups and their new files.

        With partial progress, a group that fails is left unchanged; otherwise the error is raised.
        """
        runner, io = self._runner, self._table.io
        most = min(self._options.max_concurrent, runner.max_at_once if runner else _CORES)
        at_once = min(most, len(groups))
        threads = max(most // at_once, 1)
        finished_groups: list[FileGroup] = []
        files: list[DataFile] = []
        waiting: deque[tuple[int, FileGroup, Future[list[DataFile]]]] = deque()

        def take() -> None:
            number, group, future = waiting[0]
            progress.report_while_writing(future)
            waiting.popleft()
            try:
                outcome = future.result()
            except (IcebergError, OSError, pa.ArrowException) as e:
                if not self._options.partial_progress:
                    raise
                _log.warning("%d files were not rewritten: %s", len(group.tasks), e)
                progress.end_group(number)
                return
            written_files.add(outcome)
            files.extend(outcome)
            finished_groups.append(group)
            progress.end_group(number)

        with ThreadPoolExecutor(at_once, thread_name_prefix="rewrite") as pool:
            try:
                for number, group in enumerate(groups, start=first):
                    steps = progress.steps_of(number)
                    if runner is None:
                        writing = pool.submit(self.writer.write, group, steps, io, threads)
                    else:
                        writing = pool.submit(runner.write, self.writer, group, steps, io)
                    waiting.append((number, group, writing))
                    if len(waiting) > at_once:
                        take()
                while waiting:
                    take()
            except BaseException:
                # the new files of the other groups must be removed too
                for _, _, future in waiting:
                    if not future.cancel() and future.exception() is None:
                        written_files.add(future.result())
                raise
        return finished_groups, files

    def _commit(
        self, groups: Sequence[FileGroup], files: Sequence[DataFile], written_files: WrittenFiles
    ) -> None:
        snapshot = self._scan.snapshot
        assert snapshot is not None
        tasks = [task for group in groups for task in group.tasks]
        keeps_number = self._options.keeps_sequence_number and self._metadata.format_version > 1
        # An equality delete of a partition applies to files of its spec: for files that are moved
        # to another spec, it stops or starts to apply.
        is_moved = any(t.spec_id != self._spec.spec_id for t in tasks)
        touched_files = [_touched_file(t) for t in tasks]
        if is_moved:
            touched_files += [_touched_file(f) for f in files]
        action = RewriteFiles(
            removed_data_paths=frozenset(t.file_path for t in tasks),
            removed_deletes=_own_deletes(groups),
            origin=origin_of(tasks, snapshot.snapshot_id),
            data_files=tuple(files),
            data_sequence_number=snapshot.sequence_number if keeps_number else None,
            checks=ConflictChecks(
                base_snapshot_id=snapshot.snapshot_id,
                still_live=frozenset(t.file_path for t in tasks),
                no_new_deletes_for=tuple(touched_files),
                equality_deletes_still_apply=keeps_number and not is_moved,
            ),
        )
        loaded_table = commit_action(
            self._table.catalog,
            self._table.loaded,
            self._table.io,
            action,
            CommitOptions(branch=self._branch),
            written_files=written_files,
            before=[MetadataStep(self._check_version)],
            clock=self._table.clock,
        )
        self._table = replace(self._table, loaded=loaded_table)

    def _check_version(self, metadata: TableMetadata) -> Changes:
        """Refuse a table that was upgraded meanwhile: new files lack the row ids of their rows."""
        if metadata.format_version != self._metadata.format_version:
            raise ConcurrentChangeError(
                f"table {self._table.name} was upgraded to format version "
                f"{metadata.format_version} while its files were rewritten; run the operation again"
            )
        return Changes()


def _own_deletes(groups: Sequence[FileGroup]) -> frozenset[DeleteFileId]:
    return frozenset().union(*(group.own_deletes for group in groups))


def _touched_file(file: ScanTask | DataFile) -> TouchedFile:
    return TouchedFile(file_path=file.file_path, spec_id=file.spec_id, partition=file.partition)


def _sum(one: RewrittenDataFiles, other: RewrittenDataFiles) -> RewrittenDataFiles:
    return RewrittenDataFiles(
        **{f.name: getattr(one, f.name) + getattr(other, f.name) for f in fields(one)}
    )


def _with(
    result: RewrittenDataFiles, groups: Sequence[FileGroup], *, added_count: int
) -> RewrittenDataFiles:
    """Return the result with the counts of further groups added."""
    tasks = [task for group in groups for task in group.tasks]
    return replace(
        result,
        rewritten_data_files_count=result.rewritten_data_files_count + len(tasks),
        added_data_files_count=result.added_data_files_count + added_count,
        rewritten_bytes_count=result.rewritten_bytes_count + sum(g.size for g in groups),
        removed_delete_files_count=result.removed_delete_files_count + len(_own_deletes(groups)),
    )
