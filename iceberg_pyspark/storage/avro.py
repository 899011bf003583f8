"""Avro object container files, brought into one shape before any decoder sees them.

Iceberg resolves Avro by field id, so a file's own names mean nothing. `read_avro` takes a file
apart (header, blocks), checks and decompresses it within bounds, and puts it together again
uncompressed under a schema whose field names are `_<field id>`: what differs between writers
(names, codec, blocks, logical types, empty records) is gone, and fastavro and DataFusion both read
the result. Files of rows may be too large for that: `stream_records` gives their records block by
block under the same names. Every fault of a file is an `InvalidMetadataError` that names it.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa

from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.storage.file_io import FileIO

MAX_DECODED_BYTES = 512 * 1024 * 1024
"""The most one metadata file may hold once decompressed; a guard against bombs."""

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_MAX_DEPTH = 50

_AVRO_CODEC = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "none": "null",
    "uncompressed": "null",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFile:
    """A file taken apart: its metadata, and its records uncompressed under `_<field id>` names.

    `schema` is the renamed schema without the fields in `null_field_ids`, whose Avro type is null;
    `written_types` has the types of fields by field id as the file has them, logical types and all;
    `record_count` is what the blocks declare.
    """

    location: str
    schema: Mapping[str, Any]
    metadata: Mapping[str, str]
    record_count: int
    null_field_ids: frozenset[int]
    written_types: Mapping[int, Any]
    data: bytes

    def records(self) -> Iterator[dict[str, Any]]:
        """The records as dicts keyed by `_<field id>`."""
        count = 0
        try:
            for record in fastavro.reader(io.BytesIO(self.data)):
                count += 1
                yield cast("dict[str, Any]", record)
        except Exception as e:  # a decoder fails in any way on damaged bytes
            raise damaged(self.location, f"record {count}: {type(e).__name__}: {e}") from e


def damaged(location: str, why: str) -> InvalidMetadataError:
    """The error for an Avro file that breaks its format."""
    return InvalidMetadataError(f"{location}: damaged Avro file: {why}")


def read_avro(file_io: FileIO, location: str) -> AvroFile:
    """Read, check and normalise an Avro file."""
    return parse_avro(file_io.read_bytes(location), location)


def parse_avro(data: bytes, location: str) -> AvroFile:
    """Check and normalise an Avro file's bytes; errors name `location`."""
    try:
        return _parse(data, location)
    except (IndexError, ValueError, RecursionError, zlib.error, OSError) as e:
        raise damaged(location, str(e) or type(e).__name__) from e


def _parse(data: bytes, location: str) -> AvroFile:
    if data[:4] != _MAGIC:
        raise damaged(location, "it does not begin with the Avro magic bytes")
    raw_metadata, offset = _read_header_map(data, 4)
    sync = data[offset : offset + _SYNC_SIZE]
    offset += _SYNC_SIZE
    if len(sync) < _SYNC_SIZE or "avro.schema" not in raw_metadata:
        raise damaged(location, "the header is cut short or has no avro.schema")
    renamer = _SchemaRenamer(location)
    schema = renamer.rename_record(json.loads(raw_metadata["avro.schema"]))
    codec = raw_metadata.get("avro.codec", b"null").decode("ascii", "replace")
    count, blocks = _plain_blocks(data, offset, sync, codec, location)
    parts: list[bytes | memoryview] = [_header(schema, sync, "null")]
    if count:
        parts += [_write_long(count), _write_long(sum(map(len, blocks))), *blocks, sync]
    return AvroFile(
        location=location,
        schema=schema,
        metadata={k: v.decode("utf-8") for k, v in raw_metadata.items() if k[:5] != "avro."},
        record_count=count,
        null_field_ids=frozenset(renamer.null_field_ids),
        written_types=renamer.written_types,
        data=b"".join(parts),
    )


def _read_long(data: bytes, offset: int) -> tuple[int, int]:
    shift = 0
    number = 0
    while True:
        byte = data[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), offset
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _write_long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_bytes(data: bytes, offset: int) -> tuple[bytes, int]:
    size, offset = _read_long(data, offset)
    if size < 0 or offset + size > len(data):
        raise ValueError(f"a length of {size} reaches past the end")
    return data[offset : offset + size], offset + size


def _read_header_map(data: bytes, offset: int) -> tuple[dict[str, bytes], int]:
    found: dict[str, bytes] = {}
    while True:
        count, offset = _read_long(data, offset)
        if count == 0:
            return found, offset
        if count < 0:
            count = -count
            _, offset = _read_long(data, offset)
        for _ in range(count):
            key, offset = _read_bytes(data, offset)
            found[key.decode("utf-8")], offset = _read_bytes(data, offset)


