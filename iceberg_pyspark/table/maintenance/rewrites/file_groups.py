"""Chooses the data files to rewrite, and groups files that are rewritten together.

The rules, names and defaults are those of the JVM connector's bin-pack rewrite: a file is a
candidate if its size is far from the target or if many of its rows are deleted; a group of
candidates of one partition is rewritten if that improves it. The output of a rewrite is never
rewritten again, so a second run does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.changes.removals import DeleteFileId
from iceberg_pyspark.planning.scan_tasks import DeleteFileRef, ScanTask
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.property_types import (
    INT_MAX,
    LONG_MAX,
    BoolProperty,
    ChoiceProperty,
    FractionProperty,
    IntProperty,
)
from iceberg_pyspark.spec.table_properties import TARGET_FILE_SIZE
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import (
    REWRITE_ALL,
    SHARED_OPTIONS,
    RewriteReason,
    WantedSizes,
    check_options,
)

_PROCEDURE = "rewrite_data_files"
_ROOM = 1.1

_MAX_GROUP_SIZE = IntProperty("max-file-group-size-bytes", 100 * 1024**3, 1, LONG_MAX)
_MAX_CONCURRENT = IntProperty("max-concurrent-file-group-rewrites", 5, 1)
_PARTIAL_PROGRESS = BoolProperty("partial-progress.enabled", False)
_MAX_COMMITS = IntProperty("partial-progress.max-commits", 10, 1)
_MAX_FAILED_COMMITS = IntProperty("partial-progress.max-failed-commits", 10, 0)
_DELETE_FILES = IntProperty("delete-file-threshold", INT_MAX, 1)
_DELETE_RATIO = FractionProperty("delete-ratio-threshold", 0.3, may_be_one=True)
_STARTING_NUMBER = BoolProperty("use-starting-sequence-number", True)
_REMOVE_DANGLING = BoolProperty("remove-dangling-deletes", False)
OUTPUT_SPEC = IntProperty("output-spec-id", 0, 0)
_JOB_ORDER = ChoiceProperty(
    "rewrite-job-order", "none", ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")
)
MAX_FILES = IntProperty("max-files-to-rewrite", INT_MAX, 1)
_OPTIONS = (
    *SHARED_OPTIONS,
    *(_MAX_GROUP_SIZE, _MAX_CONCURRENT, _PARTIAL_PROGRESS, _MAX_COMMITS, _MAX_FAILED_COMMITS),
    *(_DELETE_FILES, _DELETE_RATIO, _STARTING_NUMBER, _REMOVE_DANGLING, OUTPUT_SPEC, _JOB_ORDER),
    MAX_FILES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """The options of a rewrite of data files; sizes are in bytes."""

    sizes: WantedSizes
    max_group_size: int
    max_concurrent: int
    partial_progress: bool
    max_commits: int
    max_failed_commits: int
    delete_file_threshold: int
    delete_ratio_threshold: float
    rewrite_all: bool
    keeps_sequence_number: bool
    output_spec_id: int | None
    job_order: str
    max_files: int
    removes_dangling_deletes: bool

    @staticmethod
    def of(
        options: Mapping[str, str],
        properties: Mapping[str, str],
        without_effect: Collection[str] = (),
    ) -> RewriteOptions:
        """Parse a rewrite's options and the table's properties; raise `InvalidRequestError`."""
        check_options(_PROCEDURE, options, _OPTIONS, without_effect)
        commits = _MAX_COMMITS.of(options)
        return RewriteOptions(
            sizes=WantedSizes.of(_PROCEDURE, options, TARGET_FILE_SIZE.of(properties)),
            max_group_size=_MAX_GROUP_SIZE.of(options),
            max_concurrent=_MAX_CONCURRENT.of(options),
            partial_progress=_PARTIAL_PROGRESS.of(options),
            max_commits=commits,
            max_failed_commits=_MAX_FAILED_COMMITS.of(
                {_MAX_FAILED_COMMITS.name: str(commits), **options}
            ),
            delete_file_threshold=_DELETE_FILES.of(options),
            delete_ratio_threshold=_DELETE_RATIO.of(options),
            rewrite_all=REWRITE_ALL.of(options),
            keeps_sequence_number=_STARTING_NUMBER.of(options),
            output_spec_id=OUTPUT_SPEC.of(options) if OUTPUT_SPEC.name in options else None,
            job_order=_JOB_ORDER.of(options),
            max_files=MAX_FILES.of(options),
            removes_dangling_deletes=_REMOVE_DANGLING.of(options),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files that are rewritten together, into files of at most `output_file_size` bytes.

    `output_file_count` is the approximate number of new files in one partition. `spec_id` and
    `partition` are those of the files, or None if the new files will have another spec. `reasons`
    says of each file why it is rewritten, in the order of `tasks`.
    """

    spec_id: int | None
    partition: tuple[Any, ...] | None
    tasks: tuple[ScanTask, ...]
    reasons: tuple[RewriteReason, ...]
    output_file_size: int
    output_file_count: int

    @property
    def size(self) -> int:
        """The total size of the files, in bytes."""
        return _size(self.tasks)

    def parts(self) -> list[tuple[ScanTask, ...]]:
        """Split the files, in order, into lists that may be written to separate new files."""
        parts: list[list[ScanTask]] = [[] for _ in range(self.output_file_count)]
        total, so_far = self.size, 0
        for task in self.tasks:
            middle = so_far + task.file_size_in_bytes / 2
            parts[min(int(middle * len(parts) / max(total, 1)), len(parts) - 1)].append(task)
            so_far += task.file_size_in_bytes
        return [tuple(part) for part in parts if part]

    @property
    def own_deletes(self) -> frozenset[DeleteFileId]:
        """The deletes that apply to only one of the files, and are removed with the file."""
        return frozenset(
            (d.file_path, d.content_offset)
            for t in self.tasks
            for d in t.deletes
            if d.referenced_data_file is not None
        )


