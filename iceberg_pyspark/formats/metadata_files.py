"""Metadata files of tables and views: compression, names, exclusive creation.

Specification, "Optimistic Concurrency", Appendix C and the naming of Appendix F.
`spec/table_metadata.py` and `spec/views.py` define the JSON.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from typing import Any, Literal
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import (
    FileNotWrittenError,
    InvalidMetadataError,
    InvalidRequestError,
    StorageError,
)
from iceberg_pyspark.formats.encoding.decoded_files import (
    check_json_memory,
    memory_limit,
    too_large,
)
from iceberg_pyspark.spec.json_fields import compact_json, parse_json
from iceberg_pyspark.spec.table_metadata import (
    TableMetadata,
    metadata_from_bytes,
    metadata_to_bytes,
)
from iceberg_pyspark.spec.views import (
    ViewMetadata,
    view_metadata_from_bytes,
    view_metadata_to_bytes,
)
from iceberg_pyspark.storage.files.file_io import FileIO

MetadataCodec = Literal["none", "gzip"]

MAX_METADATA_BYTES = 256 << 20

_CODEC_PROPERTY = "write.metadata.compression-codec"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_SUFFIXES = (".gz.metadata.json", ".metadata.json.gz")
_PIECE_BYTES = 1 << 20
_LONG_HISTORY = 1 << 18
"""A size of JSON in bytes that a table can reach only with many snapshots, or nearly only."""
_LONG_HISTORY_COST = 16
"""The most bytes of memory per byte of such JSON: every snapshot takes many bytes of JSON."""
_VERSION = re.compile(r"(\d+)-")
_IN_USE: WeakValueDictionary[bytes, TableMetadata] = WeakValueDictionary()
"""Metadata by the SHA-256 of its JSON."""


def read_table_metadata(
    io: FileIO, location: str, max_bytes: int = MAX_METADATA_BYTES
) -> TableMetadata:
    """Read a metadata file, gzipped or not whatever its name says; `max_bytes` limits its JSON.

    The memory for the parsed JSON is limited too, see `formats/encoding/decoded_files.py`. Metadata
    that is in use is not parsed again.
    """
    data, size = _json_bytes(io, location, max_bytes)
    # not by location: a table of a folder that is created again has the same file names
    digest = sha256(data).digest()
    metadata = _IN_USE.get(digest)
    if metadata is None:
        metadata = _IN_USE[digest] = _parsed(data, size, location)
    return metadata


def _parsed(data: bytes, size: int, location: str) -> TableMetadata:
    if len(data) >= _LONG_HISTORY and len(data) * _LONG_HISTORY_COST <= memory_limit(size):
        # executors read metadata too, and msgspec may not be installed there
        with contextlib.suppress(ImportError):
            from iceberg_pyspark.formats.long_histories import (  # noqa: PLC0415 - few need it
                metadata_with_long_history,
            )

            if (metadata := metadata_with_long_history(data, location)) is not None:
                return metadata
    check_json_memory(data, location, size)
    return metadata_from_bytes(data, location)


def read_view_metadata(io: FileIO, location: str) -> ViewMetadata:
    """Read a view's metadata file, with the same rules as `read_table_metadata`."""
    return view_metadata_from_bytes(_checked_json_bytes(io, location), location)


def read_any_metadata(io: FileIO, location: str) -> TableMetadata | ViewMetadata:
    """Read the metadata file of a table or a view, with the rules of `read_table_metadata`."""
    data = _checked_json_bytes(io, location)
    content = parse_json(data, location)
    if isinstance(content, dict) and "view-uuid" in content:
        return view_metadata_from_bytes(data, location)
    return metadata_from_bytes(data, location)


def _checked_json_bytes(io: FileIO, location: str) -> bytes:
    data, size = _json_bytes(io, location, MAX_METADATA_BYTES)
    check_json_memory(data, location, size)
    return data


def _json_bytes(io: FileIO, location: str, max_bytes: int) -> tuple[bytes, int]:
    """Return the JSON of a file, and the size of the file in bytes."""
    data = io.read_bytes(location)
    size = len(data)
    if data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, location, max_bytes)
    elif size > max_bytes:
        raise _too_large(location, max_bytes)
    return data, size


