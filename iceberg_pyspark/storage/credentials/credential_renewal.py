"""Credentials that expire while a job runs, and the sources of new credentials.

The server of a catalog vends credentials for a limited time. The storage property
`storage.credentials-renewal` of a table names the source of new credentials: in the process of the
catalog, the catalog itself; in other processes, an endpoint of the server, if the server offers one
that tasks may use. New credentials are requested shortly before the old ones expire. If none can be
obtained, the old credentials are used until they expire.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, StorageError
from iceberg_pyspark.redaction import get_logger, without_secrets
from iceberg_pyspark.storage.credentials.server_endpoints import of_server, with_server_properties
from iceberg_pyspark.storage.credentials.table_services import (
    RegisteredServices,
    ask_endpoint,
    read_description,
)
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    properties_at,
    vended_entries,
)

_log = get_logger(__name__)

T = TypeVar("T")

_WINDOW_S = 300.0
"""A value is renewed this long before it expires, but not before nine tenths of its lifetime."""

_PAUSE_S = 10.0
"""The pause after a failed attempt while the old value is still valid."""


class Renewed(Generic[T]):
    """The latest value, with the second of the clock when it expires; thread-safe.

    If no new value can be obtained, the old one is used until it expires.
    """

    def __init__(self, name: str, now_s: Callable[[], float] = time.time) -> None:
        """`name` is for the log."""
        self._name = name
        self._now_s = now_s
        self._lock = threading.Lock()
        self._latest: tuple[T, float] | None = None
        self._next_s = 0.0

    def set(self, value: T, end_s: float | None) -> None:
        """Set the value that is used first; an `end_s` of None means that it does not expire."""
        with self._lock:
            self._keep(value, end_s, 0.0)

    def forget(self) -> None:
        """Forget a value that was refused; the next one is obtained at once."""
        with self._lock:
            self._latest = None

    def get(self, obtain: Callable[[T | None], tuple[T, float | None]]) -> T:
        """Return the value, after a renewal if it is due.

        `obtain` gets the old value and returns a new one with its end. Its `IcebergError` is raised
        if there is no old value or it has expired.
        """
        with self._lock:
            old = self._latest
            if old is not None and self._now_s() < self._next_s:
                return old[0]
            try:
                value, end_s = obtain(None if old is None else old[0])
            except IcebergError as e:
                now_s = self._now_s()
                if old is None or now_s >= old[1]:
                    raise
                self._next_s = min(now_s + _PAUSE_S, old[1])
                _log.warning("expiring %s could not be renewed: %s", self._name, e)
                return old[0]
            # a server may return the same value again
            self._keep(value, end_s, 1.0)
            return value

    def _keep(self, value: T, end_s: float | None, least_s: float) -> None:
        now_s = self._now_s()
        end_s = float("inf") if end_s is None else end_s
        window_s = min(max(end_s - now_s, 0.0) / 10, _WINDOW_S)
        self._latest = value, end_s
        self._next_s = max(end_s - window_s, now_s + least_s)


RENEWAL = "storage.credentials-renewal"
"""The storage property that describes the source of a table's new credentials."""

EXPIRIES = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms.",
)
"""The prefixes of properties with the expiry time of credentials, in milliseconds."""

