"""Streams of objects: reads by range in few requests, uploads that succeed or fail as a whole.

A reader of columns announces the ranges that it will read (`will_read`). When the first of them is
read, all are fetched together, neighbouring ranges in one request, in slices of a bounded size.

An upload to a store as a stream, which prevents writes after a failed write.
"""

from __future__ import annotations

import contextlib
import io
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.objects.store_errors import store_errors

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


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


TAIL_BYTES = 64 << 10
"""The size of the end that is fetched when a file is opened: enough for nearly any footer."""

_READ_AHEAD_BYTES = 1 << 20
_SLICE_BYTES = 32 << 20
_PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_LAST_RETRY = re.compile(r"after (\d+) retries, max_retries: \1\b(?!.*\b416\b)", re.DOTALL)


class Errors(Protocol):
    """A factory of contexts that convert a library's errors: `with errors("read"): ...`."""

    def __call__(self, action: str) -> AbstractContextManager[None]:
        """Return the context for one action."""
        ...


@dataclass(slots=True)
class _Group:
    """Ranges that are read in parallel; the n-th slice has the n-th part of each range."""

    starts: list[int]
    ends: list[int]
    slices: int
    fetched_parts: dict[tuple[int, int], memoryview] = field(default_factory=dict)

    def place(self, position: int) -> tuple[int, int] | None:
        """Return the range and the slice that contain a position, or None if no range does."""
        number = bisect_right(self.starts, position) - 1
        if number < 0 or position >= self.ends[number]:
            return None
        return number, (position - self.starts[number]) // self._slice_bytes(number)

    def bounds(self, number: int, part: int) -> tuple[int, int]:
        """Return the start and end of a slice; both are equal if the range has fewer slices."""
        step = self._slice_bytes(number)
        end = self.ends[number]
        start = min(self.starts[number] + part * step, end)
        return start, min(start + step, end)

    def _slice_bytes(self, number: int) -> int:
        return max(-(-(self.ends[number] - self.starts[number]) // self.slices), 1)


class ObjectInput(io.RawIOBase):
    """A seekable stream of one object; one request opens it and fetches the end of the file."""

    def __init__(self, store: Any, name: str, errors: Errors) -> None:
        self._store = store
        self._name = name
        self._errors = errors
        self._position = 0
        self._groups: list[_Group] = []
        self._size, self._tail = self._open()
        # the data read ahead for small reads, and its start
        self._ahead, self._ahead_start = memoryview(b""), 0

    def _open(self) -> tuple[int, memoryview]:
        suffix_ranges = type(self._store).__name__ != "AzureStore"
        if suffix_ranges:
            try:
                tail = self._store.get(self._name, options={"range": {"suffix": TAIL_BYTES}})
                return int(tail.meta["size"]), memoryview(tail.bytes())
            except FileNotFoundError:
                raise
            except Exception as e:
                # S3 refuses a range of an empty object; after the last retry there is no request
                if _LAST_RETRY.search(str(e)):
                    raise
                size = int(self._store.head(self._name)["size"])
                if size:
                    raise
                return 0, memoryview(b"")
        size = int(self._store.head(self._name)["size"])
        start = max(size - TAIL_BYTES, 0)
        return size, self._fetch([(start, size)])[0] if size else memoryview(b"")

    def will_read(self, groups: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Announce the ranges, each a start and an end, that are read next, group after group.

        The ranges of one group are read at the same time, each from start to end.
        """
        self._groups = []
        for ranges in groups:
            in_order = sorted(r for r in ranges if r[0] < r[1])
            total = sum(end - start for start, end in in_order)
            self._groups.append(
                _Group(
                    [start for start, _ in in_order],
                    [end for _, end in in_order],
                    max(-(-total // _SLICE_BYTES), 1),
                )
            )

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move the position without a request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a position before the start of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes, fewer only at the end of the file."""
        remaining = max(self._size - self._position, 0)
        length = remaining if size is None or size < 0 else min(size, remaining)
        pieces: list[memoryview] = []
        while length > 0:
            piece = self._piece(self._position, length)
            pieces.append(piece)
            self._position += len(piece)
            length -= len(piece)
        return bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)

    def readall(self) -> bytes:
        """Return all bytes from the position to the end."""
        return self.read()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into the caller's buffer, as `read` does, and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _piece(self, position: int, size: int) -> memoryview:
        """Return at least one byte from a position, and at most `size` bytes."""
        tail_start = self._size - len(self._tail)
        if position >= tail_start:
            return self._tail[position - tail_start :][:size]
        for number, group in enumerate(self._groups):
            if (place := group.place(position)) is not None:
                # earlier groups have been read and are not needed again
                del self._groups[:number]
                return self._of_group(group, place, position)[:size]
        offset = position - self._ahead_start
        if not 0 <= offset < len(self._ahead):
            end = min(position + max(size, _READ_AHEAD_BYTES), tail_start)
            self._ahead, self._ahead_start = self._fetch([(position, end)])[0], position
            offset = 0
        return self._ahead[offset:][:size]

    def _of_group(self, group: _Group, place: tuple[int, int], position: int) -> memoryview:
        number, part = place
        if place not in group.fetched_parts:
            for old in [p for p in group.fetched_parts if p[0] == number and p[1] < part]:
                del group.fetched_parts[old]
            bounds = {
                n: group.bounds(n, part)
                for n in range(len(group.starts))
                if (n, part) not in group.fetched_parts
            }
            ranges = [(n, b) for n, b in bounds.items() if b[0] < b[1]]
            for (n, _), data in zip(ranges, self._fetch([b for _, b in ranges]), strict=True):
                group.fetched_parts[(n, part)] = data
        return group.fetched_parts[place][position - group.bounds(number, part)[0] :]

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        with self._errors("read"):
            fetched_parts = self._store.get_ranges(
                self._name, starts=[s for s, _ in ranges], ends=[e for _, e in ranges]
            )
            data = [memoryview(piece) for piece in fetched_parts]
            for (start, end), piece in zip(ranges, data, strict=True):
                if len(piece) != end - start:
                    raise StorageError(
                        f"bytes {start} to {end} were returned as {len(piece)} bytes"
                    )
            return data


class ObjectOutput(UploadStream):
    """An upload that becomes a file when the stream is closed; `discard` leaves no file."""

    def __init__(self, store: Any, name: str, location: str, properties: Mapping[str, str]) -> None:
        super().__init__(_upload(store, name), location, properties)

    def close(self) -> None:
        """Publish the file; after a failed write, publish nothing and raise `StorageError`."""
        if self.closed:
            return
        if self._failed:
            self.discard()
            raise self._error_after_failure()
        super().close()
        with store_errors("write", self._location, self._properties):
            self._upload.close()

    def discard(self) -> None:
        """Close without publishing a file; the uploaded parts are removed."""
        if not self.closed:
            super().close()
            with store_errors("discard", self._location, self._properties):
                error = StorageError("discarded")
                self._upload.__exit__(StorageError, error, None)

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        if exc_type is None:
            self.close()
        else:
            # a partial file must not be published
            with contextlib.suppress(StorageError):
                self.discard()

    def __del__(self) -> None:
        # closing would publish the file, which the caller did not request; the store expires the
        # parts
        if not self.closed:
            super().close()


def _upload(store: Any, name: str) -> Any:
    # SignedS3Store, whose requests a server signs, has its own writer
    if (open_writer := getattr(store, "open_writer", None)) is not None:
        return open_writer(name)
    import obstore  # noqa: PLC0415 - as in `object_stores.py`

    return obstore.open_writer(store, name, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
