"""A client of HDFS whose calls end.

The native client waits without a limit for a name node that is connected and silent. Each call here
runs in an event loop of its own thread, and is cancelled after `CALL_S` seconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import TimeoutError as NoResultError
from typing import Any, TypeVar

from hdfs_native import AsyncClient, WriteOptions

T = TypeVar("T")

CALL_S = 300.0
"""How long a call may take, in seconds: longer than the search for another name node."""


class HdfsClient:
    """A client of the name nodes at `url`; thread-safe; it does not survive a fork."""

    def __init__(self, url: str | None, settings: dict[str, str], **login: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="hdfs", daemon=True).start()
        self._client = self._call(lambda: _made(url, settings, login))

    def read(self, path: str) -> HdfsInput:
        """Open a file."""
        return HdfsInput(self._call(lambda: self._client.read(path)), self._call)

    def create(self, path: str) -> HdfsOutput:
        """Create a file; raise `FileExistsError` if it exists."""
        options = WriteOptions(overwrite=False, create_parent=True)
        return HdfsOutput(self._call(lambda: self._client.create(path, options)), self._call)

    def get_file_info(self, path: str) -> Any:
        """Return the status of a file or folder."""
        return self._call(lambda: self._client.get_file_info(path))

    def list_status(self, path: str, *, recursive: bool) -> Iterator[Any]:
        """Yield the status of the files and folders in a folder."""
        entries = aiter(self._client.list_status(path, recursive))
        while (entry := self._call(lambda: anext(entries, None))) is not None:
            yield entry

    def mkdirs(self, path: str) -> None:
        """Create a folder and its parents."""
        self._call(lambda: self._client.mkdirs(path, 0o755, True))

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Rename a file."""
        self._call(lambda: self._client.rename(source, target, overwrite))

    def delete(self, path: str) -> None:
        """Delete a file or an empty folder."""
        self._call(lambda: self._client.delete(path, False))

    def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        async def wait() -> T:
            return await call()

        future = asyncio.run_coroutine_threadsafe(wait(), self._loop)
        try:
            return future.result(CALL_S)
        except NoResultError:
            if not future.done():
                future.cancel()
                raise TimeoutError(f"HDFS gave no answer within {CALL_S:g} s") from None
            raise
        except BaseException:
            future.cancel()
            raise


async def _made(url: str | None, settings: dict[str, str], login: dict[str, str]) -> AsyncClient:
    return AsyncClient(url, settings, **login)


class HdfsInput:
    """A file that is read; `len` is its size in bytes."""

    def __init__(self, file: Any, call: Callable[..., Any]) -> None:
        self._file = file
        self._call = call

    def __len__(self) -> int:
        return len(self._file)

    def read_range(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; all of them must be in the file."""
        return bytes(self._call(lambda: self._file.read_range(offset, length)))


class HdfsOutput:
    """A file that is written."""

    def __init__(self, file: Any, call: Callable[..., Any]) -> None:
        self._file = file
        self._call = call

    def write(self, data: Any) -> int:
        """Append the data; return its size."""
        return int(self._call(lambda: self._file.write(data)))

    def close(self) -> None:
        """Complete the file."""
        self._call(self._file.close)
