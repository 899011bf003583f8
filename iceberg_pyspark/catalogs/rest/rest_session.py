"""HTTP requests of one REST catalog: headers, retries, and lost answers.

A request is repeated if that is safe: it only reads, it was never sent, the server refused it
because of its rate limit, or it has an idempotency key. A repeated deletion could hit what another
client has created under the name. Redirects are not followed, because they would forward
credentials.

The properties of the HTTP client of a REST catalog, with Java's names.

The TLS properties are PyIceberg's `ssl.*` as flat names. Times are in milliseconds, as in Java.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from iceberg_pyspark.catalogs.rest.answers import (
    PROXY_LOGIN,
    PROXY_REMEDY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED_STATUSES,
    Answer,
)
from iceberg_pyspark.catalogs.rest.authentication import Authentication
from iceberg_pyspark.errors import CatalogUnavailableError, InvalidRequestError, NotAuthorizedError
from iceberg_pyspark.redaction import redact_uri, without_secrets
from iceberg_pyspark.spec.table_properties import int_property
from iceberg_pyspark.storage.http_answers import OversizedAnswerError, receive

_HEADER = "header."
_CONNECT_TIMEOUT = "rest.client.connection-timeout-ms"
_READ_TIMEOUT = "rest.client.socket-timeout-ms"
_REQUEST_TIMEOUT = "rest.client.request-timeout-ms"
_MAX_RESPONSE_BYTES = "rest.client.max-response-bytes"
_MAX_RETRIES = "rest.client.max-retries"
_MAX_CONNECTIONS = "rest.client.max-connections"
_PROXY = "rest.client.proxy."
_CA_BUNDLE = "ssl.cabundle"
_CERTIFICATE = "ssl.client.cert"
_KEY = "ssl.client.key"
_USER_AGENT = "rest.client.user-agent"
_HIGHEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How long a request may take, with its answer and all retries, and the answer's size."""

    time_s: float = 600.0
    size: int = 256 * 1024 * 1024

    @property
    def time_remedy(self) -> str:
        """What to do if a request takes too long."""
        return f"it may take {self.time_s:g} s: raise {_REQUEST_TIMEOUT} if the server needs longer"

    @property
    def size_remedy(self) -> str:
        """What to do if an answer is too large."""
        return f"it may have {self.size} bytes: raise {_MAX_RESPONSE_BYTES} if it must be larger"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The server's address and the settings of the HTTP client.

    `retries` is the maximum for requests that are safe to repeat.
    """

    uri: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = 30.0
    read_timeout_s: float = 180.0
    limits: AnswerLimits = field(default_factory=AnswerLimits)
    retries: int = 5
    max_connections: int = 100
    proxy: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None
    client_certificate: tuple[str, str] | None = None


def http_settings(catalog: str, properties: Mapping[str, str]) -> HttpSettings:
    """Parse the HTTP settings of a catalog; raise `InvalidRequestError`."""
    headers = {
        "User-Agent": properties.get(_USER_AGENT, "iceberg-pyspark"),
        **{k[len(_HEADER) :]: v for k, v in properties.items() if k.startswith(_HEADER)},
    }
    certificate, key = properties.get(_CERTIFICATE), properties.get(_KEY)
    if (certificate is None) != (key is None):
        raise InvalidRequestError(
            f"catalog '{catalog}': {_CERTIFICATE} and {_KEY} belong together; set both"
        )
    return HttpSettings(
        uri=_checked_uri(catalog, properties.get("uri")),
        headers=headers,
        connect_timeout_s=_number(properties, _CONNECT_TIMEOUT, 30_000) / 1000,
        read_timeout_s=_number(properties, _READ_TIMEOUT, 180_000) / 1000,
        limits=_limits(properties),
        retries=_number(properties, _MAX_RETRIES, 5, minimum=0),
        max_connections=_number(properties, _MAX_CONNECTIONS, 100),
        proxy=_proxy(catalog, properties),
        ca_bundle=properties.get(_CA_BUNDLE),
        client_certificate=None if certificate is None or key is None else (certificate, key),
    )


def _checked_uri(catalog: str, uri: str | None) -> str:
    if not uri:
        raise InvalidRequestError(
            f"catalog '{catalog}' needs the property 'uri': the address of its REST server, such "
            "as https://host/api"
        )
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidRequestError(
            f"catalog '{catalog}': uri '{redact_uri(uri)}' must begin with http:// or https:// "
            "and name a host"
        )
    if parts.username is not None:
        raise InvalidRequestError(
            f"catalog '{catalog}': its uri must hold no user or password; set 'credential', "
            "'token' or rest.auth.basic.username and rest.auth.basic.password"
        )
    return uri.rstrip("/")


def _proxy(catalog: str, properties: Mapping[str, str]) -> str | None:
    host, port = properties.get(f"{_PROXY}hostname"), properties.get(f"{_PROXY}port")
    if host is None and port is None:
        return None
    if not host or not port or not port.isdigit():
        raise InvalidRequestError(
            f"catalog '{catalog}': {_PROXY}hostname and {_PROXY}port (a number) belong together; "
            "set both"
        )
    user, password = properties.get(f"{_PROXY}username"), properties.get(f"{_PROXY}password")
    login = f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""
    return f"http://{login}{host}:{port}"


def _limits(properties: Mapping[str, str]) -> AnswerLimits:
    default = AnswerLimits()
    return AnswerLimits(
        _number(properties, _REQUEST_TIMEOUT, round(default.time_s * 1000)) / 1000,
        _number(properties, _MAX_RESPONSE_BYTES, default.size),
    )


def _number(properties: Mapping[str, str], name: str, default: int, minimum: int = 1) -> int:
    number = int_property(properties, name, default)
    if not minimum <= number <= _HIGHEST:
        raise InvalidRequestError(f"{name} = {number}: must be {minimum} to {_HIGHEST}")
    return number


_REPEATABLE = ("GET", "HEAD")
_TRANSIENT = (408, 500, 502, 503, 504)
_UNSENT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 10.0
_LONGEST_ASKED_WAIT_S = 60.0
_sleep = time.sleep
_now_s = time.monotonic


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """A request without an answer.

    `was_sent` means that the server may still have carried out the request; `is_final`, that
    another attempt would fail too, for example because the server's certificate is not trusted.
    """

    error: CatalogUnavailableError
    was_sent: bool
    is_final: bool = False


class Session:
    """A sender of requests to one server; thread-safe; the caller must close `client`."""

    def __init__(
        self,
        catalog: str,
        settings: HttpSettings,
        client: httpx.Client,
        authentication: Authentication,
        *,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._client = client
        self._authentication = authentication
        self._secrets = secrets

    @property
    def uri(self) -> str:
        """The server's address."""
        return self._settings.uri

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
    ) -> Answer:
        """Send a request and return the answer; raise `CatalogUnavailableError` if none arrived.

        If `is_repeatable` is None, the method decides whether a retry is safe.
        """
        answer = self.try_to_ask(
            method, path, query=query, body=body, headers=headers, is_repeatable=is_repeatable
        )
        if isinstance(answer, LostAnswer):
            raise answer.error
        return answer

    def at(self, uri: str) -> Session:
        """Return a session that sends the same credentials to another address."""
        settings = replace(self._settings, uri=uri)
        return Session(
            self._catalog, settings, self._client, self._authentication, secrets=self._secrets
        )

    def try_to_ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
    ) -> Answer | LostAnswer:
        """Send a request, with retries, and return the answer or `LostAnswer`; see `ask`."""
        url = self._url(path, query)
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        repeats = method in _REPEATABLE if is_repeatable is None else is_repeatable
        request = f"{method} {path}"
        attempt, repeated, renewed = 0, False, False
        end_s = _now_s() + self._settings.limits.time_s
        while True:
            answer = self._attempt(request, method, url, content, headers or {}, repeated, end_s)
            if isinstance(answer, LostAnswer):
                again = (repeats or not answer.was_sent) and not answer.is_final
                repeated = repeated or answer.was_sent
                wait_s = self._wait_s(attempt, {})
            elif (
                answer.status in UNAUTHORIZED_STATUSES
                and not renewed
                and self._authentication.renew()
            ):
                renewed = True
                continue
            else:
                transient = repeats and answer.status in _TRANSIENT
                again, repeated = (
                    transient or answer.status == TOO_MANY_REQUESTS,
                    (repeated or transient),
                )
                wait_s = self._wait_s(attempt, answer.headers)
            if not again or attempt >= self._settings.retries or _now_s() + wait_s >= end_s:
                return answer
            _sleep(wait_s)
            attempt += 1

    def _attempt(
        self,
        request: str,
        method: str,
        url: httpx.URL,
        content: bytes,
        headers: Mapping[str, str],
        repeated: bool,
        end_s: float,
    ) -> Answer | LostAnswer:
        request_headers = {"Accept": "application/json", **self._settings.headers, **headers}
        if content:
            request_headers["Content-Type"] = "application/json"
        try:
            request_headers |= self._authentication.headers(method, str(url), content)
        except (CatalogUnavailableError, NotAuthorizedError) as e:
            if not repeated:
                raise
            # an earlier attempt may have been carried out
            return LostAnswer(CatalogUnavailableError(str(e)), was_sent=True, is_final=True)
        try:
            received = receive(
                self._client,
                method,
                url,
                end_s=end_s,
                size=self._settings.limits.size,
                content=content or None,
                headers=request_headers,
            )
        except UnicodeError:
            # raise without the cause, which contains the header
            raise InvalidRequestError(
                f"catalog '{self._catalog}': headers must be ASCII text; check its properties "
                "header.* and token"
            ) from None
        except httpx.HTTPError as e:
            # raise without the cause, which contains the request with its headers
            text = without_secrets(str(e), self._secrets)
            final_remedy = remedy_of(e, self._settings.limits, end_s)
            remedy = final_remedy or "check the catalog's uri, or try again"
            error = CatalogUnavailableError(
                f"catalog '{self._catalog}': {request} to {self._settings.uri} got no answer "
                f"({type(e).__name__}: {text}); {remedy}"
            )
            # an earlier attempt may have been carried out, even if this one was never sent
            was_sent = repeated or not isinstance(e, _UNSENT_ERRORS)
            return LostAnswer(error, was_sent, is_final=final_remedy is not None)
        return Answer(
            request=request,
            status=received.status,
            headers=received.headers,
            body=received.body,
            secrets=self._secrets,
            repeated=repeated,
        )

    def _url(self, path: str, query: Mapping[str, str] | None) -> httpx.URL:
        # AWS's signatures cover %20, and httpx itself would write a space as +
        parameters = f"?{urlencode(query, safe='', quote_via=quote)}" if query else ""
        try:
            return httpx.URL(f"{self._settings.uri}/{path}{parameters}")
        except httpx.InvalidURL as e:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': the names in {path:.80} make no address ({e})"
            ) from e

    def _wait_s(self, attempt: int, headers: Mapping[str, str]) -> float:
        retry_after = headers.get("Retry-After", "")
        if retry_after.isdigit():
            return min(float(retry_after), _LONGEST_ASKED_WAIT_S)
        wait_s = min(_FIRST_WAIT_S * 2.0**attempt, _LONGEST_WAIT_S)
        return wait_s * (1 + random.random() / 2)


