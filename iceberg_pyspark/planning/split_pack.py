"""Splits files into tasks of about the target size, and packs tasks into groups.

The table properties `read.split.*` are Java's. A Parquet file is split at its row groups if its
split offsets are known, and otherwise anywhere: a row group belongs to the range with its first
byte. Files of other formats are not split. File sizes in manifests may be wrong, so the number of
ranges is limited per file and per scan.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.planning.scan_tasks import ScanTask, ScanTaskGroup
from iceberg_pyspark.spec.table_properties import (
    SPLIT_LOOKBACK,
    SPLIT_OPEN_FILE_COST,
    SPLIT_TARGET_SIZE,
)

_FEW_GROUPS = 64

MAX_RANGES_OF_A_FILE = 10_000
MAX_CUTS = 500_000
"""The most cuts through the files of one scan; further files stay whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOptions:
    """The sizes of tasks and groups, in bytes.

    `open_file_cost` is the least weight of a file; `lookback` is the number of groups kept open.
    """

    target_size: int = SPLIT_TARGET_SIZE.default
    lookback: int = SPLIT_LOOKBACK.default
    open_file_cost: int = SPLIT_OPEN_FILE_COST.default

    def __post_init__(self) -> None:
        if self.target_size < 1 or self.lookback < 1 or self.open_file_cost < 0:
            raise InvalidRequestError(
                "split size and lookback must be positive and the open file cost not negative, "
                f"got {self.target_size}, {self.lookback} and {self.open_file_cost}"
            )


DEFAULT_SPLIT = SplitOptions()


def split_options(properties: Mapping[str, str]) -> SplitOptions:
    """Return the options in the table properties `read.split.*`."""
    return SplitOptions(
        target_size=SPLIT_TARGET_SIZE.of(properties),
        lookback=SPLIT_LOOKBACK.of(properties),
        open_file_cost=SPLIT_OPEN_FILE_COST.of(properties),
    )


class Splitter:
    """A splitter of the files of one scan, up to a maximum number of cuts."""

    def __init__(self, target_size: int) -> None:
        self.target_size = target_size
        self._remaining_cuts = MAX_CUTS

    def ranges(
        self,
        file_size: int,
        file_format: str,
        record_count: int,
        split_offsets: Sequence[int] | None,
    ) -> list[tuple[int, int]]:
        """Return the ranges of `split_file`, or the whole file if too few cuts are left."""
        ranges = split_file(file_size, file_format, record_count, split_offsets, self.target_size)
        if len(ranges) - 1 > self._remaining_cuts:
            return [(0, file_size)]
        self._remaining_cuts -= len(ranges) - 1
        return ranges


def split_file(
    file_size: int,
    file_format: str,
    record_count: int,
    split_offsets: Sequence[int] | None,
    target_size: int,
) -> list[tuple[int, int]]:
    """Return the (start, length) ranges to read a file in; together they cover the file.

    There are at most as many ranges as rows, and at most `MAX_RANGES_OF_A_FILE`.
    """
    # a row group has at least one row; files that old writers imported have a record count of -1
    most = min(record_count, MAX_RANGES_OF_A_FILE) if record_count > 0 else MAX_RANGES_OF_A_FILE
    target_size = max(target_size, -(-file_size // most))
    if file_size <= target_size or file_format != "parquet":
        # readers of other formats cannot start in the middle of a file
        return [(0, file_size)]
    if split_offsets and _are_usable(split_offsets, file_size, most):
        # bytes before the first row group belong to its range
        starts = [0]
        for offset, end in pairwise([*split_offsets[1:], file_size]):
            # a row group joins the previous range if the range stays within the target size
            if end - starts[-1] > target_size:
                starts.append(offset)
    else:
        starts = list(range(0, file_size, target_size))
    ends = [*starts[1:], file_size]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _are_usable(offsets: Sequence[int], file_size: int, most: int) -> bool:
    if len(offsets) > most:
        return False
    ascending = all(a < b for a, b in pairwise(offsets))
    return ascending and offsets[0] >= 0 and offsets[-1] < file_size


def pack_tasks(
    tasks: Iterable[ScanTask], options: SplitOptions = DEFAULT_SPLIT
) -> list[ScanTaskGroup]:
    """Return groups of about the target size; tasks keep their order as far as `lookback` allows.

    If there are few groups, their sizes are balanced, because a scan waits for its largest group.
    """
    bins = list(_pack(tasks, options))
    if 1 < len(bins) <= _FEW_GROUPS:
        bins = _balance(bins, options)
    return [ScanTaskGroup(tasks=tuple(_merge_neighbours(bin_))) for bin_ in bins]


@dataclass(slots=True)
class _Bin:
    tasks: list[ScanTask]
    weight: int


def _pack(tasks: Iterable[ScanTask], options: SplitOptions) -> Iterator[list[ScanTask]]:
    bins: list[_Bin] = []
    for task in tasks:
        weight = _weight(task, options)
        bin_ = next((b for b in bins if b.weight + weight <= options.target_size), None)
        if bin_ is not None:
            bin_.tasks.append(task)
            bin_.weight += weight
            continue
        bins.append(_Bin([task], weight))
        if len(bins) > options.lookback:
            # the fullest bin has the least room for further tasks
            largest = max(range(len(bins)), key=lambda i: bins[i].weight)
            yield bins.pop(largest).tasks
    for remaining in bins:
        yield remaining.tasks


def _balance(bins: list[list[ScanTask]], options: SplitOptions) -> list[list[ScanTask]]:
    """Distribute the tasks to as many bins, heaviest first, if that lowers the maximum."""
    tasks = list(chain.from_iterable(bins))
    weights = [_weight(task, options) for task in tasks]
    lightest = [(0, i) for i in range(len(bins))]
    members: list[list[int]] = [[] for _ in bins]
    for task in sorted(range(len(tasks)), key=weights.__getitem__, reverse=True):
        weight, bin_ = lightest[0]
        heapq.heapreplace(lightest, (weight + weights[task], bin_))
        members[bin_].append(task)
    before = max(sum(_weight(t, options) for t in bin_) for bin_ in bins)
    if max(weight for weight, _ in lightest) >= before:
        return bins
    return [[tasks[i] for i in sorted(bin_)] for bin_ in members]


def _weight(task: ScanTask, options: SplitOptions) -> int:
    size = task.length
    for delete in task.deletes:
        in_file = delete.content_size_in_bytes
        size += delete.file_size_in_bytes if in_file is None else in_file
    return max(size, (1 + len(task.deletes)) * options.open_file_cost)


def _merge_neighbours(tasks: Sequence[ScanTask]) -> Iterator[ScanTask]:
    """Yield the tasks; neighbouring ranges of one file become one task."""
    last: ScanTask | None = None
    for task in tasks:
        if (
            last is not None
            and last.file_path == task.file_path
            and last.start + last.length == task.start
        ):
            last = replace(last, length=last.length + task.length)
            continue
        if last is not None:
            yield last
        last = task
    if last is not None:
        yield last