def _header(schema: Mapping[str, Any], sync: bytes, codec: str) -> bytes:
    out = bytearray(_MAGIC)
    metadata = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    out += _write_long(len(metadata))
    for key, value in metadata.items():
        out += _write_long(len(key)) + key.encode() + _write_long(len(value)) + value
    return bytes(out + b"\x00" + sync)


def _plain_blocks(
    data: bytes, offset: int, sync: bytes, codec: str, location: str
) -> tuple[int, list[bytes | memoryview]]:
    """How many records there are, and the bytes of each block."""
    view = memoryview(data)
    total = 0
    room = MAX_DECODED_BYTES
    blocks: list[bytes | memoryview] = []
    while offset < len(data):
        count, offset = _read_long(data, offset)
        size, offset = _read_long(data, offset)
        end = offset + size
        if count < 0 or size < 0 or end + _SYNC_SIZE > len(data):
            raise ValueError(f"a block of {count} records and {size} bytes reaches past the end")
        if view[end : end + _SYNC_SIZE] != sync:
            raise ValueError("a block does not end with the sync marker")
        block = _decompress(view[offset:end], codec, room, location)
        if len(block) > room:
            raise damaged(
                location, f"it holds more than {MAX_DECODED_BYTES} bytes once decompressed"
            )
        if count > len(block):
            raise ValueError(f"a block declares {count} records in {len(block)} bytes")
        blocks.append(block)
        room -= len(block)
        total += count
        offset = end + _SYNC_SIZE
    return total, blocks


def _decompress(block: memoryview, codec: str, room: int, location: str) -> bytes | memoryview:
    """The block's bytes, at most `room + 1` of them."""
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
            # Avro adds a CRC32 of the plain bytes; Snappy's own bytes begin with the length
            size = _snappy_size(block)
            if size > room:
                return bytes(room + 1)
            body = pa.py_buffer(block[:-4])
            plain = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
            if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
                raise ValueError("a snappy block does not match its checksum")
            return cast("bytes", plain)
        case _:
            raise UnsupportedFeatureError(
                f"{location}: Avro codec '{codec}' is not supported; "
                "null, deflate, snappy and zstandard are"
            )


def _snappy_size(block: memoryview) -> int:
    size = 0
    for i, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return size
    raise ValueError("a snappy block without a length")


class _SchemaRenamer:
    """Puts a schema under `_<field id>` names, every named type written out where it is used.

    Logical types go, but for decimal: days, microseconds and bytes are what `spec/values.py` means
    by a value. Records without fields and fields of type null go too: they take no bytes, and not
    every decoder takes them.
    """

    def __init__(self, location: str) -> None:
        self.null_field_ids: set[int] = set()
        self.written_types: dict[int, Any] = {}
        self._location = location
        self._definitions: dict[str, Any] = {}
        self._open: set[str] = set()
        self._count = 0

    def rename_record(self, schema: Any) -> dict[str, Any]:
        """The renamed schema of a file's records."""
        renamed = self.rename(schema, 0)
        if not isinstance(renamed, dict) or renamed.get("type") != "record":
            raise damaged(self._location, "its schema is not a record with fields")
        if not _takes_bytes(renamed):
            raise damaged(self._location, "its records take no bytes")
        return renamed

    def rename(self, schema: Any, depth: int) -> Any:
        """The renamed schema; None for one that takes no bytes and is no null."""
        if depth > _MAX_DEPTH:
            raise damaged(self._location, f"its schema nests deeper than {_MAX_DEPTH}")
        match schema:
            case str() if schema in _PRIMITIVES:
                return schema
            case str() if schema in self._definitions and schema not in self._open:
                return self.rename(self._definitions[schema], depth + 1)
            case list():
                branches = [self.rename(branch, depth + 1) for branch in schema]
                if None in branches:
                    raise damaged(self._location, "its schema has a union with an empty record")
                return branches
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                return self._record(name, fields, schema, depth)
            case {"type": "fixed", "name": str(name), "size": int(size)} if size > 0:
                self._definitions[name] = schema
                kept = {}
                if schema.get("logicalType") == "decimal":
                    logical = ("logicalType", "precision", "scale")
                    kept = {k: schema[k] for k in logical if k in schema}
                return {"type": "fixed", "name": self._name(), "size": size, **kept}
            case {"type": "array", "items": items}:
                renamed = self.rename(items, depth + 1)
                if not _takes_bytes(renamed):
                    # a length in the data would otherwise decide how much memory is taken
                    raise damaged(self._location, "its schema has a list of items without bytes")
                return {"type": "array", "items": renamed}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.rename(values, depth + 1)}
            case {"type": "bytes", "logicalType": "decimal"}:
                kept = {k: schema[k] for k in ("precision", "scale") if k in schema}
                return {"type": "bytes", "logicalType": "decimal", **kept}
            case {"type": inner} if inner != schema:
                return self.rename(inner, depth + 1)
            case _:
                raise damaged(self._location, f"its schema has the type {str(schema)[:80]}")

    def _record(self, name: str, fields: list[Any], schema: Any, depth: int) -> Any:
        if name in self._open:
            raise damaged(self._location, f"its schema is recursive in '{name}'")
        self._open.add(name)
        self._definitions[name] = schema
        record_name = self._name()
        out: dict[str, Any] = {}
        for i, f in enumerate(fields):
            if not isinstance(f, dict) or "type" not in f:
                raise damaged(self._location, f"field {i} of '{name}' has no type")
            field_id = f.get("field-id")
            field_name = f"_{field_id}" if isinstance(field_id, int) else f"x{i}"
            renamed = self.rename(f["type"], depth + 1)
            if field_name in out:
                raise damaged(self._location, f"field id {field_id} is twice in '{name}'")
            if isinstance(field_id, int):
                self.written_types[field_id] = self._spelled_out(f["type"])
            if renamed == "null" and isinstance(field_id, int):
                self.null_field_ids.add(field_id)
            elif renamed is not None and renamed != "null":
                out[field_name] = {"name": field_name, "type": renamed}
        self._open.discard(name)
        if not out:
            return None
        return {"type": "record", "name": record_name, "fields": list(out.values())}

    def _spelled_out(self, schema: Any) -> Any:
        """The type, names of types that are its own or a branch spelled out."""
        if isinstance(schema, list):
            return [self._spelled_out(branch) for branch in schema if not isinstance(branch, list)]
        return self._definitions.get(schema, schema) if isinstance(schema, str) else schema

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"


