"""AES-GCM, as Iceberg uses it: sealed keys, and the stream of encrypted files (`AGS1`).

Specification of the AES GCM stream: `AGS1`, the block length (int32 LE, 1 MiB in every file), then
blocks of a nonce of 12 bytes, the ciphertext and a tag of 16 bytes. Each block's AAD is the file's
AAD prefix and the block's number (int32 LE), so blocks can be neither changed nor moved; the length
in the file's key metadata shows that none is missing.
"""

from __future__ import annotations

import contextlib
import io
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from iceberg_pyspark.errors import StorageError, UnsupportedFeatureError
from iceberg_pyspark.spec.encryption import FileKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from typing_extensions import Buffer

_MAGIC = b"AGS1"
_HEADER = 8
_NONCE = 12
_OVERHEAD = _NONCE + 16
_BLOCK = 1 << 20


def new_file_key(length: int) -> FileKey:
    """Return a new random key of `length` bytes with a new AAD prefix."""
    return FileKey(secrets.token_bytes(length), secrets.token_bytes(16))


def seal(key: bytes, data: bytes, aad: bytes) -> bytes:
    """Return nonce, ciphertext and tag."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + _cipher(key).encrypt(nonce, data, aad)


def unseal(key: bytes, sealed: bytes, aad: bytes, what: str) -> bytes:
    """Return the data that `seal` has sealed; errors name `what`."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    cipher = _cipher(key)
    try:
        return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], aad)
    except (InvalidTag, ValueError) as e:
        raise StorageError(
            f"{what} cannot be decrypted: its authentication tag does not match; it was changed or "
            "damaged, or the key is another one"
        ) from e


def _cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ImportError as e:
        raise UnsupportedFeatureError(
            "encrypted tables need the package cryptography, on the driver and on executors: "
            "pip install 'iceberg-pyspark[encryption]'"
        ) from e
    return AESGCM(key)


class DecryptedStream(io.RawIOBase):
    """The plaintext of one `AGS1` file, which `read_range(offset, length)` reads.

    `length` is the encrypted length, from trusted metadata. Nothing is returned of a block whose
    tag does not match.
    """

    def __init__(
        self, read_range: Callable[[int, int], bytes], length: int, key: FileKey, location: str
    ) -> None:
        self._read_range = read_range
        self._key = key
        self._location = location
        header = read_range(0, _HEADER) if length >= _HEADER else b""
        # the length of a block is not authenticated, and every writer's is the same
        if header != _MAGIC + _BLOCK.to_bytes(4, "little"):
            raise StorageError(
                f"{location} is not an encrypted file (AGS1) of {length} bytes with blocks of "
                f"{_BLOCK}, as its key metadata says; it was replaced or damaged"
            )
        self._body = length - _HEADER
        whole, rest = divmod(self._body, _BLOCK + _OVERHEAD)
        if 0 < rest < _OVERHEAD:
            raise StorageError(f"{location}: its length {length} ends within an encrypted block")
        self.size = whole * _BLOCK + max(rest - _OVERHEAD, 0)
        self._position = 0
        self._last: tuple[int, bytes] = (-1, b"")

    def range(self, offset: int, length: int) -> bytes:
        """Return plaintext bytes; raise `StorageError` if the file is shorter."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise StorageError(
                f"cannot read {self._location}: bytes {offset} to {offset + length} are outside "
                f"the file, whose plaintext has {self.size} bytes"
            )
        if not length:
            return b""
        first, last = offset // _BLOCK, (offset + length - 1) // _BLOCK
        data = b"".join(self._blocks(first, last))
        start = offset - first * _BLOCK
        return data[start : start + length]

    def _blocks(self, first: int, last: int) -> list[bytes]:
        if first == last == self._last[0]:
            return [self._last[1]]
        step = _BLOCK + _OVERHEAD
        start, end = first * step, min((last + 1) * step, self._body)
        data = self._read_range(_HEADER + start, end - start)
        blocks = [
            unseal(
                self._key.key,
                data[(n - first) * step : (n - first + 1) * step],
                self._key.aad_prefix + n.to_bytes(4, "little"),
                f"{self._location}: block {n}",
            )
            for n in range(first, last + 1)
        ]
        self._last = (last, blocks[-1])
        return blocks

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position of the plaintext, and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def tell(self) -> int:
        """Return the position in the plaintext."""
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        """Read at most the rest of one block."""
        view = memoryview(buffer).cast("B")
        room = _BLOCK - self._position % _BLOCK
        count = min(len(view), room, max(self.size - self._position, 0))
        view[:count] = self.range(self._position, count)
        self._position += count
        return count


class EncryptedOutput(io.RawIOBase):
    """A stream whose bytes reach `stream` encrypted; `key` has the file's length after `close`."""

    def __init__(self, stream: BinaryIO, key: FileKey) -> None:
        self._stream = stream
        self._cipher = _cipher(key.key)
        self._waiting = bytearray()
        self._blocks = 0
        self._plain = 0
        self._length = stream.write(_MAGIC + _BLOCK.to_bytes(4, "little"))
        self.key = key

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Encrypt full blocks, and keep the rest."""
        view = memoryview(data).cast("B")
        self._plain += len(view)
        self._waiting += view
        while len(self._waiting) > _BLOCK:
            self._write_block(_BLOCK)
        return len(view)

    def _write_block(self, size: int) -> None:
        nonce = secrets.token_bytes(_NONCE)
        aad = self.key.aad_prefix + self._blocks.to_bytes(4, "little")
        block = nonce + self._cipher.encrypt(nonce, bytes(self._waiting[:size]), aad)
        del self._waiting[:size]
        self._stream.write(block)
        self._length += len(block)
        self._blocks += 1

    def tell(self) -> int:
        """Return the number of plaintext bytes written."""
        return self._plain

    def close(self) -> None:
        """Encrypt the last block and publish the file."""
        if self.closed:
            return
        if self._waiting or not self._blocks:
            self._write_block(len(self._waiting))
        super().close()
        self._stream.close()
        self.key = replace(self.key, file_length=self._length)

    def discard(self) -> None:
        """Close without a last block; a store that can publishes no file."""
        if self.closed:
            return
        super().close()
        discard = getattr(self._stream, "discard", self._stream.close)
        discard()

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            self.close()
        else:
            with contextlib.suppress(StorageError, OSError):
                self.discard()

    def __del__(self) -> None:
        # closing would publish the file, which the caller did not request
        with contextlib.suppress(Exception):
            self.discard()
