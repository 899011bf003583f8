"""Integers of variable length, and Thrift's compact protocol, which is made of them.

An integer has seven bits in each byte, the lowest first, as in Avro and Thrift. Signed numbers are
written in zigzag order: 0, -1, 1, -2, ... The reader of structs skips values that nobody asks for:
Parquet writes footers and page headers in this protocol. Damaged bytes raise `ValueError` or
`IndexError`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass


def read_unsigned(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """Return a number and the offset after it.

    Raise `ValueError` for more than 64 bits, and `IndexError` if the data ends before the number.
    """
    number = shift = 0
    while (byte := data[offset]) >= 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        offset += 1
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    return number | byte << shift, offset + 1


def read_signed(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """Return a number in zigzag order and the offset after it; raise as `read_unsigned` does."""
    number, offset = read_unsigned(data, offset)
    return (number >> 1) ^ -(number & 1), offset


def write_unsigned(number: int) -> bytes:
    """Return the bytes of a number of at most 64 bits."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_signed(number: int) -> bytes:
    """Return the bytes of a number of at most 64 bits, in zigzag order."""
    return write_unsigned((number << 1) ^ (number >> 63))


LIST, STRUCT = 9, 12
"""The kinds of fields that a caller reads by itself."""

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _TEXT, _SET = 0, 1, 2, 3, 7, 8, 10
_INTEGERS = (4, 5, 6)
_MAX_DEPTH = 20
_MAX_BYTES = 10
"""Of a number of 64 bits, seven bits in a byte."""


@dataclass(slots=True)
class CompactReader:
    """A read position in bytes."""

    data: bytes | memoryview
    at: int = 0

    def others(
        self, integers: dict[int, int], ids: Collection[int] | None = None
    ) -> Iterator[tuple[int, int]]:
        """Read a struct: store its integers by field id, and yield each other field's id and kind.

        The caller must read or skip the value of a field that is yielded. With `ids`, integers of
        other fields are skipped.
        """
        field_id = 0
        data = self.data
        while (head := data[self.at]) != _STOP:
            self.at += 1
            field_id = field_id + (head >> 4) if head >> 4 else self._number()
            kind = head & 0x0F
            if kind not in _INTEGERS:
                yield field_id, kind
            elif ids is None or field_id in ids:
                integers[field_id] = self._number()
            else:
                self.skip(kind)
        self.at += 1

    def fields(self) -> Iterator[tuple[int, int]]:
        """Read a struct: yield each field's id and kind; the caller must read or skip its value."""
        field_id = 0
        while (head := self.data[self.at]) != _STOP:
            self.at += 1
            field_id = field_id + (head >> 4) if head >> 4 else self._number()
            yield field_id, head & 0x0F
        self.at += 1

    def integers(self, ids: Collection[int] | None = None) -> dict[int, int]:
        """Read a struct, and return its integers by field id; skip all other fields."""
        integers: dict[int, int] = {}
        for _, kind in self.others(integers, ids):
            self.skip(kind)
        return integers

    def structs(self) -> Iterator[None]:
        """Yield once for each element of a list of structs; the caller must read the struct."""
        count, kind, self.at = _list_head(self.data, self.at)
        if kind != STRUCT:
            raise ValueError("a list of another kind")
        for _ in range(count):
            yield None

    def skip(self, kind: int) -> None:
        """Skip a value."""
        self.at = _end_of_value(self.data, self.at, kind, 0)

    def _number(self) -> int:
        number, self.at = read_signed(self.data, self.at)
        return number


# Functions with a position as an argument, since most of a struct is skipped, and attributes cost
# twice the time of local names.


def _end_of_value(data: bytes | memoryview, at: int, kind: int, depth: int) -> int:
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
        raise ValueError("a struct that nests too deep")
    if kind == STRUCT:
        while (head := data[at]) != _STOP:
            at += 1
            if not head >> 4:
                at = _end_of_number(data, at)
            at = _end_of_value(data, at, head & 0x0F, depth + 1)
        return at + 1
    if kind in (LIST, _SET):
        count, inner, at = _list_head(data, at)
        # in a list, a boolean takes one byte
        inner = _BYTE if inner in (_TRUE, _FALSE) else inner
        for _ in range(count):
            at = _end_of_value(data, at, inner, depth + 1)
        return at
    raise ValueError(f"a field of type {kind}")


def _list_head(data: bytes | memoryview, at: int) -> tuple[int, int, int]:
    """Return the number of a list's elements, their kind, and the position of the first."""
    head = data[at]
    at += 1
    count = head >> 4
    if count == 15:
        count, at = read_unsigned(data, at)
    if count > len(data):
        raise ValueError("a list that is longer than its bytes")
    return count, head & 0x0F, at


def _end_of_number(data: bytes | memoryview, at: int) -> int:
    end = at
    while data[end] >= 0x80:
        end += 1
    if end >= at + _MAX_BYTES:
        raise ValueError("a number of more than 64 bits")
    return end + 1