_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def _takes_bytes(schema: Any) -> bool:
    """Whether every value of a renamed schema is at least one byte long."""
    match schema:
        case None | "null":
            return False
        case {"type": "record", "fields": fields}:
            return any(_takes_bytes(f["type"]) for f in fields)
        case _:
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroStream:
    """An open file of rows: its own schema, and its records keyed by `_<field id>`, read once."""

    schema: Mapping[str, Any]
    records: Iterator[dict[str, Any]]


def stream_records(stream: BinaryIO, location: str) -> AvroStream:
    """The records of an Avro file without holding more than a block of it in memory."""
    try:
        metadata = fastavro.reader(stream).metadata
        schema = json.loads(metadata["avro.schema"])
        # the sync marker is the end of the header, and fastavro reads no further
        stream.seek(stream.tell() - _SYNC_SIZE)
        sync = stream.read(_SYNC_SIZE)
        renamed = _SchemaRenamer(location).rename_record(schema)
    except _DECODING_ERRORS as e:
        raise damaged(location, f"its header: {type(e).__name__}: {e}") from e
    header = _header(renamed, sync, metadata.get("avro.codec", "null"))
    return AvroStream(schema=schema, records=_streamed(_Prefixed(header, stream), location))


_DECODING_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zlib.error,
)
"""What a decoder may raise on damaged bytes."""


def _streamed(stream: _Prefixed, location: str) -> Iterator[dict[str, Any]]:
    count = 0
    try:
        for record in fastavro.reader(cast("BinaryIO", stream)):
            yield cast("dict[str, Any]", record)
            count += 1
    except _DECODING_ERRORS as e:
        raise damaged(location, f"record {count}: {type(e).__name__}: {e}") from e


class _Prefixed:
    """A stream to read with some bytes before it."""

    def __init__(self, prefix: bytes, stream: BinaryIO) -> None:
        self._prefix = io.BytesIO(prefix)
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        found = self._prefix.read(size)
        if size < 0:
            return found + self._stream.read()
        return found if len(found) == size else found + self._stream.read(size - len(found))


def write_avro(
    file_io: FileIO,
    location: str,
    schema: Mapping[str, Any],
    records: Iterator[Mapping[str, Any]],
    *,
    metadata: Mapping[str, str],
    codec: str,
) -> int:
    """Write a new Avro file and return its length; `codec` is Iceberg's name: `gzip`, `zstd`."""
    avro_codec = _AVRO_CODEC.get(codec.lower())
    if avro_codec is None:
        raise InvalidRequestError(
            f"Avro compression codec '{codec}' is not one of {', '.join(_AVRO_CODEC)}"
        )
    out = io.BytesIO()
    fastavro.writer(out, dict(schema), records, codec=avro_codec, metadata=dict(metadata))
    with file_io.open_output(location) as stream:
        stream.write(out.getbuffer())
    return out.tell()
