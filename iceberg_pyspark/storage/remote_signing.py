"""Requests to S3 that a catalog's server signs, and who asks it to.

Open API specification of the REST catalog, `signRequest`: a client sends what a request will be,
and gets the headers that make it valid; it has no key of the store. With a table's storage
properties goes one, `storage.remote-signing`, that says who signs: the catalog itself, in the
process that has it; in others an address of its server, where the server gave what a task may ask
with. It is the table's own token, never a secret of the catalog.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import InvalidMetadataError, StorageError, UnsupportedFeatureError

REMOTE_SIGNING_ENABLED = "s3.remote-signing-enabled"
"""The property by which a server says that it signs requests, and vends no keys."""

SIGNER = "s3.signer"
"""PyIceberg's property for the same; it says nothing more."""

SIGNING = "storage.remote-signing"
"""The storage property that says who signs a table's requests."""

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class SignerAnswer:
    """What a signer's server answered."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    message: str
    """For an error: who was asked, and what it said, without secrets."""


class Signer(Protocol):
    """Who signs requests of tables; threads share it."""

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """The answer to a `RemoteSignRequest`; raises an `IcebergError` where none came."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSigning:
    """The value of `SIGNING`: `source` names a signer that a catalog registered.

    `endpoint` is the signer's address. `token` is what requests of tasks carry; where `for_tasks`
    is False there is none, and they cannot sign. `properties` and `headers` are the server's, and
    go with each request for a signature as they are.
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
        """As a property."""
        content = {k: v for k, v in asdict(self).items() if v is not None}
        return json.dumps(content, separators=(",", ":"), sort_keys=True)

    @property
    def table(self) -> str:
        """The table's name, for messages."""
        return ".".join((*self.namespace, self.name))


_signers: WeakValueDictionary[tuple[int, str], Signer] = WeakValueDictionary()


def register_signer(name: str, signer: Signer) -> None:
    """Have this process sign by a signer as long as somebody else keeps it."""
    # connections do not survive a fork
    _signers[os.getpid(), name] = signer


def is_signed_remotely(properties: Mapping[str, str]) -> bool:
    """Whether the properties of a location say that a server signs its requests."""
    return properties.get(REMOTE_SIGNING_ENABLED, "false").lower() == "true"


def signing_of(properties: Mapping[str, str]) -> RemoteSigning:
    """Who signs; raises `UnsupportedFeatureError` where no catalog's server does."""
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
        # not chained: it may hold a token
        raise InvalidMetadataError(
            f"{SIGNING} is set by catalogs only, and this value is not one of theirs; leave it out"
        ) from None


def signer_of(signing: RemoteSigning) -> Signer:
    """Who signs in this process."""
    signer = _signers.get((os.getpid(), signing.source))
    return signer or _task_signer(os.getpid())


def check_tasks_sign(properties: Mapping[str, str]) -> None:
    """Refuse to send a table's storage to tasks in other processes that could not use it.

    Raises `UnsupportedFeatureError`.
    """
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
    """Asks a table's signer with the table's own token."""

    def __init__(self) -> None:
        try:
            # only tables that are signed remotely need it
            import httpx  # noqa: PLC0415
        except ImportError:
            raise StorageError(
                "a package is missing to have requests signed: pip install 'iceberg-pyspark[rest]'"
            ) from None
        self._errors = httpx.HTTPError
        self._client = httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False)

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """The answer; raises `StorageError` where none came."""
        _check_may_sign(signing)
        headers = {**signing.headers, "Accept": "application/json"}
        if signing.token is not None:
            headers["Authorization"] = f"Bearer {signing.token}"
        try:
            response = self._client.post(signing.endpoint, json=dict(request), headers=headers)
        except self._errors as e:
            # not chained: it holds the request, and with it the token
            raise StorageError(
                f"the signer of table {signing.table} gave no answer ({type(e).__name__})"
            ) from None
        return SignerAnswer(
            response.status_code,
            response.headers,
            response.content,
            f"the signer of table {signing.table} answered with {response.status_code}",
        )
