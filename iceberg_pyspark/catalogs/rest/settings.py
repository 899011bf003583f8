"""The properties of the HTTP client of a REST catalog, with Java's names.

The TLS properties are PyIceberg's `ssl.*` as flat names. Times are in milliseconds, as in Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.redaction import redact_uri
from iceberg_pyspark.spec.properties import int_property

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
