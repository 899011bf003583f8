"""Wraps and unwraps keys by the table's key, which only a key management service has.

A catalog's properties choose the service, as in Java: `encryption.kms-type` is `aws`, or `file` for
tests and single machines; `encryption.kms-impl` is the Python class of a `KeyManagementClient`,
`module.Class`. Only the user's properties are read, never those of a server or a table. Only the
driver calls the service: tasks get keys with their work.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from iceberg_pyspark.errors import IcebergError, InvalidRequestError, StorageError
from iceberg_pyspark.redaction import harmless_cause, secret_values, without_secrets
from iceberg_pyspark.storage.encryption.gcm import seal, unseal

KMS_TYPE = "encryption.kms-type"
KMS_IMPL = "encryption.kms-impl"
KMS_FILE = "encryption.kms-file"

_PREFIXES = ("encryption.", "kms.")
_METHODS = ("initialize", "wrap_key", "unwrap_key")
_KEPT_S = 3600
"""How long an unwrapped key is kept, as in Java: afterwards the service decides again."""


def key_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of a catalog's properties that choose and reach a key management service."""
    return {k: v for k, v in properties.items() if k.startswith((*_PREFIXES, "client."))}


def without_key_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the store alone, which tasks get."""
    return {k: v for k, v in properties.items() if not k.startswith(_PREFIXES)}


class KeyManagementClient(Protocol):
    """A client of a key management service; the class of `encryption.kms-impl` has these methods.

    An object is created without arguments, and may be used by several threads.
    """

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Take the catalog's properties of storage and encryption."""
        ...

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Return a key encrypted by the key that the service knows as `wrapping_key_id`."""
        ...

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Return the key that `wrap_key` has encrypted."""
        ...


class FileKeyManagement:
    """The keys of a JSON file that maps names to keys in base64, of 16, 24 or 32 bytes."""

    def initialize(self, properties: Mapping[str, str]) -> None:
        """See `KeyManagementClient`; raise `InvalidRequestError` for a file that cannot be used."""
        path = properties.get(KMS_FILE)
        if not path:
            raise InvalidRequestError(
                f"{KMS_TYPE} = file needs {KMS_FILE}: the path of a JSON file "
                '{"<key id>": "<key in base64>"}'
            )
        self._path = path
        try:
            content = json.loads(Path(path).read_text())
            self._keys = {k: base64.b64decode(v, validate=True) for k, v in content.items()}
        except (OSError, ValueError, TypeError, AttributeError, binascii.Error) as e:
            # the text of the error may show the file's content
            raise InvalidRequestError(
                f"{KMS_FILE} = {path}: it cannot be read, or is no JSON file that maps key ids to "
                f"keys in base64 ({type(e).__name__})"
            ) from None
        if wrong := [k for k, v in self._keys.items() if len(v) not in (16, 24, 32)]:
            raise InvalidRequestError(
                f"{KMS_FILE} = {path}: key '{wrong[0]}' must have 16, 24 or 32 bytes"
            )

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """See `KeyManagementClient`."""
        return seal(self._key(wrapping_key_id), key, b"")

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """See `KeyManagementClient`."""
        return unseal(self._key(wrapping_key_id), wrapped_key, b"", f"a key of {wrapping_key_id}")

    def _key(self, name: str) -> bytes:
        key = self._keys.get(name)
        if key is None:
            raise InvalidRequestError(f"{KMS_FILE} = {self._path}: it has no key '{name}'")
        return key


