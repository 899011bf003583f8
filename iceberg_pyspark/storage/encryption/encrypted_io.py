"""Stores of encrypted tables: one that encrypts new files, and one that decrypts a single file.

A file is encrypted by its own key. Avro and Puffin files are AES-GCM streams, which these stores
write and read; the formats of data files (`arrow/formats/`) encrypt Parquet files themselves with
the key. A new file whose key is forgotten is unreadable, and never plaintext.
"""

from __future__ import annotations

import base64
import contextlib
import io as streams
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, BinaryIO, cast

from iceberg_pyspark.errors import IcebergError, StorageError
from iceberg_pyspark.spec.encryption import (
    FileKey,
    ManifestListKey,
    encryption_key,
    file_key,
    fresh_key,
    wrapped_key_of,
)
from iceberg_pyspark.storage.encryption.gcm import (
    DecryptedStream,
    EncryptedOutput,
    new_file_key,
    seal,
    unseal,
)
from iceberg_pyspark.storage.encryption.key_management import KeyManagement, key_properties
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DecryptedFileIO:
    """A store for reading one encrypted file; sizes and ranges are those of its plaintext."""

    io: FileIO
    key: FileKey

    def open_input(self, location: str) -> BinaryIO:
        """Return a seekable stream of the plaintext; the caller closes it."""
        return cast("BinaryIO", streams.BufferedReader(self._stream(location), _BUFFER_BYTES))

    def read_bytes(self, location: str) -> bytes:
        """Return the plaintext of the whole file."""
        data = self.io.read_bytes(location)
        length = len(data) if self.key.file_length is None else self.key.file_length
        if len(data) < length:
            raise StorageError(
                f"{location}: it has {len(data)} bytes where its key metadata says {length}; the "
                "file is truncated"
            )
        stream = DecryptedStream(
            lambda offset, count: data[offset : offset + count], length, self.key, location
        )
        return stream.range(0, stream.size)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; raise `StorageError` if the file is shorter."""
        return self._stream(location).range(offset, length)

    def size(self, location: str) -> int:
        """Return the size of the plaintext in bytes."""
        return self._stream(location).size

    def exists(self, location: str) -> bool:
        """Return whether the file exists."""
        return self.io.exists(location)

    def _stream(self, location: str) -> DecryptedStream:
        length = self.key.file_length
        return DecryptedStream(
            lambda offset, count: self.io.read_range(location, offset, count),
            self.io.size(location) if length is None else length,
            self.key,
            location,
        )


def decrypted(io: FileIO, key_metadata: bytes | None) -> FileIO:
    """Return a store for reading the file with this key metadata; None means an unencrypted file.

    Parquet files are decrypted by `arrow/formats/parquet_reader.py` with the key of the store.
    """
    if key_metadata is None:
        return io
    return cast("FileIO", DecryptedFileIO(io, file_key(key_metadata, "a file of the table")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEncryption:
    """How a table's new files are encrypted, and how its manifest lists are decrypted.

    `wrapped_keys` are the table's key-encryption keys: content and name of the key that wrapped
    them. `unwrapped_keys` are those that a driver unwrapped for its tasks.
    """

    table: str
    key_id: str | None
    key_length: int
    service: KeyManagement
    wrapped_keys: tuple[tuple[bytes, str], ...] = field(default=(), repr=False, compare=False)
    unwrapped_keys: Mapping[bytes, bytes] = field(default_factory=dict, repr=False, compare=False)
    is_of_task: bool = field(default=False, compare=False)

    def check_service(self) -> None:
        """Ask the service for what a commit will need, so that its refusal precedes the first file.

        Tasks do not ask: their driver has.
        """
        if self.is_of_task or self.key_id is None:
            return
        own = [wrapped for wrapped, key_id in self.wrapped_keys if key_id == self.key_id]
        if own:
            self._unwrap(own[-1], self.key_id)
        else:
            self.service.prepare(self.key_length, self.key_id, self.table)

    def for_tasks(self) -> TableEncryption:
        """Return a value with unwrapped keys in place of what the key management needs."""
        keys = dict(self.unwrapped_keys)
        for wrapped, key_id in self.wrapped_keys:
            # a key that the service no longer has matters only to a task that needs it
            with contextlib.suppress(IcebergError):
                keys[wrapped] = self._unwrap(wrapped, key_id)
        return replace(
            self,
            service=KeyManagement({}),
            wrapped_keys=(),
            unwrapped_keys=keys,
            is_of_task=True,
        )

    def _unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        known = self.unwrapped_keys.get(wrapped)
        return self.service.unwrap(wrapped, key_id, self.table) if known is None else known

    def list_key_metadata(self, key: ManifestListKey) -> bytes:
        """Return the key metadata of a manifest list."""
        return unseal(
            self._unwrap(key.wrapped_key, key.table_key_id),
            key.sealed_key_metadata,
            key.timestamp.encode(),
            f"{self.table}: the key of a manifest list",
        )

    def new_list_keys(
        self, keys: tuple[Mapping[str, Any], ...], key_metadata: bytes, now_ms: int
    ) -> tuple[Mapping[str, Any], ...]:
        """Return new entries of `encryption-keys` for a manifest list; the last one is its own.

        `keys` are the table's present entries. A new key-encryption key is made if none is fresh.
        """
        assert self.key_id is not None
        new: tuple[Mapping[str, Any], ...] = ()
        wrapper = fresh_key(keys, self.key_id, now_ms)
        if wrapper is None:
            wrapped = self.service.new_key(self.key_length, self.key_id, self.table)
            wrapper = encryption_key(_new_id(), wrapped, self.key_id, created_ms=now_ms)
            new = (wrapper,)
        wrapped, timestamp = wrapped_key_of(wrapper)
        sealed = seal(self._unwrap(wrapped, self.key_id), key_metadata, timestamp.encode())
        return (*new, encryption_key(_new_id(), sealed, wrapper["key-id"]))


def _new_id() -> str:
    return base64.b64encode(secrets.token_bytes(16)).decode()


@dataclass(frozen=True, kw_only=True)
class EncryptedTableIO(RestrictedFileIO):
    """The store of an encrypted table: every file that `open_output` writes is encrypted."""

    encryption: TableEncryption

    @classmethod
    def over(cls, io: RestrictedFileIO, encryption: TableEncryption) -> EncryptedTableIO:
        """Return the store of the same locations that encrypts."""
        return cls(**{f.name: getattr(io, f.name) for f in fields(io)}, encryption=encryption)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for tasks in other processes, with keys in place of the key management."""
        restrict, arguments = RestrictedFileIO.__reduce__(self)
        return _encrypted, (self.encryption.for_tasks(), restrict, arguments)

    def open_output(self, location: str) -> BinaryIO:
        """Return a stream that encrypts; see `stored_file` for what to keep after it is closed."""
        stream, key = self.open_keyed_output(location)
        return cast("BinaryIO", EncryptedOutput(stream, key))

    def open_keyed_output(self, location: str) -> tuple[BinaryIO, FileKey]:
        """Return a stream that does not encrypt, and a new key for a format that does so itself."""
        self.encryption.check_service()
        return RestrictedFileIO.open_output(self, location), self.new_key()

    def new_key(self) -> FileKey:
        """Return the key of a new file."""
        return new_file_key(self.encryption.key_length)


