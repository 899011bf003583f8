"""The longest value in the dictionary of a Parquet column, which each row may decode to.

Parquet format, "Dictionary Encoding" and the Thrift definition of `PageHeader`. A dictionary with
one long value turns a few bytes into gigabytes, and no reader reports the length before it decodes.
"""

from __future__ import annotations

import pyarrow as pa

from iceberg_pyspark.formats.encoding.varints import read_signed, read_unsigned

_CODECS = {"GZIP": "gzip", "ZSTD": "zstd", "SNAPPY": "snappy", "BROTLI": "brotli", "LZ4": "lz4"}
_INT_TYPES = (4, 5, 6)
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 2, 3


def longest_value(data: memoryview, offset: int, compression: str, most: int) -> int:
    """Return the byte length of the longest value in the dictionary page at `offset`.

    A page of more than `most` bytes is not decompressed: it counts as one value. The result is at
    most the size of the page. Raises `ValueError` or `IndexError` for a damaged page.
    """
    sizes, start = _page_header(data, offset)
    size, compressed_size = sizes[_UNCOMPRESSED_SIZE], sizes[_COMPRESSED_SIZE]
    if not 0 <= compressed_size <= len(data) - start or size < 0:
        raise ValueError("a dictionary page reaches past the end")
    codec = _CODECS.get(compression)
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


def _page_header(data: memoryview, offset: int) -> tuple[dict[int, int], int]:
    """Return the numbers of a page header by field id, and the end of the header."""
    numbers: dict[int, int] = {}
    offset = _skip_struct(data, offset, numbers)
    if not {_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE} <= numbers.keys():
        raise ValueError("a page header without sizes")
    return numbers, offset


def _skip_struct(data: memoryview, offset: int, numbers: dict[int, int] | None = None) -> int:
    """Skip a struct in Thrift's compact protocol, and store its integer fields in `numbers`."""
    field_id = 0
    while (head := data[offset]) != 0:
        offset += 1
        kind = head & 0x0F
        if head >> 4:
            field_id += head >> 4
        else:
            field_id, offset = read_signed(data, offset)
        if kind in _INT_TYPES:
            value, offset = read_signed(data, offset)
            if numbers is not None:
                numbers[field_id] = value
        else:
            offset = _skip(data, offset, kind)
    return offset + 1


def _skip(data: memoryview, offset: int, kind: int) -> int:
    match kind:
        case 1 | 2:  # the field header contains the boolean
            return offset
        case 3:  # a byte
            return offset + 1
        case 7:  # a double
            return offset + 8
        case 8:  # a string or bytes
            length, offset = read_unsigned(data, offset)
            return offset + length
        case 12:  # a struct
            return _skip_struct(data, offset)
        case _:
            raise ValueError(f"a page header with a field of type {kind}")
