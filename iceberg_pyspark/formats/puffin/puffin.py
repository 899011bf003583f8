"""Puffin files: blobs of statistics or deletion vectors, and a footer with their places.

    file   = magic blob* footer
    footer = magic payload payload-size(int32 LE) flags(4 bytes) magic

Puffin specification. The payload is JSON, LZ4-compressed if the first flag is set; blobs may be LZ4
or Zstandard frames. All sizes are checked against the file's size and a limit before data is read.
The content of deletion vectors is in `deletion_vectors.py`, which does not need the footer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import pyarrow as pa

from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.encoding.decoded_files import check_json_memory
from iceberg_pyspark.storage.files.file_io import FileIO

MAGIC = b"PFA1"
MAX_FOOTER_BYTES = 64 << 20
MAX_BLOB_BYTES = 256 << 20

_TRAILER_BYTES = 12  # payload size, flags, magic
_SMALLEST_FILE = 4 + 4 + _TRAILER_BYTES
_FOOTER_COMPRESSED = 1
_PIECE_BYTES = 1 << 20
_CREATOR = "created-by"
_CREATED_BY = "iceberg-pyspark"


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinBlob:
    """One blob as described in the footer."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFooter:
    """The content of a Puffin footer; `footer_size` includes magics, size field and flags."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str]
    file_size: int
    footer_size: int

    @property
    def is_ours(self) -> bool:
        """Whether this package wrote the file."""
        return self.properties.get(_CREATOR) == _CREATED_BY


def read_puffin_footer(
    io: FileIO, location: str, max_bytes: int = MAX_FOOTER_BYTES
) -> PuffinFooter:
    """Read and check a Puffin file's footer; `max_bytes` limits its JSON."""
    payload, file_size, footer_size = _read_payload(io, location, max_bytes)
    blobs, properties = _parse_payload(payload, location, file_size - footer_size)
    return PuffinFooter(
        blobs=blobs, properties=properties, file_size=file_size, footer_size=footer_size
    )


def with_other_blob_properties(
    io: FileIO, location: str, change: Callable[[dict[str, str]], Mapping[str, str]]
) -> bytes:
    """Return the bytes of a Puffin file with blob properties changed by `change`; no blob moves."""
    payload, file_size, footer_size = _read_payload(io, location, MAX_FOOTER_BYTES)
    _parse_payload(payload, location, file_size - footer_size)
    content = json.loads(payload)
    for blob in content["blobs"]:
        blob["properties"] = change(blob.get("properties") or {})
    blobs = io.read_range(location, 0, file_size - footer_size)
    return blobs + _footer(json.dumps(content, separators=(",", ":")).encode())


def _footer(payload: bytes) -> bytes:
    return b"".join((MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), MAGIC))


def _read_payload(io: FileIO, location: str, max_bytes: int) -> tuple[bytes, int, int]:
    """Return the JSON of a footer, and the sizes of file and footer."""
    file_size = io.size(location)
    if file_size < _SMALLEST_FILE:
        raise InvalidMetadataError(f"{location}: {file_size} bytes are too few for a Puffin file")
    if io.read_range(location, 0, 4) != MAGIC:
        raise InvalidMetadataError(f"{location}: not a Puffin file (wrong magic at the start)")
    trailer = io.read_range(location, file_size - _TRAILER_BYTES, _TRAILER_BYTES)
    if trailer[8:] != MAGIC:
        raise InvalidMetadataError(f"{location}: not a Puffin file (wrong magic at the end)")
    payload_size = int.from_bytes(trailer[:4], "little", signed=True)
    footer_size = 4 + payload_size + _TRAILER_BYTES
    if payload_size < 0 or footer_size > file_size - 4:
        raise InvalidMetadataError(
            f"{location}: a Puffin footer of {payload_size} bytes is not in a file of {file_size}"
        )
    if payload_size > max_bytes:
        raise InvalidMetadataError(
            f"{location}: a Puffin footer of more than {max_bytes:,} bytes is refused"
        )
    flags = int.from_bytes(trailer[4:8], "little")
    if flags & ~_FOOTER_COMPRESSED:
        raise UnsupportedFeatureError(f"{location}: unknown Puffin footer flags {flags:#x}")
    footer = io.read_range(location, file_size - footer_size, 4 + payload_size)
    if footer[:4] != MAGIC:
        raise InvalidMetadataError(f"{location}: wrong magic at the start of the Puffin footer")
    payload = footer[4:]
    if flags & _FOOTER_COMPRESSED:
        payload = _decompress(payload, "lz4", f"{location}: footer", max_bytes)
    check_json_memory(payload, f"{location}: footer", file_size)
    return payload, file_size, footer_size


def read_puffin_blob(
    io: FileIO, location: str, blob: PuffinBlob, max_bytes: int = MAX_BLOB_BYTES
) -> bytes:
    """Return the decompressed bytes of a blob; `max_bytes` limits their number."""
    where = f"{location}: blob {blob.type} at {blob.offset}"
    if blob.length > max_bytes:
        raise InvalidMetadataError(f"{where}: more than {max_bytes:,} bytes are refused")
    data = io.read_range(location, blob.offset, blob.length)
    if blob.compression_codec is None:
        return data
    if blob.compression_codec not in ("lz4", "zstd"):
        raise UnsupportedFeatureError(f"{where}: unknown codec '{blob.compression_codec}'")
    return _decompress(data, blob.compression_codec, where, max_bytes)


