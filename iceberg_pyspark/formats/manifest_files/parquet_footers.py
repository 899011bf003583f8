"""Reads the footer and the dictionaries of a Parquet file without pyarrow.

Parquet format, `FileMetaData` and `PageHeader` in Thrift's compact protocol, and "Dictionary
Encoding". pyarrow ends the process when it accesses a column chunk whose size statistics are
damaged; this module can read such a footer. A dictionary with one long value turns a few bytes into
gigabytes, and no reader reports the length before it decodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from iceberg_pyspark.formats.encoding.compact_encoding import LIST, STRUCT, CompactReader

_MAGIC = b"PAR1"
_TAIL = 8
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_BYTE_SIZE, _ROW_COUNT = 2, 3
_TYPE, _CODEC, _NUM_VALUES, _DICTIONARY_PAGE_OFFSET = 1, 4, 5, 11
_NUMBERS_OF_COLUMNS = (_TYPE, _CODEC, _NUM_VALUES, _DICTIONARY_PAGE_OFFSET)
_BYTE_ARRAY = 6
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A column of a row group; `dictionary` is the offset of its dictionary page, or None."""

    is_text: bool
    codec: str
    value_count: int
    dictionary: int | None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: its size in bytes, its number of rows, and its columns."""

    byte_size: int
    row_count: int
    columns: tuple[ColumnChunk, ...]


def read_row_groups(data: memoryview) -> tuple[RowGroup, ...]:
    """Return the row groups of a file; raise `ValueError` or `IndexError` for a damaged footer."""
    if len(data) < 2 * _TAIL or bytes(data[-4:]) != _MAGIC:
        raise ValueError("no Parquet file, or one that is cut short")
    length = int.from_bytes(data[-8:-4], "little")
    if length > len(data) - _TAIL:
        raise ValueError("its footer would be longer than the file")
    footer = CompactReader(bytes(data[len(data) - _TAIL - length : -_TAIL]))
    return tuple(_row_groups(footer))


def _row_groups(footer: CompactReader) -> Iterator[RowGroup]:
    for field_id, kind in footer.others({}, ()):
        if field_id == _ROW_GROUPS and kind == LIST:
            for _ in footer.structs():
                yield _row_group(footer)
        else:
            footer.skip(kind)


def _row_group(footer: CompactReader) -> RowGroup:
    numbers: dict[int, int] = {}
    columns: tuple[ColumnChunk, ...] = ()
    for field_id, kind in footer.others(numbers):
        if field_id == _COLUMNS and kind == LIST:
            columns = tuple(_column_chunk(footer) for _ in footer.structs())
        else:
            footer.skip(kind)
    return RowGroup(
        byte_size=numbers.get(_BYTE_SIZE, 0), row_count=numbers.get(_ROW_COUNT, 0), columns=columns
    )


def _column_chunk(footer: CompactReader) -> ColumnChunk:
    numbers: dict[int, int] = {}
    for field_id, kind in footer.others({}, ()):
        if field_id == _META_DATA and kind == STRUCT:
            numbers = footer.integers(_NUMBERS_OF_COLUMNS)
        else:
            footer.skip(kind)
    codec = numbers.get(_CODEC, 0)
    if not 0 <= codec < len(_CODECS):
        raise ValueError(f"a column with codec {codec}")
    return ColumnChunk(
        is_text=numbers.get(_TYPE) == _BYTE_ARRAY,
        codec=_CODECS[codec],
        value_count=max(0, numbers.get(_NUM_VALUES, 0)),
        dictionary=numbers.get(_DICTIONARY_PAGE_OFFSET),
    )


_ARROW_CODECS = {
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "SNAPPY": "snappy",
    "BROTLI": "brotli",
    "LZ4": "lz4",
}
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3


def longest_value(data: memoryview, offset: int, compression: str, most: int) -> int:
    """Return the byte length of the longest value in the dictionary page at `offset`.

    A page of more than `most` bytes is not decompressed: it counts as one value. The result is at
    most the size of the page. Raises `ValueError` or `IndexError` for a damaged page.
    """
    header = CompactReader(data, offset)
    sizes = header.integers()
    start = header.at
    if not {_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE} <= sizes.keys():
        raise ValueError("a page header without sizes")
    size, compressed_size = sizes[_UNCOMPRESSED_SIZE], sizes[_COMPRESSED_SIZE]
    if not 0 <= compressed_size <= len(data) - start or size < 0:
        raise ValueError("a dictionary page reaches past the end")
    codec = _ARROW_CODECS.get(compression)
    if size > most or (codec is None and compression != "UNCOMPRESSED"):
        return size
    page = data[start : start + compressed_size]
    if codec is not None:
        page = memoryview(pa.Codec(codec).decompress(page, decompressed_size=size))
    longest = at = 0
    while at + 4 <= len(page):
        length = int.from_bytes(page[at : at + 4], "little")
        longest = max(longest, length)
        at += 4 + length
    return min(longest, size)
