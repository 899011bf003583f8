"""Reads Avro object container files and normalises them before a decoder sees them.

Iceberg resolves Avro by field id, so the names in a file mean nothing. `read_avro` splits a file
into header and blocks, checks it, and returns it in parts, uncompressed and within memory limits,
under a schema whose field names are `_<field id>`. The differences between writers (names, codec,
blocks, logical types, empty records) are removed, and both fastavro and DataFusion can read the
result. Files of rows may be too large for memory: `stream_records` yields their records block by
block under the same names. Every defect of a file raises `InvalidMetadataError` with its location.
"""

from __future__ import annotations

import io
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import Any, BinaryIO, cast

import fastavro

from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.formats.avro.avro_blocks import (
    Block,
    Cost,
    arrow_cost,
    check_codec,
    compress,
    plain_blocks,
)
from iceberg_pyspark.formats.avro.renamed_schemas import (
    RenamedSchema,
    damage_error,
    rename_schema,
)
from iceberg_pyspark.formats.encoding.compact_encoding import read_signed, write_signed
from iceberg_pyspark.formats.encoding.decoded_files import memory_limit, too_large
from iceberg_pyspark.storage.encryption.encrypted_io import stored_file
from iceberg_pyspark.storage.files.file_io import FileIO

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_SYNC = bytes(_SYNC_SIZE)
_MAX_BATCH = 4096
_BATCH_BYTES = 32 << 20
"""The memory that a list of records may take, unless a single block of records takes more."""

AVRO_CODECS = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "none": "null",
    "uncompressed": "null",
}
"""Avro's name of each codec of Iceberg's table properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFile:
    """A parsed file: its metadata, and its records, which are read under `_<field id>` names.

    `header` is everything before the first block. `record_count` is the sum that the blocks
    declare, `size` the size of the file. Blocks are decompressed when they are read.
    """

    location: str
    header: bytes
    renamed: RenamedSchema
    metadata: Mapping[str, str]
    record_count: int
    size: int
    codec: str
    _blocks: Sequence[tuple[int, memoryview]]

    def parts(self, cost: Cost, most: float) -> Iterator[AvroPart]:
        """Yield the file in parts of adjacent blocks, each an uncompressed Avro file.

        Each part is as large as `most` allows by `cost`; a file without records has one part.
        """
        waiting: list[Block] = []
        waiting_cost = 0.0
        for block in self._plain(cost, most):
            block_cost = cost.of(block.record_count, len(block.data))
            if waiting and waiting_cost + block_cost > most:
                yield self._part(waiting)
                waiting, waiting_cost = [], 0.0
            waiting.append(block)
            waiting_cost += block_cost
        yield self._part(waiting)

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Yield lists of records as dicts keyed by `_<field id>`; each list takes little memory."""
        cost = self.renamed.cost
        blocks = self._plain(cost.of_bytes(), memory_limit(self.size) / 2)
        return _batches(blocks, self.renamed, _MAX_BATCH, self.location, self.size)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records as dicts keyed by `_<field id>`."""
        for batch in self.batches():
            yield from batch

    def _plain(self, cost: Cost, most: float) -> Iterator[Block]:
        room = memory_limit(self.size)
        try:
            yield from plain_blocks(
                self._blocks, self.codec, cost, most, self.location, self.size, room
            )
        except IcebergError:
            raise
        except Exception as e:  # a decoder fails in any way on damaged bytes
            raise damage_error(self.location, str(e) or type(e).__name__) from e

    def _part(self, blocks: Sequence[Block]) -> AvroPart:
        count = sum(b.record_count for b in blocks)
        size = sum(len(b.data) for b in blocks)
        parts: list[bytes | memoryview] = [_header(self.renamed.record, _SYNC, "null")]
        if count:
            parts += [write_signed(count), write_signed(size), *(b.data for b in blocks), _SYNC]
        return AvroPart(record_count=count, data=b"".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroPart:
    """Some records of a file, as an Avro file with one block."""

    record_count: int
    data: bytes


def read_avro(file_io: FileIO, location: str) -> AvroFile:
    """Read, check and normalise an Avro file."""
    return parse_avro(file_io.read_bytes(location), location)


def parse_avro(data: bytes, location: str) -> AvroFile:
    """Check and normalise an Avro file's bytes; errors name `location`."""
    try:
        return _parse(data, location)
    except (IndexError, ValueError, RecursionError) as e:
        raise damage_error(location, str(e) or type(e).__name__) from e


