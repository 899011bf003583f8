"""Requests to S3 that a catalog's server signs, and the signers that ask the server.

Open API specification of the REST catalog, `signRequest`: a client describes a request and gets the
headers that make it valid; the client has no key of the store. The storage property
`storage.remote-signing` of a table names the signer: in the process of the catalog, the catalog
itself; in other processes, an endpoint of the server, if the server issued a token that tasks may
use. The token belongs to the table and is never a secret of the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.storage.credentials.table_services import (
    RegisteredServices,
    ask_endpoint,
    read_description,
)

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
