"""Rows in the middle of a row group of a Parquet file, read by the pages that hold them.

Parquet format, "Page Index": the offset index of a column chunk has the place and the first row of
each page. Pages of neighbouring rows, with the dictionary before them, are a shorter column chunk,
and Arrow reads them as a file whose footer says so. Columns whose pages begin at other rows are
read apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.formats.encoding.compact_encoding import (
    LIST,
    STRUCT,
    CompactReader,
    read_signed,
    write_signed,
)

_MAGIC = b"PAR1"
_TAIL = 8
_ROW_GROUPS = 4  # of FileMetaData
_COLUMNS, _ROW_COUNT = 1, 3  # of RowGroup
_META_DATA, _INDEX_OFFSET, _INDEX_LENGTH = 3, 4, 5  # of ColumnChunk
_COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 7, 9, 11  # of ColumnMetaData
_LOCATIONS = 1  # of OffsetIndex
_OFFSET, _PAGE_SIZE, _FIRST_ROW = 1, 2, 3  # of PageLocation
_ENCODINGS = {5: 2, 8: 4}
"""The field of the encoding in each data page header, by the header's field of PageHeader."""
_OF_DICTIONARY = (2, 8)
_ONE_STRUCT = bytes([1 << 4 | STRUCT])
"""The head of a list of one struct."""

MOST_ROWS = 1 << 17
"""The most rows that may be decoded to find one row."""

Span: TypeAlias = tuple[int, int]
"""A begin and an end, of bytes or of rows."""
ReadArrays: TypeAlias = Callable[[pa.NativeFile, pq.FileMetaData, list[int]], list[pa.Array]]
"""A function that reads the columns of some leaves of a file of one row group."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column chunk: where its numbers are in the footer, its start, and its pages.

    `rows` has the first row of each page and the number of rows, `bytes` where each page begins and
    the last one ends. The dictionary, if any, is between the start and the first page.
    """

    numbers: Mapping[int, Span]
    start: int
    rows: list[int]
    bytes: list[int]


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group of the footer: its span, that of its row count, and those of its columns."""

    span: Span
    row_count: Span
    columns: Sequence[Span]


class PageIndex:
    """The page index of an open file, which is not encrypted."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        size = file.size()
        length = int.from_bytes(file.read_at(4, size - _TAIL), "little")
        self._footer: bytes = file.read_at(length, size - _TAIL - length)

    @cached_property
    def _groups(self) -> tuple[Span, list[_Group]]:
        """The span of the list of row groups, and each of them."""
        reader = CompactReader(self._footer)
        begin = end = 0
        groups: list[_Group] = []
        for field_id, kind in reader.fields():
            if field_id != _ROW_GROUPS or kind != LIST:
                reader.skip(kind)
                continue
            begin = reader.at
            groups = [_read_group(reader) for _ in reader.structs()]
            end = reader.at
        return (begin, end), groups

    def pages_of(self, group: int, leaves: Collection[int]) -> RowGroupPages | None:
        """Return the pages of the leaf columns of a row group; None without an index of one.

        An index is not used whose pages are not all bytes and all rows of their column chunk.
        """
        groups, all_groups = self._groups
        chunks: dict[int, _Chunk] = {}
        row_group = all_groups[group]
        rows, _ = read_signed(self._footer, row_group.row_count[0])
        for leaf in leaves:
            try:
                chunk = self._chunk(row_group.columns[leaf], rows)
            except (ValueError, LookupError):
                chunk = None
            if chunk is None:
                return None
            chunks[leaf] = chunk
        return RowGroupPages(self._file, self._footer, groups, row_group, chunks)

    def _chunk(self, span: Span, row_count: int) -> _Chunk | None:
        fields = _fields(CompactReader(self._footer, span[0]))
        if not {_META_DATA, _INDEX_OFFSET, _INDEX_LENGTH} <= fields.keys():
            return None
        numbers = _fields(CompactReader(self._footer, fields[_META_DATA][0]))
        offset, _ = read_signed(self._footer, fields[_INDEX_OFFSET][0])
        length, _ = read_signed(self._footer, fields[_INDEX_LENGTH][0])
        pages = list(_pages(CompactReader(self._file.read_at(length, offset))))
        start, _ = read_signed(self._footer, numbers[_DATA_PAGE][0])
        if _DICTIONARY_PAGE in numbers:
            dictionary, _ = read_signed(self._footer, numbers[_DICTIONARY_PAGE][0])
            start = min(start, dictionary or start)
        size, _ = read_signed(self._footer, numbers[_COMPRESSED_SIZE][0])
        rows = [*(row for row, _, _ in pages), row_count]
        places = [*(begin for _, begin, _ in pages), start + size]
        is_whole = (
            rows[0] == 0
            and rows == sorted(rows)
            and start <= places[0]
            and places[1:] == [end for _, _, end in pages]
        )
        return _Chunk(numbers, start, rows, places) if is_whole else None