def plan_groups(
    tasks: Iterable[ScanTask], options: RewriteOptions, output_spec_id: int
) -> list[FileGroup]:
    """Return the groups that a rewrite of these whole files writes, in its job order."""
    partitions: dict[PartitionKey | None, list[ScanTask]] = {}
    for task in tasks:
        if _reason(task, options) is not None:
            is_of_spec = task.spec_id == output_spec_id
            key = partition_key(task.partition) if is_of_spec else None
            partitions.setdefault(key, []).append(task)
    groups = []
    remaining_files = options.max_files
    for key, candidates in partitions.items():
        for bin_tasks in _pack_tasks(candidates, options.max_group_size):
            if not options.rewrite_all and not _gains(bin_tasks, options):
                continue
            if group_tasks := bin_tasks[:remaining_files]:
                groups.append(_group(group_tasks, options, None if key is None else output_spec_id))
                remaining_files -= len(group_tasks)
    match options.job_order.split("-"):
        case ["bytes", direction]:
            groups.sort(key=lambda g: g.size, reverse=direction == "desc")
        case ["files", direction]:
            groups.sort(key=lambda g: len(g.tasks), reverse=direction == "desc")
    return groups


def _group(tasks: list[ScanTask], options: RewriteOptions, spec_id: int | None) -> FileGroup:
    sizes, size = options.sizes, _size(tasks)
    reasons = (_reason(task, options) for task in tasks)
    count = output_file_count(size, sizes)
    # the output may be a little larger than the input
    largest = sizes.greatest if count == 1 else min(int(size / count * _ROOM), sizes.greatest)
    return FileGroup(
        spec_id=spec_id,
        partition=None if spec_id is None else tasks[0].partition,
        tasks=tuple(tasks),
        reasons=tuple(reason for reason in reasons if reason is not None),
        output_file_size=largest,
        output_file_count=count,
    )


def _reason(task: ScanTask, options: RewriteOptions) -> RewriteReason | None:
    """Return why a file is a candidate, or None if it is none."""
    if options.rewrite_all:
        return RewriteReason.ALL_FILES
    reason = _reason_of_deletes(task.deletes, task.record_count, options)
    if reason is not None or options.sizes.has(task.file_size_in_bytes):
        return reason
    is_small = task.file_size_in_bytes < options.sizes.least
    return RewriteReason.TOO_SMALL if is_small else RewriteReason.TOO_LARGE


def has_many_deletes(
    deletes: Sequence[DeleteFileRef], record_count: int, options: RewriteOptions
) -> bool:
    """Return whether a file of `record_count` rows should be rewritten only for its deletes."""
    return _reason_of_deletes(deletes, record_count, options) is not None


def _reason_of_deletes(
    deletes: Sequence[DeleteFileRef], record_count: int, options: RewriteOptions
) -> RewriteReason | None:
    if len(deletes) >= options.delete_file_threshold:
        return RewriteReason.MANY_DELETE_FILES
    # for deletes of several files, this file's share is unknown
    own = sum(d.record_count for d in deletes if d.is_of_one_file)
    deleted_count = min(own, record_count)
    if own > 0 and deleted_count / max(record_count, 1) >= options.delete_ratio_threshold:
        return RewriteReason.MANY_DELETED_ROWS
    return None


def _gains(tasks: list[ScanTask], options: RewriteOptions) -> bool:
    return options.sizes.gain(len(tasks), _size(tasks)) or any(
        has_many_deletes(t.deletes, t.record_count, options) for t in tasks
    )


def _pack_tasks(tasks: list[ScanTask], max_size: int) -> Iterable[list[ScanTask]]:
    """Yield consecutive tasks up to the maximum size; a task that is too large is alone."""
    group: list[ScanTask] = []
    size = 0
    for task in tasks:
        if group and size + task.file_size_in_bytes > max_size:
            yield group
            group, size = [], 0
        group.append(task)
        size += task.file_size_in_bytes
    if group:
        yield group


def output_file_count(size: int, target_sizes: WantedSizes) -> int:
    """Return the number of new files of about the target size, none of which is small.

    Java would make two files for slightly more than the target, and then consider both small.
    """
    count = max(round(size / target_sizes.target), 1)
    if (
        count > 1
        and size / count < target_sizes.least
        and size / (count - 1) <= target_sizes.greatest
    ):
        count -= 1
    return count


def _size(tasks: Iterable[ScanTask]) -> int:
    return sum(t.file_size_in_bytes for t in tasks)