def http_client(catalog: str, settings: HttpSettings) -> httpx.Client:
    """Return an HTTP client for the settings; raise `InvalidRequestError` for wrong TLS files."""
    return httpx.Client(
        verify=_tls(catalog, settings),
        proxy=settings.proxy,
        timeout=httpx.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s),
        limits=httpx.Limits(max_connections=settings.max_connections),
        follow_redirects=False,
    )


def remedy_of(error: httpx.HTTPError, limits: AnswerLimits, end_s: float) -> str | None:
    """Return what to do about an error that another attempt cannot help, or None for others.

    The request had to be done at `end_s` of the monotonic clock.
    """
    if isinstance(error, OversizedAnswerError):
        return limits.size_remedy
    if isinstance(error, httpx.TimeoutException) and _now_s() >= end_s:
        return limits.time_remedy
    text = str(error)
    if isinstance(error, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in text:
        return "set ssl.cabundle to a file with the certificate of the authority that signed it"
    if isinstance(error, httpx.ProxyError) and text.startswith(str(PROXY_LOGIN)):
        return PROXY_REMEDY
    return None


def _tls(catalog: str, settings: HttpSettings) -> ssl.SSLContext | bool:
    if settings.ca_bundle is None and settings.client_certificate is None:
        return True
    try:
        context = ssl.create_default_context(cafile=settings.ca_bundle)
        if settings.client_certificate is not None:
            context.load_cert_chain(*settings.client_certificate)
    except (OSError, ssl.SSLError) as e:
        raise InvalidRequestError(
            f"catalog '{catalog}': its TLS files (ssl.cabundle, ssl.client.cert, ssl.client.key) "
            f"cannot be used: {e}"
        ) from e
    return context
