"""HTTP answers with a limit of time and of size.

The limits of httpx are those of one read of the socket: a server that sends a byte now and then
would be read for ever, and an answer without an end until the memory is full. Here, the whole
request has one limit of time, which also counts the headers of the answer, and its body one limit
of size, which counts decompressed bytes.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

_now_s = time.monotonic
_GZIP = ("gzip", "x-gzip")
# the reads of a request run in the thread that sends it
_local = threading.local()


class OversizedAnswerError(httpx.HTTPError):
    """An answer is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Received:
    """A whole answer, with its decompressed body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def receive(
    client: httpx.Client,
    method: str,
    url: httpx.URL | str,
    *,
    end_s: float,
    size: int,
    is_stored: bool = False,
    **given: Any,
) -> Received:
    """Send a request and return its whole answer.

    Raise `httpx.ReadTimeout` if the answer is not complete at `end_s` of the monotonic clock, and
    `OversizedAnswerError` if its body is larger than `size` bytes. The bytes of a stored object
    (`is_stored`) are returned as they are. `given` are further arguments of `client.stream`.
    """
    # httpx decompresses a whole piece at once, which can be very large
    encoding = "identity" if is_stored else "gzip"
    headers = {**given.pop("headers", {}), "Accept-Encoding": encoding}
    given["extensions"] = {"trace": _limit_new_stream, **given.get("extensions", {})}
    outer, _local.end_s = getattr(_local, "end_s", None), end_s
    try:
        with client.stream(method, url, headers=headers, **given) as response:
            body = _body(response, end_s, size, is_stored)
            return Received(response.status_code, response.headers, body)
    finally:
        _local.end_s = outer


def _body(response: httpx.Response, end_s: float, size: int, is_stored: bool) -> bytes:
    sent = "identity" if is_stored else response.headers.get("Content-Encoding", "identity")
    encoding = sent.strip().lower()
    if encoding not in ("", "identity", *_GZIP):
        raise httpx.DecodingError(f"Content-Encoding {encoding:.80} was not asked for")
    gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding in _GZIP else None
    body = bytearray()
    for piece in response.iter_raw():
        try:
            # one byte above the limit shows that the answer is larger
            body += piece if gzip is None else gzip.decompress(piece, size + 1 - len(body))
        except zlib.error as e:
            raise httpx.DecodingError(str(e)) from None
        if len(body) > size:
            raise OversizedAnswerError(f"more than {size} bytes")
        _check_time(end_s)
    if gzip is not None and body and not gzip.eof:
        raise httpx.DecodingError("the compressed answer is cut off")
    return bytes(body)


def _check_time(end_s: float) -> float:
    remaining_s = end_s - _now_s()
    if remaining_s <= 0:
        raise httpx.ReadTimeout("the answer is not complete")
    return remaining_s


def _limit_new_stream(event: str, info: Mapping[str, Any]) -> None:
    """Limit the reads and writes of a connection that httpcore has just opened."""
    if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        stream = info["return_value"]
        stream.read = _until_end(stream.read)
        stream.write = _until_end(stream.write)


def _until_end(call: Callable[..., Any]) -> Callable[..., Any]:
    def limited(argument: Any, timeout: float | None = None) -> Any:
        end_s = getattr(_local, "end_s", None)
        if end_s is not None:
            remaining_s = _check_time(end_s)
            timeout = remaining_s if timeout is None else min(timeout, remaining_s)
        return call(argument, timeout)

    return limited
