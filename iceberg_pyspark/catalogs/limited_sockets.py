"""Sockets of libraries whose own limits are those of one read.

A server that sends a byte now and then would be read for ever, and an answer without an end until
the memory is full. Here, one request with its whole answer has a limit of time and one of size.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_now_s = time.monotonic
# libraries read and write in the thread that makes the request
_local = threading.local()


class LimitReached(BaseException):
    """A limit of a request is reached; the text says which one.

    It is not an `Exception`, after which libraries would repeat the request.
    """


class _Limits:
    def __init__(self, time_s: float, size: int) -> None:
        self._time_s, self._size = time_s, size
        self._end_s, self._left = _now_s() + time_s, size

    def remaining_s(self) -> float:
        remaining_s = self._end_s - _now_s()
        if remaining_s <= 0:
            raise self.time_is_over()
        return remaining_s

    def time_is_over(self) -> LimitReached:
        return LimitReached(f"the answer is not complete after {self._time_s:g} s")

    def count(self, received: int) -> None:
        self._left -= received
        if self._left < 0:
            raise LimitReached(f"the answer has more than {self._size} bytes")


@contextlib.contextmanager
def request_limits(time_s: float, size: int) -> Iterator[None]:
    """Limit what this thread sends and receives by `LimitedSocket` to seconds and bytes received.

    A read or write beyond a limit raises `LimitReached`, which the caller catches.
    """
    _local.limits = _Limits(time_s, size)
    try:
        yield
    finally:
        _local.limits = None


class LimitedSocket:
    """A connected socket that obeys the `request_limits` of the thread that uses it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive at most `size` bytes."""
        if flags:
            # a look at whether the connection is open
            return self._socket.recv(size, flags)
        data = self._in_time(lambda: self._socket.recv(size))
        _count(len(data))
        return data

    def send(self, data: Any) -> int:
        """Send a part of the data; return how many bytes."""
        return self._in_time(lambda: self._socket.send(data))

    def sendall(self, data: Any) -> None:
        """Send all of the data."""
        self._in_time(lambda: self._socket.sendall(data))

    def makefile(self, mode: str = "r", buffering: int | None = None) -> Any:
        """Return a stream, which reads within the limits."""
        if mode != "rb":
            return self._socket.makefile(mode, buffering)  # type: ignore[call-overload]
        raw = _LimitedStream(self._socket.makefile("rb", 0), self)
        return raw if buffering == 0 else io.BufferedReader(raw)

    def _in_time(self, call: Callable[[], T]) -> T:
        limits: _Limits | None = getattr(_local, "limits", None)
        if limits is None:
            return call()
        usual_s, remaining_s = self._socket.gettimeout(), limits.remaining_s()
        is_last = usual_s is None or remaining_s <= usual_s
        self._socket.settimeout(remaining_s if is_last else usual_s)
        try:
            return call()
        except TimeoutError:
            if is_last:
                raise limits.time_is_over() from None
            raise
        finally:
            self._socket.settimeout(usual_s)


class _LimitedStream(io.RawIOBase):
    def __init__(self, stream: Any, limited: LimitedSocket) -> None:
        self._stream = stream
        self._limited = limited

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        size: int | None = self._limited._in_time(lambda: self._stream.readinto(buffer))
        _count(size or 0)
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._stream.close()


def _count(received: int) -> None:
    limits: _Limits | None = getattr(_local, "limits", None)
    if limits is not None:
        limits.count(received)
