"""Which data files are worth writing anew, in groups that are written together.

The rules, names and defaults are those of the JVM connector's bin-pack rewrite: a file is a
candidate if its size is far from the target or many of its rows are deleted; a group of candidates
of one partition is rewritten if that gains something. What a rewrite leaves is no candidate, or
stays alone, so that a second run does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.partitioning import PartitionKey, partition_key
from iceberg_pyspark.spec.properties import TARGET_FILE_SIZE
from iceberg_pyspark.spec.property_types import (
    INT_MAX,
    LONG_MAX,
    BoolProperty,
    ChoiceProperty,
    FractionProperty,
    IntProperty,
    TableProperty,
)

_MIN_SIZE = 0.75
_MAX_SIZE = 1.8
_ROOM = 1.1

_TARGET_SIZE = IntProperty("target-file-size-bytes", TARGET_FILE_SIZE.default, 1, LONG_MAX)
_LEAST_SIZE = IntProperty("min-file-size-bytes", 0, 0, LONG_MAX)
_GREATEST_SIZE = IntProperty("max-file-size-bytes", 0, 1, LONG_MAX)
_MIN_INPUT_FILES = IntProperty("min-input-files", 5, 1)
_MAX_GROUP_SIZE = IntProperty("max-file-group-size-bytes", 100 * 1024**3, 1, LONG_MAX)
_MAX_CONCURRENT = IntProperty("max-concurrent-file-group-rewrites", 5, 1)
_PARTIAL_PROGRESS = BoolProperty("partial-progress.enabled", False)
_MAX_COMMITS = IntProperty("partial-progress.max-commits", 10, 1)
_MAX_FAILED_COMMITS = IntProperty("partial-progress.max-failed-commits", 10, 0)
_DELETE_FILES = IntProperty("delete-file-threshold", INT_MAX, 1)
_DELETE_RATIO = FractionProperty("delete-ratio-threshold", 0.3)
_REWRITE_ALL = BoolProperty("rewrite-all", False)
_STARTING_NUMBER = BoolProperty("use-starting-sequence-number", True)
_REMOVE_DANGLING = BoolProperty("remove-dangling-deletes", False)
_OUTPUT_SPEC = IntProperty("output-spec-id", 0, 0)
_JOB_ORDER = ChoiceProperty(
    "rewrite-job-order", "none", ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")
)
_OPTIONS: Mapping[str, TableProperty] = {
    o.name: o
    for o in (
        *(_TARGET_SIZE, _LEAST_SIZE, _GREATEST_SIZE, _MIN_INPUT_FILES, _MAX_GROUP_SIZE),
        *(_MAX_CONCURRENT, _PARTIAL_PROGRESS, _MAX_COMMITS, _MAX_FAILED_COMMITS, _DELETE_FILES),
        *(_DELETE_RATIO, _REWRITE_ALL, _STARTING_NUMBER, _REMOVE_DANGLING, _OUTPUT_SPEC),
        _JOB_ORDER,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions:
    """The options of a rewrite of data files; sizes in bytes."""

    target_size: int
    min_size: int
    max_size: int
    min_input_files: int
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

    @staticmethod
    def of(options: Mapping[str, str], properties: Mapping[str, str]) -> RewriteOptions:
        """From a rewrite's options and the table's properties; raises `InvalidRequestError`."""
        for name, text in options.items():
            option = _OPTIONS.get(name)
            if option is None:
                raise InvalidRequestError(
                    f"rewrite_data_files has no option '{name}'; its options are "
                    f"{', '.join(sorted(_OPTIONS))}"
                )
            if (problem := option.problem(text)) is not None:
                raise InvalidRequestError(f"rewrite_data_files: {name}={text} {problem}")
        if _REMOVE_DANGLING.of(options):
            raise UnsupportedFeatureError(
                "rewrite_data_files: remove-dangling-deletes is not supported yet; leave it out: "
                "the deletes of one data file go with it, those of several stay"
            )
        target = TARGET_FILE_SIZE.of(properties)
        if _TARGET_SIZE.name in options:
            target = _TARGET_SIZE.of(options)
        least, greatest = int(target * _MIN_SIZE), int(target * _MAX_SIZE)
        if _LEAST_SIZE.name in options:
            least = _LEAST_SIZE.of(options)
        if _GREATEST_SIZE.name in options:
            greatest = _GREATEST_SIZE.of(options)
        if not least < target < greatest:
            raise InvalidRequestError(
                f"rewrite_data_files: {_LEAST_SIZE.name} {least} must be less than "
                f"{_TARGET_SIZE.name} {target}, and {_GREATEST_SIZE.name} {greatest} greater"
            )
        commits = _MAX_COMMITS.of(options)
        return RewriteOptions(
            target_size=target,
            min_size=least,
            max_size=greatest,
            min_input_files=_MIN_INPUT_FILES.of(options),
            max_group_size=_MAX_GROUP_SIZE.of(options),
            max_concurrent=_MAX_CONCURRENT.of(options),
            partial_progress=_PARTIAL_PROGRESS.of(options),
            max_commits=commits,
            max_failed_commits=_MAX_FAILED_COMMITS.of(
                {_MAX_FAILED_COMMITS.name: str(commits)} | dict(options)
            ),
            delete_file_threshold=_DELETE_FILES.of(options),
            delete_ratio_threshold=_DELETE_RATIO.of(options),
            rewrite_all=_REWRITE_ALL.of(options),
            keeps_sequence_number=_STARTING_NUMBER.of(options),
            output_spec_id=_OUTPUT_SPEC.of(options) if _OUTPUT_SPEC.name in options else None,
            job_order=_JOB_ORDER.of(options),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files whose rows are written anew together, into files of about `output_file_size` bytes.

    `spec_id` and `partition` are those of the files, None for files of other specs than the new
    files will have.
    """

    spec_id: int | None
    partition: tuple[Any, ...] | None
    tasks: tuple[ScanTask, ...]
    output_file_size: int

    @property
    def size(self) -> int:
        """The bytes of the files."""
        return sum(t.file_size_in_bytes for t in self.tasks)


