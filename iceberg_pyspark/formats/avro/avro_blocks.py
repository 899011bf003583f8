"""Decompresses the blocks of Avro files one by one, and only as far as memory allows.

The memory that the decoded records of a block will take is estimated from the schema before the
block is decoded: a null field may take a megabyte in a column, and an item of one byte a whole
dict. Costs apply to schemas as renamed by `formats/avro/avro.py`, in which every item takes at
least one byte.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.compact_encoding import read_unsigned
from iceberg_pyspark.formats.encoding.decoded_files import too_large

CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")

_XZ_MEMORY = 128 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """The memory of decoded records: bytes per record, and bytes per byte in the file."""

    per_record: float
    per_byte: float

    def of(self, records: int, size: int) -> float:
        """Return the upper bound for `records` records in `size` bytes."""
        return self.per_record * records + self.per_byte * size

    def of_bytes(self) -> Cost:
        """Return the cost without the part per record, to decode a few records at a time."""
        return Cost(0, self.per_byte)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.per_record + other.per_record, self.per_byte + other.per_byte)


@dataclass(frozen=True, slots=True)
class Block:
    """The uncompressed records of a block."""

    record_count: int
    data: bytes | memoryview


def check_codec(codec: str, location: str) -> None:
    """Raise `UnsupportedFeatureError` for a codec that cannot be read."""
    if codec not in CODECS:
        raise UnsupportedFeatureError(
            f"{location}: Avro codec '{codec}' is not supported; "
            f"{', '.join(CODECS[:-1])} and {CODECS[-1]} are"
        )


def plain_blocks(
    blocks: Iterable[tuple[int, memoryview]],
    codec: str,
    cost: Cost,
    most: float,
    location: str,
    file_size: int,
    room: float,
) -> Iterator[Block]:
    """Decompress blocks lazily; no block may cost more than `most`.

    All blocks together may hold `room` bytes. Raises `ValueError`, `IndexError`, `OSError`,
    `zlib.error` or `lzma.LZMAError` for a damaged block.
    """
    for count, block in blocks:
        room_in_rows = int(min(room, (most - cost.of(count, 0)) / max(cost.per_byte, 1)))
        plain = _decompress(block, codec, room_in_rows) if room_in_rows >= 0 else None
        if plain is None or len(plain) > room_in_rows:
            raise too_large(location, file_size)
        if count > len(plain):
            raise ValueError(f"a block declares {count} records in {len(plain)} bytes")
        room -= len(plain)
        yield Block(count, plain)


def _decompress(block: memoryview, codec: str, room: int) -> bytes | memoryview | None:
    """Return the block's bytes, or more than `room` of them; None if it is known to have more."""
    match codec:
        case "null":
            return block
        case "deflate":
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            plain = inflater.decompress(block, room + 1)
            if not inflater.eof and len(plain) <= room:
                raise ValueError("a deflate block is cut short")
            return plain
        case "zstandard":
            with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
                return cast("bytes", stream.read(room + 1))
        case "snappy":
            # Avro appends a CRC32 of the uncompressed bytes; Snappy's own bytes begin with the
            # length
            size, _ = read_unsigned(block, 0)
            if size > room:
                return None
            body = pa.py_buffer(block[:-4])
            plain = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
            if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
                raise ValueError("a snappy block does not match its checksum")
            return cast("bytes", plain)
        case "bzip2":
            return _whole(bz2.BZ2Decompressor(), block, room)
        case _:
            return _whole(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), block, room)


def compress(plain: bytes, codec: str) -> bytes:
    """Return the stored bytes of a block in a codec that manifests are written in."""
    match codec:
        case "null":
            return plain
        case "deflate":
            deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            return deflater.compress(plain) + deflater.flush()
        case "snappy":
            body = cast("bytes", pa.compress(plain, codec="snappy", asbytes=True))
            return body + zlib.crc32(plain).to_bytes(4, "big")
        case _:
            return cast("bytes", pa.compress(plain, codec="zstd", asbytes=True))


