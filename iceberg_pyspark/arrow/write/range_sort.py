"""Sorts the rows of many files in bounded memory.

Rows that fit into memory are sorted there. Otherwise a sample of the sort keys determines the
bounds of ranges; the rows of each range are written to a temporary file, and the ranges are sorted
one after another. A range that does not fit is split again, by longer prefixes of strings and by
the keys that differ within it, until it fits or all of its keys are equal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from iceberg_pyspark.arrow.write.row_order import Ranges, RowOrder

Source: TypeAlias = Callable[[], Iterable[pa.RecordBatch]]
"""A function that reads the same rows again at each call."""

_SAMPLED_ROWS = 100_000
SHORT_TEXTS = 16
_LONGER = 8
_LONGEST_TEXTS = 65_536
_MAX_RANGES = 256
_MEMORY_PER_FILE_BYTE = 8
"""The assumed memory of rows, in bytes per byte of their compressed file."""
_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, kw_only=True)
class SortMemory:
    """The memory of a sort, in bytes: rows sorted at once, and rows buffered before a spill."""

    in_memory: int = 256 * 1024 * 1024
    buffered: int = 64 * 1024 * 1024

    def ranges(self, file_bytes: int) -> int:
        """Return the number of ranges for files of a total size: nearly all fit into memory.

        A range is an eighth of `in_memory`, because several threads sort ranges at a time.

        >>> SortMemory().ranges(64 * 1024 * 1024), SortMemory().ranges(1)
        (16, 1)
        """
        range_count = 8 * file_bytes * _MEMORY_PER_FILE_BYTE // self.in_memory
        return min(max(range_count, 1), _MAX_RANGES)

    def ranges_per_file(self, file_bytes: int, file_count: int) -> int:
        """Return the number of ranges of each of some new files that are sorted together.

        Every new file has as many ranges as the others, so the files have about equal sizes.

        >>> SortMemory().ranges_per_file(64 * 1024 * 1024, 3)
        5
        """
        return max(self.ranges(file_bytes) // file_count, 1)


class RangeSort:
    """A sort of the rows of several sources into consecutive parts.

    Use this context manager's parts before leaving it. Each part can be read once; several threads
    may read different parts at a time.
    """

    def __init__(
        self,
        order: RowOrder,
        *,
        sample: Callable[[], Iterable[pa.RecordBatch]],
        count: int,
        memory: SortMemory,
    ) -> None:
        """Create a sort into `count` ranges; `sample` gives some rows, at least their sort columns.

        A range that does not fit into memory is split again when it is read.
        """
        self._memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="iceberg-sort-")
        try:
            rows = sample_of(sample())
            self._order = order if rows is None else order.fit(rows)
            self._ranges = None if rows is None else self._order.ranges(rows, count, SHORT_TEXTS)
            self._spill = Spill(Path(self._folder.name), memory.buffered)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> RangeSort:
        return self

    def __exit__(self, *_: object) -> None:
        self._spill.close()
        self._folder.cleanup()

    def read(self, sources: Sequence[Source], threads: int) -> None:
        """Read all rows into their ranges, several sources at a time."""
        with ThreadPoolExecutor(threads, thread_name_prefix="range-sort") as pool:
            for _ in pool.map(self._read, sources):
                pass
        self._spill.close()

    def _read(self, source: Source) -> None:
        for batch in source():
            if self._ranges is None:
                raise AssertionError("there are rows and no sample of them")
            self._spill.add(list(pieces_by_range(self._ranges, batch)))

    def parts(self, count: int) -> list[Source]:
        """Return at most `count` parts of about equal size, in order."""
        parts: list[list[int]] = [[] for _ in range(count)]
        for number, part in parts_of_ranges(self._spill.sizes(), count).items():
            parts[part].append(number)
        return [partial(self._sort_parts, part) for part in parts if part]

    def _sort_parts(self, numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            yield from self._spill.sorted(number, self._order, self._memory)


def parts_of_ranges(sizes: Mapping[int, int], count: int) -> dict[int, int]:
    """Return the part of each range, for `count` consecutive parts of about equal size.

    >>> parts_of_ranges({0: 5, 1: 0, 2: 5, 3: 10}, 2)
    {0: 0, 1: 0, 2: 0, 3: 1}
    """
    total, so_far = sum(sizes.values()), 0
    parts = {}
    for number in sorted(sizes):
        # a range belongs to the part that contains its middle
        middle = so_far + sizes[number] / 2
        parts[number] = min(int(middle * count / max(total, 1)), count - 1)
        so_far += sizes[number]
    return parts


def sorted_rows(
    source: Source, order: RowOrder, memory: SortMemory, text_bytes: int = SHORT_TEXTS
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source in order, through a temporary folder if memory is too small."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in source():
        waiting.append(batch)
        size += batch.nbytes
        if size > memory.in_memory:
            break
    else:
        if (rows := sample_of(waiting)) is not None:
            yield from order.fit(rows).sort(pa.Table.from_batches(waiting)).to_batches()
        return
    waiting.clear()
    rows = sample_of(source())
    assert rows is not None, "there were rows a moment ago"
    order = order.fit(rows)
    ranges = order.ranges(rows, _MAX_RANGES, text_bytes)
    with tempfile.TemporaryDirectory(prefix="iceberg-sort-") as folder:
        spill = Spill(Path(folder), memory.buffered)
        try:
            for batch in source():
                spill.add(pieces_by_range(ranges, batch))
        finally:
            spill.close()
        numbers = sorted(spill.sizes())
        if len(numbers) > 1:
            for number in numbers:
                yield from spill.sorted(number, order, memory, text_bytes)
            return
    rest = order.without_constants(source())
    if rest is None:
        yield from source()
    elif rest != order:
        yield from sorted_rows(source, rest, memory)
    elif text_bytes < _LONGEST_TEXTS:
        yield from sorted_rows(source, rest, memory, text_bytes * _LONGER)
    else:
        # texts with so long a common prefix are not worth more effort: sort all rows in memory
        yield from order.sort(pa.Table.from_batches(source())).to_batches()


def sample_of(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return an even sample of all rows, or None if there are no rows.

    Every n-th row of each batch is taken; n doubles whenever the sample becomes too large.
    """
    step, count = 1, 0
    sample: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        sample.append(batch.take(pa.array(np.arange(0, batch.num_rows, step))))
        count += sample[-1].num_rows
        if count > 2 * _SAMPLED_ROWS:
            rows = pa.Table.from_batches(sample).combine_chunks()
            rows = rows.take(pa.array(np.arange(0, count, 2)))
            sample, count, step = rows.to_batches(), rows.num_rows, step * 2
    if not sample:
        return None
    [single_batch] = pa.Table.from_batches(sample).combine_chunks().to_batches()
    return single_batch