# an endpoint may replace only these keys, no other setting of the store
_KEYS = (
    *("s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
    *("gcs.oauth2.token", "adls.sas-token"),
)
_SHOWN_CHARACTERS = 400

# the properties, for the next renewal, and the library's values
_Values = tuple[Mapping[str, str], dict[str, Any]]

_now_s = time.time


class CredentialSource(Protocol):
    """A source of new credentials for one table; implementations are thread-safe."""

    def renew(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return the table's storage properties with new credentials in place of expiring ones."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """The value of the property `RENEWAL`; `source` names a source that a catalog registered.

    `endpoint` is for processes that do not have the source. Requests to it carry `token`, which
    belongs to the table and is never a secret of the catalog.
    """

    source: str
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)

    def to_text(self) -> str:
        """Return the value of the property as JSON text."""
        content = {"source": self.source, "endpoint": self.endpoint, "token": self.token}
        return json.dumps({k: v for k, v in content.items() if v}, separators=(",", ":"))


SOURCES: RegisteredServices[CredentialSource] = RegisteredServices()
"""The sources of new credentials in this process."""


def source_of(properties: Mapping[str, str]) -> CredentialSource | None:
    """Return the source of new credentials in this process, or None if there is none."""
    text = properties.get(RENEWAL)
    if text is None:
        return None
    renewal = read_description(Renewal, RENEWAL, text)
    source = SOURCES.get(renewal.source)
    if source is not None or renewal.endpoint is None:
        return source
    return _endpoint(renewal.endpoint, renewal.token, os.getpid())


@lru_cache(maxsize=64)
def _endpoint(address: str, token: str | None, _process: int) -> CredentialSource:
    return _Endpoint(address, token)


def end_of(properties: Mapping[str, str]) -> float | None:
    """Return the epoch second when the first credentials in the properties expire, or None."""
    configs = [
        dict(config) for _, config in vended_entries(properties.get(VENDED_CREDENTIALS, "[]"))
    ]
    times = [
        int(value)
        for config in (properties, *configs)
        for name, value in config.items()
        if name.startswith(EXPIRIES) and value.isdigit()
    ]
    return min(times) / 1000 if times else None


def expiry_notice(properties: Mapping[str, str]) -> str:
    """Return what to add to a store's error: that credentials have expired; empty if they have not.

    Credentials that this process renews have errors of their own.
    """
    end_s = end_of(properties)
    if end_s is None or _now_s() < end_s or source_of(properties) is not None:
        return ""
    end = datetime.fromtimestamp(end_s, timezone.utc)
    return (
        f"; the credentials expired at {end:%Y-%m-%dT%H:%M:%SZ}, and this process cannot renew "
        "them: run the statement again, and for longer ones let the catalog's server vend "
        "credentials that last longer, or send an address for new ones "
        "(client.refresh-credentials-endpoint) and a token of the table"
    )


def lasting_properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return storage properties for a caller that cannot renew them, renewed if necessary."""
    end_s = end_of(properties) if RENEWAL in properties else None
    if end_s is None or _now_s() < end_s - _WINDOW_S:
        return properties
    source = source_of(properties)
    if source is None:
        return properties
    try:
        return source.renew(properties)
    except IcebergError as e:
        if _now_s() >= end_s:
            raise
        _log.warning("expiring credentials could not be renewed: %s", e)
        return properties


class CredentialProvider:
    """A credential provider for obstore: one location's credentials, renewed before they expire.

    `read` extracts the values for the library, including `expires_at`, from a location's
    properties.
    """

    def __init__(
        self,
        location: str,
        properties: Mapping[str, str],
        source: CredentialSource,
        read: Callable[[Mapping[str, str]], dict[str, Any] | None],
    ) -> None:
        self._location = location
        self._source = source
        self._read = read
        self._latest = Renewed[_Values](f"credentials for {location}", _now_s)
        self._latest.set(*self._with_values(properties))

    def __repr__(self) -> str:
        return "credentials"

    def __call__(self) -> dict[str, Any]:
        """Return the current credentials, after a renewal if it is due."""
        try:
            return dict(self._latest.get(self._renewed)[1])
        except IcebergError as e:
            raise StorageError(
                f"the credentials for {self._location} have expired and could not be renewed: {e}"
            ) from None

    def _renewed(self, old: Any) -> tuple[_Values, float | None]:
        return self._with_values(self._source.renew(old[0]))

    def _with_values(self, properties: Mapping[str, str]) -> tuple[_Values, float | None]:
        values = self._read(properties_at(self._location, properties))
        if values is None:
            raise StorageError("the catalog's server sent none for this location")
        end = values.get("expires_at")
        return (properties, values), None if end is None else end.timestamp()


class _Endpoint:
    """An endpoint that returns `storage-credentials` (Open API, `loadCredentials`)."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address = address
        self._token = token
        self._latest = Renewed[Mapping[str, str]]("credentials", _now_s)

    def renew(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties with the keys from the server; raise `StorageError` on failure."""
        return self._latest.get(lambda _: self._renewed(properties))

    def _renewed(self, properties: Mapping[str, str]) -> tuple[Mapping[str, str], float | None]:
        answer = ask_endpoint(self._address, self._token, "GET", self._address)
        if answer.status != 200:
            reason = _reason(answer.body, self._token)
            raise StorageError(f"{self._address} answered with {answer.status}{reason}")
        latest = with_new_keys(properties, answer.body)
        return latest, end_of(latest)


def _reason(answer: bytes, token: str | None) -> str:
    """Return the message of an error of the server, after a colon and without secrets."""
    try:
        message = json.loads(answer)["error"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    if not isinstance(message, str) or not message:
        return ""
    return f": {without_secrets(message, [token] if token else [])[:_SHOWN_CHARACTERS]}"


def with_credentials_of(
    properties: Mapping[str, str], new_properties: Mapping[str, str]
) -> dict[str, str]:
    """Return storage properties in which only the credentials come from `new_properties`.

    All other settings stay, such as those that a user set for one read.
    """
    other_properties = {k: v for k, v in properties.items() if k != VENDED_CREDENTIALS}
    keys = (*_KEYS, VENDED_CREDENTIALS)
    new = {k: v for k, v in of_server(new_properties).items() if k.startswith(keys)}
    return with_server_properties({**other_properties, **new}, new_properties)


def with_new_keys(properties: Mapping[str, str], answer: bytes) -> dict[str, str]:
    """Return storage properties with the keys of `storage-credentials` in the answer, nothing else.

    Raises `StorageError`, whose message does not contain the answer.
    """
    new_keys = {
        prefix: dict(config)
        for prefix, config in vended_entries(properties.get(VENDED_CREDENTIALS, "[]"))
    }
    try:
        entries = vended_entries(json.dumps(json.loads(answer)["storage-credentials"]))
    except (ValueError, KeyError, TypeError, RecursionError, InvalidMetadataError):
        raise StorageError("the catalog's server answered without storage-credentials") from None
    if not entries:
        raise StorageError("the catalog's server answered with no storage-credentials")
    new_entries = [
        {
            "prefix": prefix,
            "config": {
                **new_keys.get(prefix, {}),
                **{k: v for k, v in config if k.startswith(_KEYS)},
            },
        }
        for prefix, config in entries
    ]
    return {**properties, VENDED_CREDENTIALS: json.dumps(new_entries, separators=(",", ":"))}