class PuffinWriter:
    """Writes one Puffin file to a stream; the footer is written at the end of the block.

        with io.open_output(location) as stream, PuffinWriter(stream) as puffin:
            offset, length = puffin.add_blob(...)

    After an exception in the block the file has no footer, so readers reject it.
    """

    def __init__(self, stream: BinaryIO, properties: Mapping[str, str] | None = None) -> None:
        self._stream = stream
        self._properties = {_CREATOR: _CREATED_BY, **(properties or {})}
        self._blobs: list[PuffinBlob] = []
        self._position = 0
        self.footer_size = 0

    def __enter__(self) -> PuffinWriter:
        self._write(MAGIC)
        return self

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            self._write_footer()

    @property
    def blobs(self) -> tuple[PuffinBlob, ...]:
        """The blobs added so far."""
        return tuple(self._blobs)

    @property
    def file_size(self) -> int:
        """The number of bytes written so far; the file's size after the block."""
        return self._position

    def add_blob(
        self,
        *,
        type: str,
        fields: Sequence[int],
        snapshot_id: int,
        sequence_number: int,
        data: bytes,
        properties: Mapping[str, str] | None = None,
    ) -> tuple[int, int]:
        """Write a blob uncompressed and return its offset and length."""
        blob = PuffinBlob(
            type=type,
            fields=tuple(fields),
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            offset=self._position,
            length=len(data),
            properties=dict(properties or {}),
        )
        self._write(data)
        self._blobs.append(blob)
        return blob.offset, blob.length

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._position += len(data)

    def _write_footer(self) -> None:
        payload = json.dumps(
            {"blobs": [_blob_to_json(b) for b in self._blobs], "properties": self._properties},
            separators=(",", ":"),
        ).encode()
        footer = _footer(payload)
        self._write(footer)
        self.footer_size = len(footer)


def _blob_to_json(blob: PuffinBlob) -> dict[str, Any]:
    out: dict[str, Any] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.properties:
        out["properties"] = dict(blob.properties)
    return out


def _parse_payload(
    payload: bytes, location: str, blobs_end: int
) -> tuple[tuple[PuffinBlob, ...], Mapping[str, str]]:
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError) as e:
        raise InvalidMetadataError(f"{location}: the Puffin footer is not valid JSON ({e})") from e
    if not isinstance(content, dict) or not isinstance(content.get("blobs"), list):
        raise InvalidMetadataError(f"{location}: Puffin footer: blobs: required list")
    blobs = tuple(
        _blob_from_json(b, f"{location}: Puffin footer: blobs[{i}]", blobs_end)
        for i, b in enumerate(content["blobs"])
    )
    return blobs, _strings(content.get("properties"), f"{location}: Puffin footer: properties")


def _blob_from_json(data: Any, where: str, blobs_end: int) -> PuffinBlob:
    if not isinstance(data, dict):
        raise InvalidMetadataError(f"{where}: expected an object")
    fields = data.get("fields")
    if not isinstance(fields, list) or not all(type(f) is int for f in fields):
        raise InvalidMetadataError(f"{where}.fields: required list of field ids")
    codec = data.get("compression-codec")
    if codec is not None and not isinstance(codec, str):
        raise InvalidMetadataError(f"{where}.compression-codec: expected a string")
    kind = data.get("type")
    if not isinstance(kind, str):
        raise InvalidMetadataError(f"{where}.type: required string")
    blob = PuffinBlob(
        type=kind,
        fields=tuple(fields),
        snapshot_id=_integer(data, "snapshot-id", where),
        sequence_number=_integer(data, "sequence-number", where),
        offset=_integer(data, "offset", where),
        length=_integer(data, "length", where),
        compression_codec=codec,
        properties=_strings(data.get("properties"), f"{where}.properties"),
    )
    if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > blobs_end:
        raise InvalidMetadataError(
            f"{where}: bytes {blob.offset} to {blob.offset + blob.length} are outside the blobs, "
            f"which end at {blobs_end}"
        )
    return blob


def _integer(data: Mapping[str, Any], key: str, where: str) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidMetadataError(f"{where}.{key}: required integer, got {value!r}")
    return value


def _strings(data: Any, where: str) -> dict[str, str]:
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(v, str) for v in data.values()):
        raise InvalidMetadataError(f"{where}: expected strings by name")
    return data


def _decompress(data: bytes, codec: str, where: str, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = max_bytes
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            while piece := cast("bytes", stream.read(_PIECE_BYTES)):
                room -= len(piece)
                if room < 0:
                    raise InvalidMetadataError(
                        f"{where}: more than {max_bytes:,} bytes are refused"
                    )
                pieces.append(piece)
    except (OSError, pa.ArrowException) as e:
        raise InvalidMetadataError(f"{where}: damaged {codec} data ({e})") from e
    return b"".join(pieces)
