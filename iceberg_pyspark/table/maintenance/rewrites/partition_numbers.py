"""Numbers the partitions of a table, and counts values per partition, for millions of files.

Manifests are read one at a time, and a few integers are kept per partition; the partition values
are looked up again for the few partitions that are shown.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from iceberg_pyspark.planning.partition_codes import PartitionCodes
from iceberg_pyspark.spec.partitioning import partition_key

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