def _parse(data: bytes, location: str) -> AvroFile:
    if data[:4] != _MAGIC:
        raise damage_error(location, "it does not begin with the Avro magic bytes")
    raw_metadata, offset = _read_header_map(data, 4)
    sync = data[offset : offset + _SYNC_SIZE]
    offset += _SYNC_SIZE
    if len(sync) < _SYNC_SIZE or "avro.schema" not in raw_metadata:
        raise damage_error(location, "the header is cut short or has no avro.schema")
    renamed = rename_schema(raw_metadata["avro.schema"], location)
    codec = raw_metadata.get("avro.codec", b"null").decode("ascii", "replace")
    check_codec(codec, location)
    blocks = _blocks_of(data, offset, sync)
    return AvroFile(
        location=location,
        header=data[:offset],
        renamed=renamed,
        metadata={k: v.decode("utf-8") for k, v in raw_metadata.items() if k[:5] != "avro."},
        record_count=sum(count for count, _ in blocks),
        size=len(data),
        codec=codec,
        _blocks=blocks,
    )


def joined(files: Sequence[AvroFile]) -> AvroFile:
    """Return the records of files with one schema and codec as those of one file, the first."""
    return replace(
        files[0],
        record_count=sum(file.record_count for file in files),
        size=sum(file.size for file in files),
        _blocks=[block for file in files for block in file._blocks],
    )


def _read_bytes(data: bytes, offset: int) -> tuple[bytes, int]:
    size, offset = read_signed(data, offset)
    if size < 0 or offset + size > len(data):
        raise ValueError(f"a length of {size} reaches past the end")
    return data[offset : offset + size], offset + size


def _read_header_map(data: bytes, offset: int) -> tuple[dict[str, bytes], int]:
    entries: dict[str, bytes] = {}
    while True:
        count, offset = read_signed(data, offset)
        if count == 0:
            return entries, offset
        if count < 0:
            count = -count
            _, offset = read_signed(data, offset)
        for _ in range(count):
            key, offset = _read_bytes(data, offset)
            entries[key.decode("utf-8")], offset = _read_bytes(data, offset)


def _header(schema: Mapping[str, Any], sync: bytes, codec: str) -> bytes:
    out = bytearray(_MAGIC)
    metadata = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    out += write_signed(len(metadata))
    for key, value in metadata.items():
        out += write_signed(len(key)) + key.encode() + write_signed(len(value)) + value
    return bytes(out + b"\x00" + sync)


def _blocks_of(data: bytes, offset: int, sync: bytes) -> list[tuple[int, memoryview]]:
    """Return the declared record count and the stored bytes of each block."""
    view = memoryview(data)
    blocks: list[tuple[int, memoryview]] = []
    while offset < len(data):
        count, offset = read_signed(data, offset)
        size, offset = read_signed(data, offset)
        end = offset + size
        if count < 0 or size < 0 or end + _SYNC_SIZE > len(data):
            raise ValueError(f"a block of {count} records and {size} bytes reaches past the end")
        if view[end : end + _SYNC_SIZE] != sync:
            raise ValueError("a block does not end with the sync marker")
        blocks.append((count, view[offset:end]))
        offset = end + _SYNC_SIZE
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroStream:
    """An open file of rows: its original schema, and its records, which can be read once.

    `batches(max_records)` yields lists of dicts keyed by `_<field id>`; lists are shorter if
    records take much memory.
    """

    schema: Mapping[str, Any]
    batches: Callable[[int], Iterator[list[dict[str, Any]]]]


