"""AES-GCM streams, and the services that wrap keys."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import IcebergError, InvalidRequestError, StorageError
from iceberg_pyspark.spec.encryption import FileKey
from iceberg_pyspark.storage.encryption.encrypted_io import DecryptedFileIO, stored_file
from iceberg_pyspark.storage.encryption.gcm import EncryptedOutput, new_file_key
from iceberg_pyspark.storage.encryption.key_management import KeyManagement
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.encrypted_tables import KEYS, key_properties

MIB = 1 << 20
SIZES = (0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB, 3 * MIB + 5)


def encrypted(data: bytes, key: FileKey) -> tuple[MemoryFileIO, DecryptedFileIO]:
    """Return a store with the file `f`, and one that decrypts it."""
    store = MemoryFileIO()
    with EncryptedOutput(store.open_output("f"), key) as stream:
        for start in range(0, len(data), 700_001):
            stream.write(data[start : start + 700_001])
    size, key_metadata = stored_file(stream, len(data))  # type: ignore[arg-type]
    assert (size, key_metadata) == (store.size("f"), stream.key.encoded())
    return store, DecryptedFileIO(store, stream.key)


@pytest.mark.parametrize("size", SIZES)
def test_any_part_of_a_stream_is_read(size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(256)) * (size // 256 + 1)
    data = data[:size]
    _, plain = encrypted(data, new_file_key(32))
    assert plain.size("f") == size
    assert plain.read_bytes("f") == data
    for offset in {0, size // 2, max(size - 3, 0)}:
        length = min(MIB + 9, size - offset)
        assert plain.read_range("f", offset, length) == data[offset : offset + length]
    with plain.open_input("f") as stream:
        stream.seek(size // 2)
        assert stream.read() == data[size // 2 :]
        stream.seek(-min(size, 5), io.SEEK_END)
        assert stream.read() == data[len(data) - min(size, 5) :]
    with pytest.raises(StorageError, match="outside"):
        plain.read_range("f", size, 1)


DATA = b"abc" * 400_000
KEY = FileKey(bytes(range(16)), b"prefix of file 1")
STORE, PLAIN = encrypted(DATA, KEY)
STORED = STORE.read_bytes("f")


def read(stored: bytes, key: FileKey) -> bytes:
    store = MemoryFileIO()
    with store.open_output("f") as stream:
        stream.write(stored)
    plain = DecryptedFileIO(store, key)
    whole = plain.read_bytes("f")
    with plain.open_input("f") as stream:
        assert stream.read() == whole
    return whole


@given(st.integers(0, 8 * len(STORED) - 1))
def test_a_changed_bit_is_an_error(bit: int) -> None:
    changed = bytearray(STORED)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(IcebergError):
        read(bytes(changed), PLAIN.key)


BLOCK = MIB + 28


@pytest.mark.parametrize(
    "stored",
    [
        STORED[: 8 + BLOCK],
        STORED[:-1],
        STORED[:4],
        b"",
        STORED[:8] + STORED[8 + BLOCK :],
        STORED[:8] + STORED[8 + BLOCK :] + STORED[8 : 8 + BLOCK],
    ],
)
def test_a_stream_without_a_block_is_an_error(stored: bytes) -> None:
    with pytest.raises(StorageError):
        read(stored, PLAIN.key)


def test_what_was_appended_is_not_read() -> None:
    assert read(STORED + b"more", PLAIN.key) == DATA


@pytest.mark.parametrize(
    "key",
    [
        FileKey(bytes(16), KEY.aad_prefix, len(STORED)),
        FileKey(KEY.key, b"prefix of file 2", len(STORED)),
    ],
)
def test_another_key_or_another_files_prefix_is_an_error(key: FileKey) -> None:
    with pytest.raises(StorageError, match="cannot be decrypted"):
        read(STORED, key)


def test_the_key_file_wraps_keys(tmp_path: Path) -> None:
    service = KeyManagement(key_properties(tmp_path))
    for name in KEYS:
        wrapped = service.wrap(b"k" * 16, name, "t")
        assert b"k" * 16 not in wrapped
        # another value, so that nothing is cached
        again = KeyManagement({**service.properties, "client.region": name})
        assert again.unwrap(wrapped, name, "t") == b"k" * 16
    with pytest.raises(InvalidRequestError, match=r"t: .*no key 'keyC'"):
        service.wrap(b"", "keyC", "t")
    other = KeyManagement({**service.properties, "client.region": "wrong key"})
    with pytest.raises(StorageError, match="cannot be decrypted"):
        other.unwrap(wrapped, "keyA", "t")


class Reversing:
    """A service of a user."""

    def initialize(self, properties: dict[str, str]) -> None:
        if "kms.fails" in properties:
            raise ValueError(f"no service, {properties['kms.token']}")

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        return key[::-1]

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        return wrapped_key[::-1] if wrapping_key_id == "k" else None  # type: ignore[return-value]


IMPL = {"encryption.kms-impl": f"{__name__}.Reversing"}


def test_a_class_of_the_user_wraps_keys() -> None:
    service = KeyManagement(IMPL)
    assert service.unwrap(b"dcba", "k", "t") == b"abcd"
    with pytest.raises(StorageError, match="must return bytes"):
        service.unwrap(b"dcba", "other", "t")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "set encryption.kms-type = aws or file"),
        ({"encryption.kms-type": "gcp"}, "aws and file are supported"),
        ({"encryption.kms-type": "aws", **IMPL}, "both set"),
        ({"encryption.kms-type": "file"}, "encryption.kms-file"),
        ({"encryption.kms-type": "file", "encryption.kms-file": "/none"}, "cannot be read"),
        ({"encryption.kms-impl": "org.apache.iceberg.aws.AwsKms"}, "Java's classes cannot"),
        ({"encryption.kms-impl": "os.path"}, "not a class"),
        ({"encryption.kms-impl": "Kms"}, "module.Class"),
        ({**IMPL, "kms.fails": "1", "kms.token": "geheim"}, "was not reached .ValueError"),
    ],
)
def test_a_service_that_cannot_be_used(properties: dict[str, str], message: str) -> None:
    with pytest.raises(IcebergError, match=message) as error:
        KeyManagement(properties).unwrap(b"k", "k", "table t")
    assert str(error.value).startswith("table t: ")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    "content", ["geheim", "[]", '{"k": 7}', '{"k": "geheim"}', '{"k": "YQ=="}']
)
def test_a_wrong_key_file_is_refused_without_showing_it(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    properties = {"encryption.kms-type": "file", "encryption.kms-file": str(path)}
    with pytest.raises(InvalidRequestError, match=r"keys\.json") as error:
        KeyManagement(properties).wrap(b"k", "k", "t")
    assert "geheim" not in str(error.value)
