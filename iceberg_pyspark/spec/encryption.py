"""The keys of encrypted tables: in table metadata, and in the key metadata of files.

Specification, "Encryption Keys" and `key_metadata`. The key metadata of a file has the form that
Java's standard encryption writes: byte 1, then an Avro record of the file's key, its AAD prefix and
its length. A file is encrypted if it has key metadata.

The key metadata of a manifest list is encrypted by a key-encryption key, and both are in the
table's `encryption-keys`. The key-encryption key is wrapped by the table's key, which only a key
management service has.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.property_types import IntProperty

TABLE_KEY_ID = "encryption.key-id"
"""The table property with the name of the table's key; a table with it is encrypted."""

DATA_KEY_LENGTH = IntProperty("encryption.data-key-length", 16, 16, 32)
"""The number of bytes of new keys, one of `KEY_LENGTHS`."""

KEY_LENGTHS = (16, 24, 32)

_TIMESTAMP = "KEY_TIMESTAMP"
_VERSION = b"\x01"
_LIFE_MS = 730 * 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key and the AAD prefix of one file, and its encrypted length if it is known."""

    key: bytes = field(repr=False)
    aad_prefix: bytes = field(default=b"", repr=False)
    file_length: int | None = None

    def encoded(self) -> bytes:
        """Return the key metadata.

        >>> FileKey(bytes(16), bytes(16), 7).encoded().hex(" ")[:11]
        '01 20 00 00'
        """
        length = b"\x00" if self.file_length is None else b"\x02" + _long(self.file_length)
        return b"".join((_VERSION, _bytes(self.key), b"\x02", _bytes(self.aad_prefix), length))


def file_key(key_metadata: bytes, where: str) -> FileKey:
    """Return the key in a file's key metadata; errors begin with `where` and show no byte of it."""
    try:
        if key_metadata[:1] != _VERSION:
            raise ValueError("its version is not 1")
        key, position = _read_bytes(key_metadata, 1)
        aad_prefix, length = b"", None
        is_there, position = _read_long(key_metadata, position)
        if is_there:
            aad_prefix, position = _read_bytes(key_metadata, position)
        is_there, position = _read_long(key_metadata, position)
        if is_there:
            length, position = _read_long(key_metadata, position)
        if len(key) not in KEY_LENGTHS or (length is not None and length < 0):
            raise ValueError("its key or its length cannot be right")
    except (IndexError, ValueError) as e:
        raise InvalidMetadataError(
            f"{where}: the key metadata is damaged, or not of Iceberg's standard encryption: {e}"
        ) from e
    return FileKey(key, aad_prefix, length)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestListKey:
    """The encrypted key metadata of a manifest list, and its wrapped key-encryption key.

    `table_key_id` names the key that wrapped it, `timestamp` is the AAD of `sealed_key_metadata`.
    """

    sealed_key_metadata: bytes = field(repr=False)
    wrapped_key: bytes = field(repr=False)
    table_key_id: str
    timestamp: str


def manifest_list_key(keys: Iterable[Mapping[str, Any]], key_id: str) -> ManifestListKey | None:
    """Return the key of a snapshot's `key-id`, or None if it or its wrapper is missing."""
    by_id = {k["key-id"]: k for k in keys}
    own = by_id.get(key_id)
    wrapper = None if own is None else by_id.get(own.get("encrypted-by-id", ""))
    if own is None or wrapper is None or "encrypted-by-id" not in wrapper:
        return None
    return ManifestListKey(
        sealed_key_metadata=_decoded(own),
        wrapped_key=_decoded(wrapper),
        table_key_id=wrapper["encrypted-by-id"],
        timestamp=_timestamp_of(wrapper),
    )


def fresh_key(
    keys: Iterable[Mapping[str, Any]], table_key_id: str, now_ms: int
) -> Mapping[str, Any] | None:
    """Return a key-encryption key of the table's key that is young enough for new files."""
    for k in keys:
        stamp = _timestamp_of(k)
        if (
            k.get("encrypted-by-id") == table_key_id
            and stamp.isdecimal()
            and now_ms - int(stamp) < _LIFE_MS
        ):
            return k
    return None


def encryption_key(
    key_id: str, content: bytes, encrypted_by: str, *, created_ms: int | None = None
) -> Mapping[str, Any]:
    """Return an entry of `encryption-keys`; a key-encryption key has its time of creation."""
    out: dict[str, Any] = {
        "key-id": key_id,
        "encrypted-key-metadata": base64.b64encode(content).decode(),
        "encrypted-by-id": encrypted_by,
    }
    if created_ms is not None:
        out["properties"] = {_TIMESTAMP: str(created_ms)}
    return out


def wrapped_key_of(key: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the wrapped bytes of a key-encryption key, and its timestamp."""
    return _decoded(key), _timestamp_of(key)


def key_encryption_keys(keys: Iterable[Mapping[str, Any]]) -> tuple[tuple[bytes, str], ...]:
    """Return the wrapped bytes of all key-encryption keys, with the id of what wrapped them."""
    return tuple((_decoded(k), k.get("encrypted-by-id", "")) for k in keys if _timestamp_of(k))


def _timestamp_of(key: Mapping[str, Any]) -> str:
    return str(key.get("properties", {}).get(_TIMESTAMP, ""))


def _decoded(key: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(key["encrypted-key-metadata"], validate=True)
    except (binascii.Error, ValueError) as e:
        raise InvalidMetadataError(f"encryption-keys: {key['key-id']} is not valid base64") from e


def _long(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value & ~0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a number in it is too long")


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = _read_long(data, position)
    if length < 0 or position + length > len(data):
        raise ValueError("it is cut short")
    return data[position : position + length], position + length
