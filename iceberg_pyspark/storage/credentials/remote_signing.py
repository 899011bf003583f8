"""Requests to S3 that a catalog's server signs, and the signers that ask the server.

Open API specification of the REST catalog, `signRequest`: a client describes a request and gets the
headers that make it valid; the client has no key of the store. The storage property
`storage.remote-signing` of a table names the signer: in the process of the catalog, the catalog
itself; in other processes, an endpoint of the server, if the server issued a token that tasks may
use. The token belongs to the table and is never a secret of the catalog.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import InvalidMetadataError, StorageError, UnsupportedFeatureError

REMOTE_SIGNING_ENABLED = "s3.remote-signing-enabled"
"""The property with which a server declares that it signs requests and vends no keys."""

SIGNER = "s3.signer"
"""PyIceberg's property for remote signing; it has no further information."""

SIGNING = "storage.remote-signing"
"""The storage property that describes the signer of a table's requests."""

_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SignerAnswer:
    """The answer of a signer's server."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    message: str
    """For an error: the address that was asked and its answer, without secrets."""


class Signer(Protocol):
    """A signer of tables' requests; implementations are thread-safe."""

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """Return the answer to a `RemoteSignRequest`; raise an `IcebergError` if there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSigning:
    """The value of the property `SIGNING`; `source` names a signer that a catalog registered.

    `endpoint` is the signer's address. `token` authorises the requests of tasks; if `for_tasks` is
    False, there is no token and tasks cannot sign. `properties` and `headers` come from the server
    and are sent unchanged with each request for a signature.
    """

    source: str
    namespace: Sequence[str]
    name: str
    endpoint: str
    for_tasks: bool
    token: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def to_text(self) -> str:
        """Return the value of the property as JSON text."""
        content = {k: v for k, v in asdict(self).items() if v is not None}
        return json.dumps(content, separators=(",", ":"), sort_keys=True)

    @property
    def table(self) -> str:
        """The table's full name, for messages."""
        return ".".join((*self.namespace, self.name))


_signers: WeakValueDictionary[tuple[int, str], Signer] = WeakValueDictionary()


def register_signer(name: str, signer: Signer) -> None:
    """Register a signer for this process, for as long as another object references the signer."""
    # the process id is in the key because connections do not survive a fork
    _signers[os.getpid(), name] = signer


def is_signed_remotely(properties: Mapping[str, str]) -> bool:
    """Return whether the properties of a location declare that a server signs its requests."""
    return properties.get(REMOTE_SIGNING_ENABLED, "false").lower() == "true"


def signing_of(properties: Mapping[str, str]) -> RemoteSigning:
    """Return the signing settings; raise `UnsupportedFeatureError` if no catalog has set them."""
    text = properties.get(SIGNING)
    if text is None:
        raise UnsupportedFeatureError(
            f"storage property {REMOTE_SIGNING_ENABLED} is not supported here: only a catalog of "
            "type rest has a server that signs; give s3.access-key-id and s3.secret-access-key and "
            "set it to false"
        )
    try:
        return RemoteSigning(**json.loads(text))
    except (ValueError, TypeError):
        # not chained: the text may contain a token
        raise InvalidMetadataError(
            f"{SIGNING} is set by catalogs only, and this value is not one of theirs; leave it out"
        ) from None


def signer_of(signing: RemoteSigning) -> Signer:
    """Return this process's signer: the registered one, or one that uses the table's token."""
    signer = _signers.get((os.getpid(), signing.source))
    return signer or _task_signer(os.getpid())


def check_tasks_sign(properties: Mapping[str, str]) -> None:
    """Raise `UnsupportedFeatureError` if tasks in other processes could not sign requests."""
    text = properties.get(SIGNING)
    if text is not None and is_signed_remotely(properties):
        _check_may_sign(signing_of(properties))


def _check_may_sign(signing: RemoteSigning) -> None:
    if not signing.for_tasks:
        raise UnsupportedFeatureError(
            f"table {signing.table}: its server signs each request to the store "
            f"({REMOTE_SIGNING_ENABLED}) and issued no token for the table, so Spark's tasks, "
            "which get no secret of the catalog, cannot request signatures"
            "; read and write the table "
            "without Spark (iceberg_pyspark.load_table), configure the server to send a token "
            "with the table, or have it vend credentials "
            "(header.X-Iceberg-Access-Delegation = vended-credentials)"
        )


@lru_cache(maxsize=1)
def _task_signer(_process: int) -> Signer:
    return _TaskSigner()


class _TaskSigner:
    """A signer that asks the server with the table's own token."""

    def __init__(self) -> None:
        try:
            # imported here because only tables with remote signing need it
            import httpx  # noqa: PLC0415

            from iceberg_pyspark.storage.http_answers import receive  # noqa: PLC0415
        except ImportError:
            raise StorageError(
                "a package is missing to have requests signed: pip install 'iceberg-pyspark[rest]'"
            ) from None
        self._receive = receive
        self._errors = httpx.HTTPError
        self._client = httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False)

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """Return the answer; raise `StorageError` if there is none."""
        _check_may_sign(signing)
        headers = {**signing.headers, "Accept": "application/json"}
        if signing.token is not None:
            headers["Authorization"] = f"Bearer {signing.token}"
        try:
            answer = self._receive(
                self._client,
                "POST",
                signing.endpoint,
                end_s=time.monotonic() + _TIMEOUT_S,
                size=_LARGEST_ANSWER,
                json=dict(request),
                headers=headers,
            )
        except self._errors as e:
            # not chained: the exception contains the request and with it the token
            raise StorageError(
                f"the signer of table {signing.table} gave no answer ({type(e).__name__})"
            ) from None
        return SignerAnswer(
            answer.status,
            answer.headers,
            answer.body,
            f"the signer of table {signing.table} answered with {answer.status}",
        )