@dataclass(frozen=True)
class RowGroupPages:
    """The pages of some leaf columns of one row group."""

    file: pa.NativeFile
    footer: bytes
    groups: Span
    group: _Group
    chunks: Mapping[int, _Chunk]

    def span_of(self, leaves: Collection[int], rows: Span) -> Span:
        """Return the least rows around `rows` that begin and end with pages of all the leaves."""
        bounds = self._bounds(frozenset(leaves))
        return bounds[bisect_right(bounds, rows[0]) - 1], bounds[bisect_left(bounds, rows[1])]

    def are_small(self, columns: Iterable[Collection[int]]) -> bool:
        """Return whether few other rows are decoded to read a row of any of the columns."""
        return all(
            end - begin <= MOST_ROWS
            for leaves in columns
            for begin, end in pairwise(self._bounds(frozenset(leaves)))
        )

    def read(
        self, columns: Sequence[Collection[int]], rows: Span, read_arrays: ReadArrays
    ) -> list[pa.Array]:
        """Return the rows of the columns, which are given by their leaves, at most a few copies.

        A column of several leaves is read where pages of all of them begin.
        """
        together: dict[Span, list[int]] = {}
        for i, leaves in enumerate(columns):
            together.setdefault(self.span_of(leaves, rows), []).append(i)
        arrays: dict[int, pa.Array] = {}
        for span, positions in together.items():
            leaves = sorted(leaf for i in positions for leaf in columns[i])
            file, metadata = self._part(leaves, span)
            in_order = sorted(positions, key=lambda i: min(columns[i]))
            read = read_arrays(file, metadata, leaves)
            if len(read) != len(in_order) or any(len(a) != span[1] - span[0] for a in read):
                raise OSError("its page index has other rows than its pages")
            for i, array in zip(in_order, read, strict=True):
                arrays[i] = array.slice(rows[0] - span[0], rows[1] - rows[0])
        return [arrays[i] for i in range(len(columns))]

    def _bounds(self, leaves: frozenset[int]) -> list[int]:
        """Return the rows at which pages of all the leaves begin, and the number of rows."""
        if leaves not in self._bounds_of:
            first, *others = (self.chunks[leaf].rows for leaf in leaves)
            common = set(first).intersection(*others) if others else first
            self._bounds_of[leaves] = sorted(common)
        return self._bounds_of[leaves]

    @cached_property
    def _bounds_of(self) -> dict[frozenset[int], list[int]]:
        return {}

    def _part(self, leaves: Sequence[int], rows: Span) -> tuple[pa.NativeFile, pq.FileMetaData]:
        """Return a file of these rows of the leaves only, and its footer."""
        parts = [_MAGIC]  # a dictionary at offset 0 would be none
        end = len(_MAGIC)
        numbers: list[tuple[Span, int]] = [(self.group.row_count, rows[1] - rows[0])]
        for leaf in leaves:
            chunk = self.chunks[leaf]
            first, last = (bisect_left(chunk.rows, row) for row in rows)
            places = chunk.bytes[first : last + 1]
            pages = self.file.read_at(places[-1] - places[0], places[0])
            dictionary = b""
            if any(_needs_dictionary(pages, place - places[0]) for place in places[:-1]):
                dictionary = self.file.read_at(chunk.bytes[0] - chunk.start, chunk.start)
            parts += (dictionary, pages)
            begin, pages_begin = end, end + len(dictionary)
            end = pages_begin + len(pages)
            numbers += [
                (chunk.numbers[_COMPRESSED_SIZE], end - begin),
                (chunk.numbers[_DATA_PAGE], pages_begin),
            ]
            if _DICTIONARY_PAGE in chunk.numbers:
                numbers.append(
                    (chunk.numbers[_DICTIONARY_PAGE], begin if begin < pages_begin else 0)
                )
        footer = self._footer_with(numbers)
        length = len(footer).to_bytes(4, "little")
        metadata = pq.read_metadata(pa.BufferReader(b"".join((_MAGIC, footer, length, _MAGIC))))
        return pa.BufferReader(b"".join(parts)), metadata

    def _footer_with(self, numbers: Sequence[tuple[Span, int]]) -> bytes:
        """Return the footer with this row group only, and with other numbers in it."""
        footer = self.footer
        pieces = [footer[: self.groups[0]], _ONE_STRUCT]
        copied, end = self.group.span
        for (first, last), number in sorted(numbers):
            pieces += (footer[copied:first], write_signed(number))
            copied = last
        return b"".join((*pieces, footer[copied:end], footer[self.groups[1] :]))


def _read_group(reader: CompactReader) -> _Group:
    begin = reader.at
    row_count = (begin, begin)
    columns: list[Span] = []
    for field_id, kind in reader.fields():
        start = reader.at
        if field_id == _COLUMNS and kind == LIST:
            for _ in reader.structs():
                start = reader.at
                reader.skip(STRUCT)
                columns.append((start, reader.at))
            continue
        reader.skip(kind)
        if field_id == _ROW_COUNT:
            row_count = (start, reader.at)
    return _Group((begin, reader.at), row_count, columns)


def _fields(reader: CompactReader) -> dict[int, Span]:
    """Read a struct, and return where the value of each field is, by its id."""
    spans = {}
    for field_id, kind in reader.fields():
        begin = reader.at
        reader.skip(kind)
        spans[field_id] = (begin, reader.at)
    return spans


def _needs_dictionary(pages: bytes, begin: int) -> bool:
    """Return whether a data page has no values itself, as far as its header can be read."""
    reader = CompactReader(pages, begin)
    try:
        for field_id, kind in reader.fields():
            if field_id in _ENCODINGS and kind == STRUCT:
                return reader.integers().get(_ENCODINGS[field_id]) in _OF_DICTIONARY
            reader.skip(kind)
    except (ValueError, IndexError):
        pass  # Arrow says what is wrong with the page
    return True


def _pages(reader: CompactReader) -> Iterator[tuple[int, int, int]]:
    """Yield the first row, the begin and the end of each page of an offset index."""
    for field_id, kind in reader.fields():
        if field_id != _LOCATIONS:
            reader.skip(kind)
            continue
        for _ in reader.structs():
            page = reader.integers()
            yield page[_FIRST_ROW], page[_OFFSET], page[_OFFSET] + page[_PAGE_SIZE]