def read_metadata_json(io: FileIO, location: str) -> dict[str, Any]:
    """Return the JSON object of a metadata file after a check that it is valid table metadata."""
    data = _checked_json_bytes(io, location)
    metadata_from_bytes(data, location)
    content: dict[str, Any] = parse_json(data, location)
    return content


def metadata_json_bytes(content: dict[str, Any], location: str) -> bytes:
    """Return the content of a metadata file with the JSON object, gzipped if the name says so."""
    return _compress(compact_json(content).encode(), location)


def write_table_metadata(io: FileIO, metadata: TableMetadata, location: str) -> None:
    """Create a metadata file, gzipped if its name says so.

    Raises `FileAlreadyExistsError` if the name exists, `FileNotWrittenError` if the file does not
    exist and never will; after any other `StorageError` the file may or may not exist.
    """
    io.create_exclusive(location, _file_bytes(metadata, location))


def create_own_metadata(io: FileIO, metadata: TableMetadata | ViewMetadata, location: str) -> None:
    """Create a metadata file whose name no other writer can use.

    If the store's reply was lost, or the store repeated the request and then found the name taken,
    the file may have been created; a comparison of the bytes decides.
    """
    data = _file_bytes(metadata, location)
    try:
        io.create_exclusive(location, data)
    except FileNotWrittenError:
        raise
    except StorageError:
        if not _has_bytes(io, location, data):
            raise


def _file_bytes(metadata: TableMetadata | ViewMetadata, location: str) -> bytes:
    if isinstance(metadata, ViewMetadata):
        data = view_metadata_to_bytes(metadata)
    else:
        data = metadata_to_bytes(metadata)
    return _compress(data, location)


def _compress(data: bytes, location: str) -> bytes:
    return gzip.compress(data, mtime=0) if location.endswith(_GZIP_SUFFIXES) else data


def _has_bytes(io: FileIO, location: str, data: bytes) -> bool:
    try:
        return io.exists(location) and io.read_bytes(location) == data
    except StorageError:
        return False


def metadata_codec(properties: Mapping[str, str], default: MetadataCodec = "none") -> MetadataCodec:
    """Return the codec that the properties of a table or view select."""
    match properties.get(_CODEC_PROPERTY, default).lower():
        case "none":
            return "none"
        case "gzip":
            return "gzip"
        case other:
            raise InvalidRequestError(f"{_CODEC_PROPERTY} = {other}: must be none or gzip")


def new_metadata_file_name(version: int, file_uuid: str, codec: MetadataCodec = "none") -> str:
    """Return the metadata file name for a table in a metastore.

    `version` is 0 for a new table, otherwise the base version plus one.

    >>> new_metadata_file_name(1, "d7", "gzip")
    '00001-d7.gz.metadata.json'
    """
    suffix = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    return f"{version:05d}-{file_uuid}{suffix}"


def parse_version(location: str) -> int:
    """Return the version in the name of a metastore table's metadata file, or -1 if it has none.

    >>> parse_version("s3://b/t/00012-d7.metadata.json"), parse_version("/t/v3.metadata.json")
    (12, -1)
    """
    version = _VERSION.match(location.rpartition("/")[2])
    return int(version.group(1)) if version else -1


def _gunzip(data: bytes, location: str, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = max_bytes
    memory = memory_limit(len(data)) // 3  # for the pieces, the joined bytes and the text
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as stream:
            while piece := stream.read(_PIECE_BYTES):
                room -= len(piece)
                memory -= len(piece)
                if memory < 0:
                    raise too_large(location, len(data))
                if room < 0:
                    raise _too_large(location, max_bytes)
                pieces.append(piece)
    except (OSError, EOFError, zlib.error) as e:
        raise InvalidMetadataError(f"{location}: damaged gzip data ({e})") from e
    return b"".join(pieces)


def _too_large(location: str, max_bytes: int) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"{location}: table metadata of more than {max_bytes:,} bytes is refused; "
        "expire snapshots with the engine that wrote it"
    )
