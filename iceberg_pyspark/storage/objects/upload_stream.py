"""An upload to a store as a stream, which prevents writes after a failed write."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.objects.store_errors import store_errors

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class UploadStream(io.RawIOBase):
    """A stream of bytes into a library's upload; after a failed write every other write fails.

    Errors name the location and show none of the store's `properties`. Subclasses define how an
    upload is closed or aborted, which differs between libraries.
    """

    def __init__(self, upload: Any, location: str, properties: Mapping[str, str]) -> None:
        self._upload = upload
        self._location = location
        self._properties = properties
        self._position = 0
        self._failed = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def write(self, data: ReadableBuffer, /) -> int:
        """Pass the bytes to the library, which may send them later."""
        with store_errors("write", self._location, self._properties):
            if self._failed:
                raise self._error_after_failure()
            content = bytes(data)
            self._failed = True
            self._upload.write(content)
            self._failed = False
        self._position += len(content)
        return len(content)

    def _error_after_failure(self) -> StorageError:
        return StorageError(f"cannot write {self._location}: an earlier write failed")
