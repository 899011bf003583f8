"""Counts the data files that a rewrite would take, per partition, without an object per file.

The rules are those of `file_groups.py`; this module serves tables with millions of files if only
the numbers are needed. Manifests are read one at a time, and a few integers are kept per partition;
the partition values are looked up again for the few partitions that are shown.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceberg_pyspark.planning.entry_filter import Mask
from iceberg_pyspark.planning.partition_codes import PartitionCodes
from iceberg_pyspark.planning.scan_plan import PlannedFiles
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.table.maintenance.rewrites.file_groups import (
    RewriteOptions,
    has_many_deletes,
    output_file_count,
)

_OF_OTHER_SPECS = -1


@dataclass(slots=True)
class _Group:
    files: int = 0
    size: int = 0
    has_many_deletes: bool = False


class RewriteCount:
    """A count of the groups that `plan_groups` would make of the added files, in their order.

    Unlike `plan_groups`, this count ignores `max-files-to-rewrite`.
    """

    def __init__(self, options: RewriteOptions, output_spec_id: int) -> None:
        self._options = options
        self._output_spec_id = output_spec_id
        self._open: dict[int, _Group] = {}
        self.groups = 0
        self.files = 0
        self.bytes = 0
        self.new_files = 0
        """The number of files of about the target size that the groups become."""

    def add(self, planned_files: PlannedFiles, partitions: Numbers) -> None:
        """Add the files of one manifest, with the partition number of each file."""
        options = self._options
        entries = planned_files.entries
        sizes: Numbers = entries["file_size_in_bytes"].to_numpy()
        records = entries["record_count"]
        has_many = np.zeros(len(sizes), bool)
        for row, deletes in planned_files.deletes.items():
            has_many[row] = has_many_deletes(deletes, records[row].as_py(), options)
        target_sizes = options.sizes
        rewritten_mask = (
            has_many
            | (sizes < target_sizes.least)
            | (sizes > target_sizes.greatest)
            | options.rewrite_all
        )
        if planned_files.spec.spec_id != self._output_spec_id:
            partitions = np.full(len(sizes), _OF_OTHER_SPECS, np.int64)
        rows = np.flatnonzero(rewritten_mask)
        rows = rows[np.argsort(partitions[rows], kind="stable")]
        starts = np.flatnonzero(np.diff(partitions[rows], prepend=_OF_OTHER_SPECS - 1))
        for part in np.split(rows, starts[1:]) if len(rows) else ():
            self._add(int(partitions[part[0]]), sizes[part], has_many[part])

    def finish(self) -> None:
        """Count the groups that are still open; call this method once, after all files."""
        for group in self._open.values():
            self._close(group)
        self._open.clear()

    def _add(self, partition: int, sizes: Numbers, has_many: Mask) -> None:
        most = self._options.max_group_size
        group = self._open.setdefault(partition, _Group())
        if group.size + int(sizes.sum()) <= most:
            parts = [(len(sizes), int(sizes.sum()), bool(has_many.any()))]
        else:
            ones = zip(sizes.tolist(), has_many.tolist(), strict=True)
            parts = [(1, size, many) for size, many in ones]
        for files, size, many in parts:
            if group.files and group.size + size > most:
                self._close(group)
                group = self._open[partition] = _Group()
            group.files += files
            group.size += size
            group.has_many_deletes |= many

    def _close(self, group: _Group) -> None:
        options = self._options
        gains = options.sizes.gain(group.files, group.size) or group.has_many_deletes
        if options.rewrite_all or gains:
            self.groups += 1
            self.files += group.files
            self.bytes += group.size
            self.new_files += output_file_count(group.size, options.sizes)


Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class PartitionNumbers:
    """A numbering of the partitions of all specs, from 0 in the order of their appearance."""

    def __init__(self) -> None:
        self._number_by_digest: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._number_by_digest)

    def of(self, spec_id: int, partitions: pa.StructArray) -> Numbers:
        """Return the number of each tuple of a spec."""
        codes = PartitionCodes(partitions).codes
        distinct, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        numbers = np.fromiter(
            (
                self._number_by_digest.setdefault(_digest(spec_id, v), len(self._number_by_digest))
                for v in partition_values(partitions.take(pa.array(first)))
            ),
            np.int64,
            len(distinct),
        )
        return numbers[codes]


class Counter64:
    """A count for each number from 0; the array grows when larger numbers are added."""

    def __init__(self) -> None:
        self._counts: Numbers = np.zeros(64, np.int64)

    def add(self, numbers: Numbers, amounts: Numbers | int = 1) -> None:
        """Add an amount to the count of each number; a number may occur several times."""
        if not len(numbers):
            return
        greatest = int(numbers.max())
        if greatest >= len(self._counts):
            more = np.zeros(max(greatest + 1, 2 * len(self._counts)), np.int64)
            more[: len(self._counts)] = self._counts
            self._counts = more
        np.add.at(self._counts, numbers, amounts)

    def first(self, count: int) -> Numbers:
        """Return the counts of the numbers below `count`."""
        if count > len(self._counts):
            self.add(np.array([count - 1]), 0)
        return self._counts[:count]


def partition_values(partitions: pa.StructArray) -> list[tuple[Any, ...]]:
    """Return the physical values of each tuple."""
    columns = [column.to_pylist() for column in partitions.flatten()]
    return list(zip(*columns, strict=True)) if columns else [()] * len(partitions)


def _digest(spec_id: int, values: tuple[Any, ...]) -> int:
    # Python's hash is the same for -1 and -2
    text = repr((spec_id, partition_key(values))).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
