"""Services of a catalog for one table: new credentials, and signatures for requests to the store.

A storage property of the table describes the service. In the process of the catalog, it is an
object that the catalog registered; in other processes, an endpoint of the server, which is asked
with a token that belongs to the table and is never a secret of the catalog.

A signer gets the description of a request to S3 and returns the headers that make it valid (Open
API specification of the REST catalog, `signRequest`): the client has no key of the store. The
storage property `storage.remote-signing` of a table names it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from iceberg_pyspark.errors import InvalidMetadataError, StorageError, UnsupportedFeatureError

if TYPE_CHECKING:
    from iceberg_pyspark.storage.http_answers import Received

_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 16 * 1024 * 1024

Service = TypeVar("Service")
Description = TypeVar("Description")


class RegisteredServices(Generic[Service]):
    """The services that catalogs of this process have registered, by name."""

    def __init__(self) -> None:
        self._services: WeakValueDictionary[tuple[int, str], Service] = WeakValueDictionary()

    def register(self, name: str, service: Service) -> None:
        """Register a service for as long as another object references it."""
        # the process id is in the key because connections do not survive a fork
        self._services[os.getpid(), name] = service

    def get(self, name: str) -> Service | None:
        """Return a service, or None if it was registered in another process."""
        return self._services.get((os.getpid(), name))


def read_description(kind: type[Description], name: str, text: str) -> Description:
    """Return a service's description from the JSON text of the storage property `name`."""
    try:
        return kind(**json.loads(text))
    except (ValueError, TypeError):
        # not chained: the text may contain a token
        raise InvalidMetadataError(
            f"{name} is set by catalogs only, and this value is not one of theirs; leave it out"
        ) from None


def ask_endpoint(endpoint: str, token: str | None, method: str, who: str, **given: Any) -> Received:
    """Ask a server's endpoint with the token of a table; `given` are the arguments of `receive`.

    Raise `StorageError`, which calls the server `who`, if there is no answer.
    """
    try:
        # executors without httpx keep the credentials that they received
        import httpx  # noqa: PLC0415

        from iceberg_pyspark.storage.http_answers import receive  # noqa: PLC0415
    except ImportError:
        raise StorageError(
            "a package is missing to ask the catalog's server for credentials and signatures: "
            "pip install 'iceberg-pyspark[rest]'"
        ) from None
    headers = {**given.pop("headers", {}), "Accept": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    end_s = time.monotonic() + _TIMEOUT_S
    try:
        return receive(
            _client(os.getpid()),
            method,
            endpoint,
            end_s=end_s,
            size=_LARGEST_ANSWER,
            headers=headers,
            **given,
        )
    except httpx.HTTPError as e:
        # not chained: the exception contains the request and with it the token
        raise StorageError(f"{who} gave no answer ({type(e).__name__})") from None


@lru_cache(maxsize=1)
def _client(_process: int) -> Any:
    import httpx  # noqa: PLC0415 - as in `ask_endpoint`

    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False)


REMOTE_SIGNING_ENABLED = "s3.remote-signing-enabled"
"""The property with which a server declares that it signs requests and vends no keys."""

SIGNER = "s3.signer"
"""PyIceberg's property for remote signing; it has no further information."""

SIGNING = "storage.remote-signing"
"""The storage property that describes the signer of a table's requests."""


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


SIGNERS: RegisteredServices[Signer] = RegisteredServices()
"""The signers of this process."""


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
    return read_description(RemoteSigning, SIGNING, text)


def signer_of(signing: RemoteSigning) -> Signer:
    """Return this process's signer: the registered one, or one that uses the table's token."""
    return SIGNERS.get(signing.source) or _TaskSigner()


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


class _TaskSigner:
    """A signer that asks the server with the table's own token."""

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """Return the answer; raise `StorageError` if there is none."""
        _check_may_sign(signing)
        who = f"the signer of table {signing.table}"
        answer = ask_endpoint(
            signing.endpoint,
            signing.token,
            "POST",
            who,
            json=dict(request),
            headers=signing.headers,
        )
        return SignerAnswer(
            answer.status, answer.headers, answer.body, f"{who} answered with {answer.status}"
        )
