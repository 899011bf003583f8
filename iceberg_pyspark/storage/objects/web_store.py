"""Files of a web server, which are only read: whole bytes, and from no server that it names.

A redirect to another server, perhaps to an address of the reader's own network, would let the
server choose which bytes a table has, so only redirects to the same address, or from http to https
on the same host, are followed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

from iceberg_pyspark.storage.objects.ranged_reads import RangedReads
from iceberg_pyspark.storage.objects.signed_requests import StoreAnswer
from iceberg_pyspark.storage.objects.store_errors import RequestError

_REQUEST_S = 300
_READ_S = 60
_CONNECT_S = 10
_LARGEST_BYTES = 4 << 30
_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MISSING_STATUSES = (404, 410)


@lru_cache(maxsize=1)
def web_store(_process: int) -> WebStore:
    """Return the store of all web servers; the process counts, as no client survives a fork."""
    try:
        return WebStore()
    except ImportError:
        raise RequestError(
            "a package is missing for web servers: pip install 'iceberg-pyspark[http]'"
        ) from None


class WebStore(RangedReads):
    """The files of web servers by their addresses, with the methods of obstore's stores."""

    def __init__(self) -> None:
        # an extra, which only locations of web servers and REST catalogs need
        import httpx  # noqa: PLC0415

        self._client = httpx.Client(timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S))

    def answer(
        self, method: str, name: str, span: str | None = None, length: int = 0
    ) -> StoreAnswer:
        """Return the server's answer; raise `RequestError` if it ignores the range."""
        import httpx  # noqa: PLC0415

        from iceberg_pyspark.storage.http_answers import (  # noqa: PLC0415
            OversizedAnswerError,
            receive,
        )

        headers = {} if span is None else {"Range": span}
        size = _LARGEST_BYTES if span is None else length
        end_s = time.monotonic() + _REQUEST_S
        url = httpx.URL(name)
        for _ in range(_REDIRECTS):
            try:
                received = receive(
                    self._client,
                    method,
                    url,
                    end_s=end_s,
                    size=size,
                    is_stored=True,
                    headers=headers,
                )
            except OversizedAnswerError:
                raise RequestError(_of_another_range(span)) from None
            except httpx.HTTPError as e:
                raise RequestError(f"{type(e).__name__}: {e}") from None
            if received.status in _REDIRECT_STATUSES and "Location" in received.headers:
                url = _followed(url, url.join(received.headers["Location"]))
                continue
            if received.status in _MISSING_STATUSES:
                raise FileNotFoundError(name)
            if span is not None and received.status == 200:
                raise RequestError(_of_another_range(span))
            if received.status not in (200, 206):
                raise RequestError(f"the server answered with status {received.status}")
            return StoreAnswer(received.status, received.headers, received.body)
        raise RequestError(f"the server redirects more than {_REDIRECTS} times")

    def put(self, _name: str, _data: bytes, **_: Any) -> NoReturn:
        """Refuse to write."""
        _refuse()

    def open_writer(self, _name: str) -> NoReturn:
        """Refuse to write."""
        _refuse()

    def delete(self, _name: str) -> NoReturn:
        """Refuse to delete."""
        _refuse()

    def list(self, _prefix: str | None, **_: Any) -> Iterator[Any]:
        """Refuse to list."""
        raise RequestError("web servers do not list their files")


def _refuse() -> NoReturn:
    raise RequestError(
        "web servers are only read; register the table in a catalog with its files in a store that "
        "can be written",
        is_known=True,
    )


def _of_another_range(span: str | None) -> str:
    if span is None:
        return f"the answer is larger than {_LARGEST_BYTES} bytes"
    return f"the server did not answer with the range {span}; it must support ranges"


def _followed(source: Any, target: Any) -> Any:
    """Return the address to which a server redirects, if the server may do so."""
    same_host = source.host == target.host
    same = target.scheme == source.scheme and target.port == source.port
    if same_host and (same or (source.scheme == "http" and target.scheme == "https")):
        return target
    raise RequestError(
        f"the server redirects to {target.scheme}://{target.netloc.decode()}; redirects to another "
        "server are not followed, because it would choose the table's bytes: use the location to "
        "which the server redirects"
    )
