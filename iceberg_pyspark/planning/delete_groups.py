"""Matches deletes of one kind with data files, by a key and by data sequence numbers.

The key is the scope of the kind: a path, a partition, or nothing. The deletes of a key are sorted
by data sequence number, so the deletes that apply to a data file are a range, which binary search
finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Pairs: TypeAlias = tuple[Numbers, Numbers]
"""Rows of data files, and for each the row of a delete that applies."""

MAX_PAIRS = 1_000_000
"""The most pairs in memory at once, before `keep` filters the pairs."""


@dataclass(frozen=True)
class DeleteGroup:
    """The rows of some deletes, sorted by key and then by data sequence number."""

    keys: Numbers
    sequence_numbers: Numbers
    rows: Numbers

    def pairs(
        self,
        keys: Numbers,
        sequence_numbers: Numbers,
        *,
        strictly_older: bool,
        keep: Callable[[Numbers, Numbers], Pairs],
    ) -> Pairs:
        """Return those pairs with equal keys and sequence numbers in scope that `keep` keeps.

        A delete applies to data with the same or a lower sequence number; with `strictly_older`,
        only to data with a lower one. A negative key matches nothing.
        """
        if not len(self.rows):
            return join_pairs()
        # ranks replace sequence numbers, so that key and rank fit in one integer
        distinct_numbers, ranks = np.unique(self.sequence_numbers, return_inverse=True)
        first_rank = np.searchsorted(
            distinct_numbers, sequence_numbers, side="right" if strictly_older else "left"
        )
        width = len(distinct_numbers) + 1
        sorted_keys = self.keys * width + ranks
        start = np.searchsorted(sorted_keys, keys * width + first_rank)
        end = np.searchsorted(sorted_keys, (keys + 1) * width)
        counts = np.where(keys >= 0, end - start, 0)
        return join_pairs(*(keep(*step) for step in self._in_steps(start, counts)))

    def _in_steps(self, start: Numbers, counts: Numbers) -> Iterator[Pairs]:
        """Yield the pairs of a few data files at a time: every file may match every delete."""
        data_rows = np.flatnonzero(counts)
        totals = np.cumsum(counts[data_rows])
        first = 0
        while first < len(data_rows):
            before = totals[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(totals, before + MAX_PAIRS, "right")))
            rows = data_rows[first:last]
            here = counts[rows]
            within = np.arange(here.sum()) - np.repeat(np.cumsum(here) - here, here)
            yield np.repeat(rows, here), self.rows[np.repeat(start[rows], here) + within]
            first = last


def group_deletes(rows: Numbers, keys: Numbers, sequence_numbers: Numbers) -> DeleteGroup:
    """Return the group of the deletes in `rows`; the other arrays cover every delete."""
    keys, sequence_numbers = keys[rows], sequence_numbers[rows]
    order = np.lexsort((sequence_numbers, keys))
    return DeleteGroup(keys[order], sequence_numbers[order], rows[order])


def join_pairs(*pairs: Pairs) -> Pairs:
    """Concatenate the pairs."""
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *(p[0] for p in pairs)]), np.concatenate(
        [none, *(p[1] for p in pairs)]
    )
