"""Integers of variable length: seven bits in each byte, the lowest first, as in Avro and Thrift.

Signed numbers are written in zigzag order: 0, -1, 1, -2, ...
"""

from __future__ import annotations


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


def write_signed(number: int) -> bytes:
    """Return the bytes of a number of at most 64 bits, in zigzag order."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
