"""How fsspec asks web servers: whole bytes, and never a server that another one names.

A table may read the files of its own server only. A redirect to another one, perhaps to an address
of the reader's own network, would let the server choose which bytes the table has, so only
redirects to the same address, or from http to https on the same host, are followed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from iceberg_pyspark.storage.objects.store_errors import RequestError

WEB_SCHEMES = frozenset(("http", "https"))
"""The schemes of web servers, which are only read."""

# a range of a compressed answer has other offsets than the file
_HEADERS = {"Accept-Encoding": "identity"}
_MISSING_STATUSES = (404, 410)


@lru_cache(maxsize=1)
def web_options() -> dict[str, Any]:
    """Return the arguments of fsspec's file system for web servers."""
    # the extra `http` brings it, after fsspec has named it as missing
    from aiohttp import TraceConfig  # noqa: PLC0415

    trace = TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    return {"headers": _HEADERS, "client_kwargs": {"trace_configs": [trace]}}


def is_missing(error: FileNotFoundError) -> bool:
    """Return whether the server said that there is no such file.

    fsspec raises `FileNotFoundError` for any failure of the request that asks for the size.
    """
    cause = error.__cause__
    if cause is None or isinstance(cause, FileNotFoundError):
        return True
    return getattr(cause, "status", None) in _MISSING_STATUSES


async def _check_redirect(_session: Any, _context: Any, params: Any) -> None:
    answer = params.response
    source = answer.url
    target = source.join(type(source)(answer.headers.get("Location") or ""))
    if target.origin() == source.origin():
        return
    if target.host == source.host and target.scheme == "https":
        return
    answer.close()
    raise RequestError(
        f"the server redirects to {target.origin()}; redirects to another server are not followed, "
        "because it would choose the table's bytes: use the location to which the server redirects"
    )
