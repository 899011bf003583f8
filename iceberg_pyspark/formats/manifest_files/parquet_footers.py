"""Read the column chunks in the footer of a Parquet file without pyarrow.

Parquet format, `FileMetaData` in Thrift's compact protocol. pyarrow ends the process when it
accesses a column chunk whose size statistics are damaged; this module can read such a footer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iceberg_pyspark.formats.encoding.varints import read_signed, read_unsigned

_MAGIC = b"PAR1"
_TAIL = 8
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_ROW_COUNT = 3
_TYPE, _CODEC, _NUM_VALUES, _DICTIONARY_PAGE_OFFSET = 1, 4, 5, 11
_NUMBERS_OF_COLUMNS = (_TYPE, _CODEC, _NUM_VALUES, _DICTIONARY_PAGE_OFFSET)
_BYTE_ARRAY = 6
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_MAX_DEPTH = 20
_MAX_BYTES = 10
"""Of a number of 64 bits, seven bits in a byte."""


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
    footer = _Footer(bytes(data[len(data) - _TAIL - length : -_TAIL]))
    return tuple(footer.row_groups())


@dataclass(slots=True)
class _Footer:
    """A read position in the bytes of a footer."""

    data: bytes
    at: int = 0

    def row_groups(self) -> Iterator[RowGroup]:
        for field_id, kind in self._fields():
            if field_id == _ROW_GROUPS and kind == _LIST:
                for _ in self._structs():
                    yield self._row_group()
            else:
                self._skip(kind)

    def _row_group(self) -> RowGroup:
        numbers: dict[int, int] = {}
        columns: tuple[ColumnChunk, ...] = ()
        for field_id, kind in self._fields():
            if field_id == _COLUMNS and kind == _LIST:
                columns = tuple(self._column_chunk() for _ in self._structs())
            elif kind in _INTEGERS:
                numbers[field_id] = self._number()
            else:
                self._skip(kind)
        return RowGroup(
            byte_size=numbers.get(2, 0), row_count=numbers.get(_ROW_COUNT, 0), columns=columns
        )

    def _column_chunk(self) -> ColumnChunk:
        numbers: dict[int, int] = {}
        for field_id, kind in self._fields():
            if field_id == _META_DATA and kind == _STRUCT:
                for id_, inner in self._fields():
                    if inner in _INTEGERS and id_ in _NUMBERS_OF_COLUMNS:
                        numbers[id_] = self._number()
                    else:
                        self._skip(inner)
            else:
                self._skip(kind)
        codec = numbers.get(_CODEC, 0)
        if not 0 <= codec < len(_CODECS):
            raise ValueError(f"a column with codec {codec}")
        return ColumnChunk(
            is_text=numbers.get(_TYPE) == _BYTE_ARRAY,
            codec=_CODECS[codec],
            value_count=max(0, numbers.get(_NUM_VALUES, 0)),
            dictionary=numbers.get(_DICTIONARY_PAGE_OFFSET),
        )

    # --- Thrift ---

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield the id and kind of each field of a struct; the caller must consume the value."""
        field_id = 0
        data = self.data
        while (head := data[self.at]) != _STOP:
            self.at += 1
            field_id = field_id + (head >> 4) if head >> 4 else self._number()
            yield field_id, head & 0x0F
        self.at += 1

    def _structs(self) -> Iterator[None]:
        """Yield once for each element of a list of structs."""
        count, kind, self.at = _list_head(self.data, self.at)
        if kind != _STRUCT:
            raise ValueError("a footer with a list of another kind")
        for _ in range(count):
            yield None

    def _skip(self, kind: int) -> None:
        self.at = _end_of_value(self.data, self.at, kind, 0)

    def _number(self) -> int:
        number, self.at = read_signed(self.data, self.at)
        return number


# Functions with a position as an argument, since most of a footer is skipped, and attributes cost
# twice the time of local names.


def _end_of_value(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return the position after the value of a kind at a position."""
    if kind in _INTEGERS:
        return _end_of_number(data, at)
    if kind == _TEXT:
        length, at = read_unsigned(data, at)
        return at + length
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if depth == _MAX_DEPTH:
        raise ValueError("a footer that nests too deep")
    if kind == _STRUCT:
        while (head := data[at]) != _STOP:
            at += 1
            if not head >> 4:
                at = _end_of_number(data, at)
            at = _end_of_value(data, at, head & 0x0F, depth + 1)
        return at + 1
    if kind in (_LIST, _SET):
        count, inner, at = _list_head(data, at)
        # in a list, a boolean takes one byte
        inner = _BYTE if inner in (_TRUE, _FALSE) else inner
        for _ in range(count):
            at = _end_of_value(data, at, inner, depth + 1)
        return at
    raise ValueError(f"a footer with a field of type {kind}")


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number of a list's elements, their kind, and the position of the first."""
    head = data[at]
    at += 1
    count = head >> 4
    if count == 15:
        count, at = read_unsigned(data, at)
    if count > len(data):
        raise ValueError("a footer with a list that is longer than itself")
    return count, head & 0x0F, at


def _end_of_number(data: bytes, at: int) -> int:
    end = at
    while data[end] >= 0x80:
        end += 1
    if end >= at + _MAX_BYTES:
        raise ValueError("a number of more than 64 bits")
    return end + 1
