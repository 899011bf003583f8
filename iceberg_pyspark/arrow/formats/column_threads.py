"""Reads columns of a Parquet file in several threads, in bounded memory and in the order of rows.

Each thread decodes some of the columns, one batch ahead of the reader. Arrow's own threads also
decode columns, but wait for the reader after each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

Column: TypeAlias = list[int]
"""The leaves of a top-level column that are read."""

_LEAST_WORK = 4_000_000
"""The least work for threads, in nanoseconds: a thread takes some 0.1 milliseconds."""
_MOST_PARTS = 4
"""The most threads of a file: the allocator keeps some memory for each."""


def in_parts(columns: Sequence[tuple[int, Column]], count: int) -> list[list[Column]]:
    """Distribute columns, each with its work, to at most `count` parts of about the same work.

    There is one part if threads would take longer than they save.
    """
    if sum(work for work, _ in columns) < _LEAST_WORK:
        count = 1
    parts: list[list[Column]] = [[] for _ in range(min(count, _MOST_PARTS, len(columns)))]
    sums = [0] * len(parts)
    for work, column in sorted(columns, reverse=True):
        least = sums.index(min(sums))
        parts[least].append(column)
        sums[least] += work
    return [sorted(part) for part in parts]


def read_in_threads(
    parts: Sequence[Sequence[Column]],
    read: Callable[[Sequence[int]], Iterator[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the columns of all parts, in file order; each part is read in a thread.

    `read` returns all rows of some leaves, in batches of any length.
    """
    columns = list(chain.from_iterable(parts))
    order = sorted(range(len(columns)), key=columns.__getitem__)
    with ThreadPoolExecutor(len(parts), thread_name_prefix="read-columns") as pool:
        streams = [read(list(chain.from_iterable(part))) for part in parts]
        coming = [pool.submit(next, stream, None) for stream in streams]
        here: list[pa.RecordBatch | None] = [None] * len(parts)
        while True:
            for i, batch in enumerate(here):
                if batch is None:
                    here[i] = coming[i].result()
                    coming[i] = pool.submit(next, streams[i], None)
            batches = [batch for batch in here if batch is not None]
            if len(batches) < len(parts):
                break
            rows = min(batch.num_rows for batch in batches)
            here = [b.slice(rows) if b.num_rows > rows else None for b in batches]
            arrays = [a for batch in batches for a in batch.slice(0, rows).columns]
            fields = [field for batch in batches for field in batch.schema]
            yield pa.RecordBatch.from_arrays(
                [arrays[i] for i in order], schema=pa.schema([fields[i] for i in order])
            )
    if batches:
        raise OSError("columns of a row group have different numbers of rows")
