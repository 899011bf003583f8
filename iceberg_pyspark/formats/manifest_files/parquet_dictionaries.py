"""The longest value in the dictionary of a Parquet column, which each row may decode to.

Parquet format, "Dictionary Encoding" and the Thrift definition of `PageHeader`. A dictionary with
one long value turns a few bytes into gigabytes, and no reader reports the length before it decodes.
"""

from __future__ import annotations

import pyarrow as pa

from iceberg_pyspark.formats.encoding.thrift_compact import CompactReader

_CODECS = {"GZIP": "gzip", "ZSTD": "zstd", "SNAPPY": "snappy", "BROTLI": "brotli", "LZ4": "lz4"}
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