def stream_records(stream: BinaryIO, location: str) -> AvroStream:
    """Return the records of an Avro file with at most one block of the file in memory."""
    try:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        metadata = fastavro.reader(stream).metadata
        schema = json.loads(metadata["avro.schema"])
        # the sync marker is the end of the header, where fastavro stops reading
        stream.seek(stream.tell() - _SYNC_SIZE)
        sync = stream.read(_SYNC_SIZE)
        renamed = rename_schema(metadata["avro.schema"], location)
    except IcebergError:
        raise
    except Exception as e:  # a decoder fails in any way on damaged bytes
        raise damage_error(location, f"its header: {type(e).__name__}: {e}") from e
    codec = metadata.get("avro.codec", "null")
    check_codec(codec, location)

    def batches(max_records: int) -> Iterator[list[dict[str, Any]]]:
        compressed_blocks = _streamed_blocks(stream, sync, size)
        # few bytes may hold many rows, so only the rows in memory at one time are limited
        blocks = plain_blocks(
            compressed_blocks,
            codec,
            renamed.cost.of_bytes(),
            memory_limit(size) / 2,
            location,
            size,
            inf,
        )
        return _batches(blocks, renamed, max_records, location, size)

    return AvroStream(schema=schema, batches=batches)


def _streamed_blocks(stream: BinaryIO, sync: bytes, size: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the declared record count and the stored bytes of each block of a stream."""
    while first := stream.read(1):
        count = _stream_long(stream, first)
        length = _stream_long(stream, stream.read(1))
        if count < 0 or not 0 <= length <= size:
            raise ValueError(f"a block of {count} records and {length} bytes reaches past the end")
        block = stream.read(length)
        if len(block) < length or stream.read(_SYNC_SIZE) != sync:
            raise ValueError("a block does not end with the sync marker")
        yield count, memoryview(block)


def _stream_long(stream: BinaryIO, first: bytes) -> int:
    number = bytearray(first)
    while number and number[-1] >= 0x80 and len(number) < 10:
        byte = stream.read(1)
        if not byte:
            break
        number += byte
    return read_signed(bytes(number), 0)[0]


def _batches(
    blocks: Iterator[Block],
    renamed: RenamedSchema,
    most: int,
    location: str,
    file_size: int,
) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of at most `most` records, fewer if the records take much memory."""
    cost = renamed.cost
    if cost.per_record > memory_limit(file_size) / 2:
        raise too_large(location, file_size)
    most = max(1, min(most, int(_BATCH_BYTES / max(1, cost.per_record))))
    plain = _PlainFile(_header(renamed.record, _SYNC, "null"))
    count = 0
    batch: list[dict[str, Any]] = []
    batch_cost = 0.0
    try:
        records = iter(fastavro.reader(cast("BinaryIO", plain)))
        for block in blocks:
            plain.add(block)
            batch_cost += cost.of(block.record_count, len(block.data))
            remaining_rows = block.record_count
            while remaining_rows:
                row_count = min(remaining_rows, most - len(batch))
                rows = cast("list[dict[str, Any]]", list(islice(records, row_count)))
                if len(rows) < row_count:
                    raise EOFError
                remaining_rows -= row_count
                count += row_count
                batch += rows
                if len(batch) == most or batch_cost > _BATCH_BYTES:
                    yield batch
                    batch = []
                    batch_cost = 0.0
    except IcebergError:
        raise
    except Exception as e:  # a decoder fails in any way on damaged bytes
        raise damage_error(location, f"record {count}: {type(e).__name__}: {e}") from e
    if batch:
        yield batch


class _PlainFile:
    """An uncompressed Avro file that is read while blocks are still being added."""

    def __init__(self, header: bytes) -> None:
        self._pieces: deque[bytes | memoryview] = deque([header])

    def add(self, block: Block) -> None:
        """Append a block, unless it has no records."""
        if block.record_count:
            size = write_signed(len(block.data))
            self._pieces += (write_signed(block.record_count) + size, block.data, _SYNC)

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer than `size` only at the end."""
        parts: list[bytes | memoryview] = []
        while size > 0 and self._pieces:
            piece = self._pieces.popleft()
            parts.append(piece[:size])
            if len(piece) > size:
                self._pieces.appendleft(memoryview(piece)[size:])
            size -= len(parts[-1])
        return b"".join(parts)


def parsed_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a checked schema, so that a schema for many files is checked only once."""
    return cast("Mapping[str, Any]", fastavro.parse_schema(dict(schema)))


def write_avro(
    file_io: FileIO,
    location: str,
    schema: Mapping[str, Any],
    records: Iterator[Mapping[str, Any]],
    *,
    metadata: Mapping[str, str],
    codec: str,
) -> tuple[int, bytes | None]:
    """Write a new Avro file, and return its stored length and key metadata.

    `codec` is Iceberg's name, such as `gzip`. The key metadata is None without encryption.

    `schema` may be the result of `parsed_schema` or any other schema.
    """
    avro_codec = AVRO_CODECS.get(codec.lower())
    if avro_codec is None:
        raise InvalidRequestError(
            f"Avro compression codec '{codec}' is not one of {', '.join(AVRO_CODECS)}"
        )
    out = io.BytesIO()
    fastavro.writer(out, dict(schema), records, codec=avro_codec, metadata=dict(metadata))
    with file_io.open_output(location) as stream:
        stream.write(out.getbuffer())
    return stored_file(stream, out.tell())


def with_changes(
    avro: AvroFile,
    is_same: Sequence[bool],
    names: Collection[str],
    change: Callable[[int], Mapping[str, int | None] | None],
) -> bytes:
    """Return a file with the same header and other numbers in some fields, named `_<field id>`.

    `is_same` tells which records stay; blocks of only such records are copied as they are stored.
    `change` returns the new numbers of a record, given its number in the file; None drops it.
    """
    # only commits that rewrite manifests need it
    from iceberg_pyspark.formats.avro.record_bytes import compile_change  # noqa: PLC0415

    sync = avro.header[-_SYNC_SIZE:]
    with_numbers = compile_change(avro.renamed.record, names)
    parts: list[bytes | memoryview] = [avro.header]
    end = 0
    for count, stored in avro._blocks:
        start, end = end, end + count
        if all(is_same[start:end]):
            parts += [write_signed(count), write_signed(len(stored)), stored, sync]
            continue
        changes = ({} if is_same[number] else change(number) for number in range(start, end))
        records = _changed_records(replace(avro, _blocks=[(count, stored)]), with_numbers, changes)
        if records:
            data = compress(b"".join(records), avro.codec)
            parts += [write_signed(len(records)), write_signed(len(data)), data, sync]
    return b"".join(parts)


def _changed_records(
    avro: AvroFile,
    with_numbers: Callable[[bytes, int, Mapping[str, int | None]], tuple[bytes, int]],
    changes: Iterator[Mapping[str, int | None] | None],
) -> list[bytes]:
    """Return the records of a file with new numbers in some fields; None drops a record."""
    records = []
    cost = arrow_cost(avro.renamed.record).of_bytes()
    for block in avro._plain(cost, memory_limit(avro.size)):
        data, at = bytes(block.data), 0
        try:
            for change in islice(changes, block.record_count):
                record, at = with_numbers(data, at, change or {})
                if change is not None:
                    records.append(record)
        except (IndexError, ValueError) as e:
            raise damage_error(avro.location, str(e) or type(e).__name__) from e
        if at != len(data):
            raise damage_error(avro.location, "a block has bytes after its last record")
    return records


def with_other_records(avro: AvroFile, records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a file with the same header but other records, which are keyed by `_<field id>`."""
    out = io.BytesIO()
    sync = avro.header[-_SYNC_SIZE:]
    fastavro.writer(out, dict(avro.renamed.record), records, codec=avro.codec, sync_marker=sync)
    data = out.getvalue()
    _, offset = _read_header_map(data, len(_MAGIC))
    return avro.header + data[offset + _SYNC_SIZE :]