def _encrypted(
    encryption: TableEncryption,
    restrict: Callable[..., RestrictedFileIO],
    arguments: tuple[Any, ...],
) -> EncryptedTableIO:
    return EncryptedTableIO.over(restrict(*arguments), encryption)


def encryption_of(io: FileIO) -> TableEncryption | None:
    """Return how a table's store encrypts, or None if new files are not encrypted."""
    encryption = getattr(io, "encryption", None)
    return encryption if isinstance(encryption, TableEncryption) else None


def with_key_management(io: FileIO, properties: Mapping[str, str]) -> FileIO:
    """Return a store that tasks got, with the service of a catalog's properties: for the commit."""
    if not isinstance(io, EncryptedTableIO):
        return io
    service = KeyManagement(key_properties(properties))
    return cast("FileIO", replace(io, encryption=replace(io.encryption, service=service)))


def keyed_output(io: FileIO, location: str) -> tuple[BinaryIO, FileKey | None]:
    """Return a stream that does not encrypt, and the key for a format that does so itself.

    The key is None if the table is not encrypted.
    """
    if isinstance(io, EncryptedTableIO):
        return io.open_keyed_output(location)
    return io.open_output(location), None


def stored_file(stream: BinaryIO, size: int) -> tuple[int, bytes | None]:
    """Return the stored size and the key metadata of a file whose stream is closed.

    `size` is the number of bytes that were written to the stream.
    """
    if not isinstance(stream, EncryptedOutput):
        return size, None
    key = stream.key
    assert key.file_length is not None
    return key.file_length, key.encoded()
