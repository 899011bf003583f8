"""Sends requests to S3, each with a signature from a catalog's server.

Open API specification of the REST catalog, `RemoteSignRequest`: method, address and headers of a
request go to the signer, which returns headers. Bodies are not signed. If the server allows a
read's signature to be kept (`Cache-Control: private`), it serves other reads of the object for half
a minute; the range is not part of the signature.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from iceberg_pyspark.errors import IcebergError, StorageError
from iceberg_pyspark.storage.credentials.table_services import (
    RemoteSigning,
    SignerAnswer,
    signer_of,
)
from iceberg_pyspark.storage.lru_map import LruMap
from iceberg_pyspark.storage.objects.store_errors import RequestError

_SIGNATURE_LIFETIME_S = 30.0
# the catalog's session repeats requests too
_SIGNER_RETRIES = 2
_READS = ("GET", "HEAD")
_LARGEST_ANSWER = 1 << 30
"""The largest answer in bytes, unless more is asked for."""

_TRANSIENT = (429, 500, 502, 503, 504)
# the store did not execute a request with one of these answers
_REFUSAL_STATUSES = (400, 401, 403, 429, 503)
_OWN = ("host", "content-length", "connection", "transfer-encoding", "cache-control")
_sleep = time.sleep
_now_s = time.monotonic


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """The answer of the store to a request."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _SignedRequest:
    uri: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """The settings of requests: times in seconds, and the number of retries.

    `request_s` is the limit of one attempt with its whole answer; after `retry_s`, none is begun.
    """

    region: str
    connect_timeout_s: float
    read_timeout_s: float
    request_s: float
    retry_s: float
    retries: int
    first_wait_s: float
    longest_wait_s: float
    proxy: str | None = None


class SignedRequests:
    """Sends requests with signatures; thread-safe."""

    def __init__(self, signing: RemoteSigning, settings: RequestSettings) -> None:
        try:
            # imported here because only tables with remote signing need it
            import httpx  # noqa: PLC0415

            from iceberg_pyspark.storage.http_answers import (  # noqa: PLC0415
                OversizedAnswerError,
                receive,
            )
        except ImportError:
            raise StorageError(
                "a package is missing for requests that a server signs: "
                "pip install 'iceberg-pyspark[rest]'"
            ) from None
        self._signing = signing
        self._settings = settings
        self._receive = receive
        self._error, self._oversized = httpx.HTTPError, OversizedAnswerError
        self._unsent_errors = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._client = httpx.Client(
            timeout=httpx.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s),
            proxy=settings.proxy,
            # a signature is valid for one address only
            follow_redirects=False,
        )
        self._signatures: LruMap[tuple[str, str], tuple[float, _SignedRequest]] = LruMap(1000)

    def send(
        self,
        method: str,
        uri: str,
        *,
        headers: Mapping[str, str] | None = None,
        unsigned_headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        is_repeatable: bool = True,
        creates: bool = False,
        length: int = 0,
    ) -> StoreAnswer:
        """Return the store's answer; `unsigned_headers` are not part of the signature.

        `length` is the number of bytes that are asked for, if it is known.

        Raises `RequestError`; for a request that creates a file, its `is_known` says that the store
        did not create the file.
        """
        attempt, maybe_done, fresh = 0, False, False
        last_s = _now_s() + self._settings.retry_s
        while True:
            last = attempt >= self._settings.retries or _now_s() > last_s
            try:
                signed_request, was_kept = self._sign(method, uri, headers or {}, fresh=fresh)
            except IcebergError as e:
                raise RequestError(str(e), is_known=creates and not maybe_done) from None
            try:
                response = self._receive(
                    self._client,
                    method,
                    signed_request.uri,
                    end_s=time.monotonic() + self._settings.request_s,
                    size=max(_LARGEST_ANSWER, length),
                    is_stored=True,
                    content=body or None,
                    # our headers win, so that a signer cannot remove the condition of a put
                    headers={
                        **signed_request.headers,
                        **(headers or {}),
                        **(unsigned_headers or {}),
                    },
                )
            except self._oversized as e:
                text = f"the store's answer is larger than anything that was asked for ({e})"
                raise RequestError(text) from None
            except self._error as e:
                # not chained: the exception contains the request and with it the signature
                never = isinstance(e, self._unsent_errors)
                maybe_done = maybe_done or not never
                if last or not (never or is_repeatable):
                    text = f"the store gave no answer ({type(e).__name__})"
                    raise RequestError(text, is_known=creates and not maybe_done) from None
            else:
                status = response.status
                if status == 403 and was_kept and not fresh:
                    fresh = True
                    continue
                again = status in _TRANSIENT and (is_repeatable or status in _REFUSAL_STATUSES)
                if last or not again:
                    if status in _REFUSAL_STATUSES:
                        text = f"the store refused it with {status}{error_code(response.body)}"
                        raise RequestError(text, is_known=creates and not maybe_done)
                    return StoreAnswer(status, response.headers, response.body)
                maybe_done = maybe_done or status not in _REFUSAL_STATUSES
            self._wait(attempt)
            attempt += 1

    def _wait(self, attempt: int) -> None:
        s = self._settings
        wait_s = min(s.first_wait_s * 2.0**attempt, s.longest_wait_s)
        _sleep(wait_s * (1 + random.random() / 2))

    def _sign(
        self, method: str, uri: str, headers: Mapping[str, str], *, fresh: bool
    ) -> tuple[_SignedRequest, bool]:
        key = (method, uri)
        may_keep = method in _READS and not headers
        if may_keep and not fresh:
            signature = self._signatures.get(key)
            if signature is not None and _now_s() < signature[0]:
                return signature[1], True
        request: dict[str, Any] = {
            "method": method,
            "region": self._settings.region,
            "uri": uri,
            "headers": {name: [value] for name, value in headers.items()},
            "properties": dict(self._signing.properties),
        }
        answer = self._signer_answer(request)
        signed_request = _signed_from_json(answer, uri, self._signing.table)
        if may_keep and answer.headers.get("Cache-Control", "").strip().lower() == "private":
            self._signatures.put(key, (_now_s() + _SIGNATURE_LIFETIME_S, signed_request))
        return signed_request, False

    def _signer_answer(self, request: Mapping[str, Any]) -> SignerAnswer:
        signer, attempt = signer_of(self._signing), 0
        while True:
            answer = signer.sign(self._signing, request)
            if answer.status == 200:
                return answer
            if answer.status not in _TRANSIENT or attempt >= _SIGNER_RETRIES:
                raise StorageError(f"the request was not signed: {answer.message}")
            self._wait(attempt)
            attempt += 1