def _whole(
    decompressor: bz2.BZ2Decompressor | lzma.LZMADecompressor, block: memoryview, room: int
) -> bytes:
    plain = decompressor.decompress(block, max_length=room + 1)
    if not decompressor.eof and len(plain) <= room:
        raise ValueError("a block is cut short")
    return plain


def arrow_cost(schema: Any) -> Cost:
    """Return the memory cost of a renamed schema's records as Arrow columns."""
    return Cost(_arrow_width(schema), max(_item_ratios(schema, _arrow_width), default=1))


def python_cost(schema: Any) -> Cost:
    """Return the memory cost of a renamed schema's records as Python values."""
    # one character beyond ASCII can make Python store every character of a text in four bytes
    return Cost(_python_size(schema), max(4, *_item_ratios(schema, _python_size), 0))


def _item_ratios(schema: Any, size: Any) -> Iterator[float]:
    """Yield an item's bytes of memory per byte in the file, for each list and map."""
    match schema:
        case {"type": "array", "items": items}:
            yield max(1, (size(items) + _POINTER) / _min_bytes(items))
            yield from _item_ratios(items, size)
        case {"type": "map", "values": values}:
            yield max(1, (size(values) + _MAP_KEY) / (1 + _min_bytes(values)))
            yield from _item_ratios(values, size)
        case {"type": "record", "fields": fields}:
            for f in fields:
                yield from _item_ratios(f["type"], size)
        case [*branches]:
            for branch in branches:
                yield from _item_ratios(branch, size)


_POINTER = 9
_MAP_KEY = 120
_ARROW_WIDTHS = {"null": 0, "boolean": 1, "int": 4, "float": 4, "long": 8, "double": 8}
_ARROW_TEXT = 16
_ARROW_NESTED_WIDTH = 8
_PYTHON_SIZES = {"null": 0, "boolean": 0, "int": 32, "long": 40, "float": 32, "double": 32}
_PYTHON_TEXT = 64
_PYTHON_DECIMAL = 128
_PYTHON_DICT = 240
_PYTHON_DICT_ENTRY = 45
_MIN_BYTES = {"null": 0, "float": 4, "double": 8}


def _arrow_width(schema: Any) -> int:
    match schema:
        case {"type": "record", "fields": fields}:
            return _ARROW_NESTED_WIDTH + sum(_arrow_width(f["type"]) for f in fields)
        case {"type": "array" | "map"}:
            return _ARROW_NESTED_WIDTH
        case {"type": "fixed", "size": size}:
            return max(int(size), _ARROW_TEXT)
        case [*branches]:
            return 1 + sum(map(_arrow_width, branches))
        case str():
            return _ARROW_WIDTHS.get(schema, _ARROW_TEXT)
        case _:
            return _ARROW_TEXT


def _python_size(schema: Any) -> int:
    match schema:
        case {"type": "record", "fields": fields}:
            own = _PYTHON_DICT + _PYTHON_DICT_ENTRY * max(0, len(fields) - 5)
            return own + sum(_python_size(f["type"]) for f in fields)
        case {"type": "array"}:
            return _PYTHON_TEXT
        case {"type": "map"}:
            return _PYTHON_DICT
        case {"type": "fixed", "size": size}:
            return _PYTHON_DECIMAL + int(size)
        case [*branches]:
            return max(map(_python_size, branches), default=0)
        case str():
            return _PYTHON_SIZES.get(schema, _PYTHON_TEXT)
        case _:
            return _PYTHON_DECIMAL


def _min_bytes(schema: Any) -> int:
    """Return the smallest number of bytes of a value in a file; 1 if it could take no bytes."""
    return max(1, _bytes_at_least(schema))


def _bytes_at_least(schema: Any) -> int:
    match schema:
        case {"type": "record", "fields": fields}:
            return sum(_bytes_at_least(f["type"]) for f in fields)
        case {"type": "fixed", "size": size}:
            return int(size)
        case [*branches]:
            return 1 + min(map(_bytes_at_least, branches), default=0)
        case str():
            return _MIN_BYTES.get(schema, 1)
        case _:
            return 1