@dataclass(frozen=True, slots=True)
class KeyManagement:
    """The service that a catalog's properties choose; a value, without a live client."""

    properties: Mapping[str, str]

    def __repr__(self) -> str:
        chosen = self.properties.get(KMS_TYPE) or self.properties.get(KMS_IMPL)
        return f"KeyManagement({chosen})"

    def wrap(self, key: bytes, table_key_id: str, table: str) -> bytes:
        """Return the key wrapped by the table's key; `table` begins the message of every error."""
        wrapped = self._call(table, lambda c: c.wrap_key(key, table_key_id), table_key_id)
        with _LOCK:
            _UNWRAPPED[(self._id(), table_key_id, wrapped)] = (time.monotonic(), key)
        return wrapped

    def prepare(self, length: int, table_key_id: str, table: str) -> None:
        """Have a new key wrapped, which `new_key` will return, if none is ready."""
        place = (self._id(), table_key_id, length)
        with _LOCK:
            if place in _PREPARED:
                return
        wrapped = self.wrap(secrets.token_bytes(length), table_key_id, table)
        with _LOCK:
            _PREPARED[place] = wrapped

    def new_key(self, length: int, table_key_id: str, table: str) -> bytes:
        """Return a new random key, wrapped by the table's key."""
        with _LOCK:
            wrapped = _PREPARED.pop((self._id(), table_key_id, length), None)
        return wrapped or self.wrap(secrets.token_bytes(length), table_key_id, table)

    def unwrap(self, wrapped: bytes, table_key_id: str, table: str) -> bytes:
        """Return the key that was wrapped by the table's key, from a cache of one hour."""
        place = (self._id(), table_key_id, wrapped)
        now = time.monotonic()
        with _LOCK:
            for old in [k for k, (since, _) in _UNWRAPPED.items() if now - since > _KEPT_S]:
                del _UNWRAPPED[old]
            known = _UNWRAPPED.get(place)
        if known is not None:
            return known[1]
        key = self._call(table, lambda c: c.unwrap_key(wrapped, table_key_id), table_key_id)
        with _LOCK:
            _UNWRAPPED[place] = (now, key)
        return key

    def _id(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self.properties.items()))

    def _call(self, table: str, call: Callable[[KeyManagementClient], bytes], key_id: str) -> bytes:
        with _LOCK:
            client = _CLIENTS.get(self._id())
        hidden = secret_values(self.properties)
        try:
            if client is None:
                client = _new_client(self.properties)
                client.initialize(self.properties)
                with _LOCK:
                    _CLIENTS[self._id()] = client
            key: object = call(client)
        except IcebergError as e:
            raise type(e)(f"{table}: {e}") from harmless_cause(e, hidden)
        except Exception as e:  # noqa: BLE001 - the user's class may raise anything
            raise StorageError(
                f"{table}: the key management service refused key '{key_id}', or was not reached "
                f"({type(e).__name__}: {without_secrets(str(e), hidden):.300}); check the "
                "catalog's properties encryption.* and kms.*, and what the service permits you"
            ) from harmless_cause(e, hidden)
        if not (isinstance(key, bytes) and key):
            raise StorageError(
                f"{table}: the key management client returned no bytes for key '{key_id}'; its "
                "wrap_key and unwrap_key must return bytes"
            )
        return key


_LOCK = threading.Lock()
_CLIENTS: dict[tuple[tuple[str, str], ...], KeyManagementClient] = {}
_UNWRAPPED: dict[tuple[object, str, bytes], tuple[float, bytes]] = {}
_PREPARED: dict[tuple[object, str, int], bytes] = {}


def _new_client(properties: Mapping[str, str]) -> KeyManagementClient:
    kind, name = properties.get(KMS_TYPE), properties.get(KMS_IMPL)
    if kind and name:
        raise InvalidRequestError(f"{KMS_TYPE} and {KMS_IMPL} are both set; remove one")
    if name:
        return cast("KeyManagementClient", _class(name)())
    match kind:
        case "aws":
            from iceberg_pyspark.storage.encryption.aws_kms import AwsKeyManagement  # noqa: PLC0415

            return AwsKeyManagement()
        case "file":
            return FileKeyManagement()
        case None | "":
            raise InvalidRequestError(
                "the table is encrypted, and its keys need a key management service: set "
                f"{KMS_TYPE} = aws or file, or {KMS_IMPL}, for the catalog, or for the path"
            )
        case _:
            raise InvalidRequestError(
                f"{KMS_TYPE} = {kind}: aws and file are supported; for another service set "
                f"{KMS_IMPL} to a Python class"
            )


def _class(name: str) -> type[Any]:
    module, _, class_name = name.rpartition(".")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidRequestError(f"{KMS_IMPL} = {name}: it must be module.Class")
    try:
        cls = getattr(importlib.import_module(module), class_name)
    except Exception as e:
        # the import runs the module, which can fail with any error
        raise InvalidRequestError(
            f"{KMS_IMPL} = {name} cannot be imported ({type(e).__name__}: {e!s:.300}); it must be "
            "a Python class that Python on the driver finds; Java's classes cannot be used"
        ) from e
    if not isinstance(cls, type) or not all(callable(getattr(cls, m, None)) for m in _METHODS):
        raise InvalidRequestError(
            f"{KMS_IMPL} = {name} is not a class with the methods {', '.join(_METHODS)}; see "
            "iceberg_pyspark.storage.encryption.key_management.KeyManagementClient"
        )
    return cls