class Spill:
    """A store of rows by range: in memory up to a limit, then in one file per range."""

    def __init__(self, folder: Path, buffered: int) -> None:
        self._folder = folder
        self._most = buffered
        self._lock = Lock()
        self._waiting: dict[int, list[pa.RecordBatch]] = {}
        self._size = 0
        self._bytes: dict[int, int] = {}
        self._writers: dict[int, tuple[pa.NativeFile, pa.ipc.RecordBatchStreamWriter]] = {}

    def add(self, pieces: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        """Add rows of several ranges; thread-safe."""
        with self._lock:
            for number, rows in pieces:
                self._waiting.setdefault(number, []).append(rows)
                self._bytes[number] = self._bytes.get(number, 0) + rows.nbytes
                self._size += rows.nbytes
            if self._size > self._most:
                self._flush()

    def sizes(self) -> dict[int, int]:
        """Return the size in bytes of each range that has rows."""
        return self._bytes

    def sorted(
        self, number: int, order: RowOrder, memory: SortMemory, text_bytes: int = SHORT_TEXTS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range in order and delete its file; `close` must have been called."""
        path = self._path(number)
        yield from sorted_rows(partial(_read_spill, path), order, memory, text_bytes)
        path.unlink()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrows"

    def close(self) -> None:
        """Write the waiting rows and close the files; may be called again."""
        self._flush()
        for file, writer in self._writers.values():
            writer.close()
            file.close()
        self._writers.clear()

    def _flush(self) -> None:
        for number, batches in self._waiting.items():
            rows = pa.Table.from_batches(batches).combine_chunks()
            if number not in self._writers:
                file = pa.OSFile(str(self._path(number)), "wb")
                writer = pa.ipc.new_stream(file, rows.schema, options=_COMPRESSION)
                self._writers[number] = file, writer
            self._writers[number][1].write_table(rows)
        self._waiting, self._size = {}, 0


def pieces_by_range(ranges: Ranges, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each range in the batch; the pieces share the memory of one copy."""
    numbers = ranges.of(batch)
    if not len(numbers):
        return
    order = np.argsort(numbers, kind="stable")
    rows = batch.take(pa.array(order))
    sorted_numbers = numbers[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_numbers[1:] != sorted_numbers[:-1]]))
    ends = [*starts[1:], len(sorted_numbers)]
    for start, end in zip(starts, ends, strict=True):
        yield int(sorted_numbers[start]), rows.slice(start, end - start)


def _read_spill(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as reader:
        yield from reader