def _signed_from_json(answer: SignerAnswer, uri: str, table: str) -> _SignedRequest:
    try:
        content = json.loads(answer.body)
        signed_uri = content["uri"]
        headers = {
            str(name): ", ".join(str(v) for v in values)
            for name, values in content["headers"].items()
            if name.lower() not in _OWN
        }
        same = _is_same(uri, signed_uri)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # not chained: the exception contains the signature
        raise StorageError(
            f"the signer of table {table} answered with neither uri nor headers"
        ) from None
    if not same:
        raise StorageError(
            f"the signer of table {table} signed a different request; nothing was sent"
        )
    return _SignedRequest(signed_uri, {name.lower(): value for name, value in headers.items()})


def _is_same(requested_url: str, signed_url: str) -> bool:
    """Return whether the signed address is the requested one, apart from a signature query."""
    requested_parts, signed_parts = urlsplit(requested_url), urlsplit(signed_url)
    if (requested_parts.scheme, requested_parts.hostname, requested_parts.port) != (
        signed_parts.scheme,
        signed_parts.hostname,
        signed_parts.port,
    ):
        return False
    if (
        unquote(requested_parts.path) != unquote(signed_parts.path)
        or signed_parts.username is not None
    ):
        return False
    rest = parse_qsl(signed_parts.query, keep_blank_values=True)
    for pair in parse_qsl(requested_parts.query, keep_blank_values=True):
        if pair not in rest:
            return False
        rest.remove(pair)
    return all(name.lower().startswith("x-amz-") for name, _ in rest)


def error_code(body: bytes) -> str:
    """Return the code of an S3 error, as ` (AccessDenied)`; its text may contain the signature."""
    _, tag, rest = body.partition(b"<Code>")
    code = rest.partition(b"</Code>")[0][:80].decode("ascii", "replace")
    return f" ({code})" if tag and code.isalnum() else ""
