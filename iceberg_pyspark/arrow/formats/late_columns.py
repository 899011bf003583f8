"""Reads columns of a Parquet file only where columns before them have wanted rows.

The first columns of a row group, which filters and equality deletes ask for, are read batch by
batch. The late columns follow while every batch has wanted rows. Where only some have, the pages of
these rows are read, if the file has a page index and its pages are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

import pyarrow as pa

from iceberg_pyspark.arrow.formats.data_file_formats import LateColumns
from iceberg_pyspark.arrow.formats.parquet_pages import ReadArrays, RowGroupPages

Positioned: TypeAlias = tuple[int, pa.RecordBatch]
"""A batch with the file position of its first row."""
ReadColumns: TypeAlias = Callable[[int, Sequence[int]], Iterator[pa.RecordBatch]]
"""A function that reads all rows of some leaf columns of a row group."""

_FEW_ROWS = 0.25
"""The part of a batch that is read by pages, although the late columns are in step with it."""


class LateReader:
    """A reader of the rows that `late` wants of a file.

    `read_columns` reads columns of a whole row group, `pages_of` and `read_arrays` rows within one.
    """

    def __init__(
        self,
        late: LateColumns,
        read_columns: ReadColumns,
        pages_of: Callable[[int, Sequence[int]], RowGroupPages | None],
        read_arrays: ReadArrays,
    ) -> None:
        self._late = late
        self._read_columns = read_columns
        self._pages_of = pages_of
        self._read_arrays = read_arrays
        count = len(late.columns)
        self._first = [i for i in range(count) if i in late.first]
        self._rest = [i for i in range(count) if i not in late.first]

    def batches(self, row_group: int, position: int) -> Iterator[Positioned]:
        """Yield rows of a row group, with all columns; `position` is that of its first row."""
        rest_columns = [self._late.columns[i] for i in self._rest]
        rest_leaves = [leaf for column in rest_columns for leaf in column]
        rest = _Steps(self._read_columns(row_group, rest_leaves))
        pages: RowGroupPages | None = None
        asked = False
        begin = 0
        firsts = self._read_columns(
            row_group, [leaf for i in self._first for leaf in self._late.columns[i]]
        )
        for batch in firsts:
            wanted = self._late.wanted(position + begin, batch)
            if wanted is not None:
                rows = (begin + wanted[0], begin + wanted[1])
                few = rows[1] - rows[0] < _FEW_ROWS * batch.num_rows
                if not asked and (few or rest.end < begin):
                    pages, asked = self._small_pages(row_group, rest_columns), True
                parts: Iterable[tuple[int, list[pa.Array]]] = rest.take(*rows)
                if pages is not None and (few or rest.end < begin):
                    parts = [(rows[0], pages.read(rest_columns, rows, self._read_arrays))]
                for start, arrays in parts:
                    part = batch.slice(start - begin, len(arrays[0]))
                    yield position + start, self._whole(part, arrays)
            begin += batch.num_rows

    def _small_pages(
        self, row_group: int, columns: Sequence[Sequence[int]]
    ) -> RowGroupPages | None:
        pages = self._pages_of(row_group, [leaf for column in columns for leaf in column])
        return pages if pages is not None and pages.are_small(columns) else None

    def _whole(self, first: pa.RecordBatch, rest: Sequence[pa.Array]) -> pa.RecordBatch:
        columns = [
            *zip(self._first, first.columns, strict=True),
            *zip(self._rest, rest, strict=True),
        ]
        arrays = [array for _, array in sorted(columns, key=itemgetter(0))]
        return pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])


class _Steps:
    """Rows of batches that are taken from front to back; those before `end` have been read."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch | None = None
        self._begin = 0
        self.end = 0

    def take(self, start: int, end: int) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield the rows from `start` to before `end` in parts, each with its first row."""
        while start < end:
            while self.end <= start:
                self._batch = next(self._batches, None)
                if self._batch is None:
                    raise OSError("columns of a row group have different numbers of rows")
                self._begin, self.end = self.end, self.end + self._batch.num_rows
            assert self._batch is not None
            part = self._batch.slice(start - self._begin, end - start)
            yield start, part.columns
            start += part.num_rows
