"""Credentials that expire while a job runs, and the sources of new credentials.

The server of a catalog vends credentials for a limited time. The storage property
`storage.credentials-renewal` of a table names the source of new credentials: in the process of the
catalog, the catalog itself; in other processes, an endpoint of the server, if the server offers one
that tasks may use. New credentials are requested shortly before the old ones expire. If none can be
obtained, the old credentials are used until they expire.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import IcebergError, InvalidMetadataError, StorageError
from iceberg_pyspark.redaction import without_secrets
from iceberg_pyspark.storage.credentials.server_endpoints import of_server, with_server_properties
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    properties_at,
    vended_entries,
)

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
_WINDOW_S = 300.0
"""Credentials are renewed this long before they expire, but not before 9/10 of their lifetime."""

_PAUSE_S = 10.0
"""The pause between two attempts while the old credentials are still valid."""

_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 16 * 1024 * 1024
_SHOWN_CHARACTERS = 400
_now_s = time.time
_log = logging.getLogger(__name__)


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


_sources: WeakValueDictionary[tuple[int, str], CredentialSource] = WeakValueDictionary()


def register_source(name: str, source: CredentialSource) -> None:
    """Register a source for this process, for as long as another object references the source."""
    # the process id is in the key because connections do not survive a fork
    _sources[os.getpid(), name] = source


def source_of(properties: Mapping[str, str]) -> CredentialSource | None:
    """Return the source of new credentials in this process, or None if there is none."""
    text = properties.get(RENEWAL)
    return None if text is None else _source(text)


def _source(text: str) -> CredentialSource | None:
    try:
        content = json.loads(text)
        renewal = Renewal(**content)
    except (ValueError, TypeError):
        # not chained: the text may contain a token
        raise InvalidMetadataError(
            f"{RENEWAL} is set by catalogs only, and this value is not one of theirs; leave it out"
        ) from None
    source = _sources.get((os.getpid(), renewal.source))
    if source is not None or renewal.endpoint is None:
        return source
    return _endpoint(text, os.getpid())


@lru_cache(maxsize=64)
def _endpoint(text: str, _process: int) -> CredentialSource:
    renewal = Renewal(**json.loads(text))
    return _Endpoint(renewal.endpoint or "", renewal.token)


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


def renewal_time(end_s: float, start_s: float) -> float:
    """Return when to renew credentials that were obtained at `start_s` and expire at `end_s`."""
    return end_s - min(max(end_s - start_s, 0.0) / 10, _WINDOW_S)


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
        self._properties = properties
        self._source = source
        self._read = read
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._end_s = 0.0
        self._next_s = 0.0
        self._take(properties)

    def __repr__(self) -> str:
        return "credentials"

    def __call__(self) -> dict[str, Any]:
        """Return the current credentials, after a renewal if it is due."""
        with self._lock:
            if _now_s() >= self._next_s:
                self._renew()
            return dict(self._values)

    def _renew(self) -> None:
        try:
            self._take(self._source.renew(self._properties))
        except IcebergError as e:
            if _now_s() >= self._end_s:
                raise StorageError(
                    f"the credentials for {self._location} have expired and could not be renewed: "
                    f"{e}"
                ) from None
            self._next_s = _now_s() + _PAUSE_S
            _log.warning("expiring credentials for %s could not be renewed: %s", self._location, e)

    def _take(self, properties: Mapping[str, str]) -> None:
        values = self._read(properties_at(self._location, properties))
        if values is None:
            raise StorageError("the catalog's server sent none for this location")
        now = _now_s()
        end = values.get("expires_at")
        self._values, self._properties = values, properties
        self._end_s = float("inf") if end is None else end.timestamp()
        # pause at least a second, in case the server returns the same credentials again
        earliest_renewal_s = 0.0 if self._next_s == 0.0 else now + 1
        self._next_s = max(
            renewal_time(self._end_s, now) if end is not None else self._end_s, earliest_renewal_s
        )


class _Endpoint:
    """An endpoint that returns `storage-credentials` (Open API, `loadCredentials`)."""

    def __init__(self, address: str, token: str | None) -> None:
        self._address = address
        self._token = token
        self._lock = threading.Lock()
        self._latest: Mapping[str, str] | None = None
        self._next_s = 0.0

    def renew(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties with the keys from the server; raise `StorageError` on failure."""
        with self._lock:
            if self._latest is None or _now_s() >= self._next_s:
                latest = with_new_keys(properties, self._answer())
                end_s = end_of(latest)
                self._latest = latest
                self._next_s = 0.0 if end_s is None else renewal_time(end_s, _now_s())
            return self._latest

    def _answer(self) -> bytes:
        try:
            # executors without httpx keep the credentials that they received
            import httpx  # noqa: PLC0415

            from iceberg_pyspark.storage.http_answers import receive  # noqa: PLC0415
        except ImportError:
            raise StorageError(
                "a package is missing to renew credentials: pip install 'iceberg-pyspark[rest]'"
            ) from None
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client:
                answer = receive(
                    client,
                    "GET",
                    self._address,
                    end_s=time.monotonic() + _TIMEOUT_S,
                    size=_LARGEST_ANSWER,
                    headers=headers,
                )
        except httpx.HTTPError as e:
            # not chained: the exception contains the request and with it the token
            raise StorageError(f"{self._address} got no answer ({type(e).__name__})") from None
        if answer.status != 200:
            reason = _reason(answer.body, self._token)
            raise StorageError(f"{self._address} answered with {answer.status}{reason}")
        return answer.body


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