def plan_groups(
    tasks: Iterable[ScanTask], options: RewriteOptions, output_spec_id: int
) -> list[FileGroup]:
    """The groups that a rewrite of these whole files would write, in its job order."""
    partitions: dict[PartitionKey | None, list[ScanTask]] = {}
    for task in tasks:
        if options.rewrite_all or _is_candidate(task, options):
            is_of_spec = task.spec_id == output_spec_id
            key = partition_key(task.partition) if is_of_spec else None
            partitions.setdefault(key, []).append(task)
    groups = [
        FileGroup(
            spec_id=None if key is None else output_spec_id,
            partition=None if key is None else packed[0].partition,
            tasks=tuple(packed),
            output_file_size=_output_file_size(_size(packed), options),
        )
        for key, candidates in partitions.items()
        for packed in _packed(candidates, options.max_group_size)
        if options.rewrite_all or _gains(packed, options)
    ]
    match options.job_order.split("-"):
        case ["bytes", direction]:
            groups.sort(key=lambda g: g.size, reverse=direction == "desc")
        case ["files", direction]:
            groups.sort(key=lambda g: len(g.tasks), reverse=direction == "desc")
    return groups


def _is_candidate(task: ScanTask, options: RewriteOptions) -> bool:
    is_far = not options.min_size <= task.file_size_in_bytes <= options.max_size
    return is_far or _has_many_deletes(task, options)


def _has_many_deletes(task: ScanTask, options: RewriteOptions) -> bool:
    if len(task.deletes) >= options.delete_file_threshold:
        return True
    # of deletes for several files nobody knows how many are this file's
    own = sum(d.record_count for d in task.deletes if d.is_of_one_file)
    deleted = min(own, task.record_count)
    return own > 0 and deleted / max(task.record_count, 1) >= options.delete_ratio_threshold


def _gains(tasks: list[ScanTask], options: RewriteOptions) -> bool:
    size = _size(tasks)
    return (
        (len(tasks) > 1 and (len(tasks) >= options.min_input_files or size > options.target_size))
        or size > options.max_size
        or any(_has_many_deletes(t, options) for t in tasks)
    )


def _packed(tasks: list[ScanTask], max_size: int) -> Iterable[list[ScanTask]]:
    """Neighbours, as many as are not too large together; one that is too large is alone."""
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


def _output_file_size(size: int, options: RewriteOptions) -> int:
    """How large new files may become: as many as make them about the target, none of them small.

    Java makes two files of a little more than the target, which it then takes for small.
    """
    count = max(round(size / options.target_size), 1)
    if count > 1 and size / count < options.min_size and size / (count - 1) <= options.max_size:
        count -= 1
    if count == 1:
        return options.max_size
    # what is written may be a little larger than what was read
    return min(int(size / count * _ROOM), options.max_size)


def _size(tasks: Iterable[ScanTask]) -> int:
    return sum(t.file_size_in_bytes for t in tasks)
