"""Tables whose requests to the store the server signs: the signer's address, and who may ask it.

Open API specification of the REST catalog, `signRequest` and `LoadTableResult`, "Remote Signing":
`s3.remote-signing-enabled` of a table's `config`, with `remote-signing-config`; older servers send
`signer.uri` and `signer.endpoint` (also as `s3.signer.uri`, `s3.signer.endpoint`). Signing in other
processes is in `storage/credentials/table_services.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest.answers import config_of
from iceberg_pyspark.catalogs.rest.connection import Connection, TableSessions
from iceberg_pyspark.errors import CatalogError
from iceberg_pyspark.redaction import redact_uri
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.storage.credentials.table_services import (
    SIGNERS,
    SIGNING,
    RemoteSigning,
    SignerAnswer,
    is_signed_remotely,
)
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    vended_entries,
)
from iceberg_pyspark.storage.store_properties import first_of

_URIS = ("signer.uri", "s3.signer.uri")
_ENDPOINTS = ("signer.endpoint", "s3.signer.endpoint")
_OLD_ENDPOINT = "v1/aws/s3/sign"
_KEYS = ("access-key-id", "secret-access-key", "session-token")
_UNSIGNED_KEYS = tuple(f"{kind}.{key}" for kind in ("s3", "client") for key in _KEYS)


@dataclass(frozen=True, slots=True)
class SigningConfig:
    """The `remote-signing-config`, which is sent unchanged with each signing request.

    `addresses` holds `signer.uri` and `signer.endpoint`, which are not storage properties.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    addresses: Mapping[str, str] = field(default_factory=dict)


def signing_config(answer: JsonObject) -> SigningConfig:
    """Return the `remote-signing-config` of an answer that contains a table."""
    config = config_of(answer, "config")
    addresses = {k: v for k, v in config.items() if k.startswith("signer.")}
    if not answer.has("remote-signing-config"):
        return SigningConfig(addresses=addresses)
    content = answer.object("remote-signing-config")
    headers = content.object("headers") if content.has("headers") else None
    return SigningConfig(
        config_of(content, "properties"),
        {} if headers is None else {k: ", ".join(headers.strings(k)) for k in headers.names()},
        addresses,
    )


class RemoteSignings:
    """The signer of a catalog's tables: the catalog's server, through the session of each table."""

    def __init__(
        self,
        catalog: str,
        own_properties: Mapping[str, str],
        connection: Connection,
        sessions: TableSessions,
    ) -> None:
        """`own_properties` are the properties from the user, without the server's."""
        self._catalog = catalog
        self._own_properties = own_properties
        self._connection = connection
        self._sessions = sessions
        self._name = uuid.uuid4().hex

    def of(
        self, table: LoadedTable, config: SigningConfig, tokens: Mapping[str, str]
    ) -> LoadedTable:
        """Return the table, with the property that names the signer if the server signs requests.

        Such a table needs no access keys, so they are removed. Raise `CatalogError` if the signer
        is another server.
        """
        entries = vended_entries(table.config.get(VENDED_CREDENTIALS, "[]"))
        all_properties = [table.config, *(dict(content) for _, content in entries)]
        if not any(is_signed_remotely(p) for p in all_properties):
            return table
        signed_by = next(p for p in all_properties if is_signed_remotely(p))
        token = tokens.get("token")
        addresses = {**table.config, **signed_by, **config.addresses}
        SIGNERS.register(self._name, self)
        signing = RemoteSigning(
            source=self._name,
            namespace=table.identifier.namespace,
            name=table.identifier.name,
            endpoint=self._endpoint(table.identifier, addresses),
            for_tasks=token is not None or self._connection.is_anonymous,
            token=token,
            properties=config.properties,
            headers=config.headers,
        )
        table_config = {k: v for k, v in table.config.items() if k not in _UNSIGNED_KEYS}
        if not is_signed_remotely(table.config):
            # only some prefixes are signed remotely; the others need their keys
            table_config = dict(table.config)
        return replace(table, config={**table_config, SIGNING: signing.to_text()})

    def sign(self, signing: RemoteSigning, request: Mapping[str, Any]) -> SignerAnswer:
        """Send a signing request through the table's session and return the server's answer.

        Raise `CatalogUnavailableError` if no answer arrived.
        """
        identifier = TableIdentifier(namespace=tuple(signing.namespace), name=signing.name)
        base, _, path = signing.endpoint.partition("://")
        host, _, path = path.partition("/")
        session = self._sessions.of(identifier).at(f"{base}://{host}")
        answer = session.ask(
            "POST", path, body=request, headers=signing.headers, is_repeatable=True
        )
        message = f"catalog '{self._catalog}': {answer.message()}"
        return SignerAnswer(answer.status, answer.headers, answer.body, message)

    def _endpoint(self, identifier: TableIdentifier, properties: Mapping[str, str]) -> str:
        uri = self._connection.session.uri
        signer_uri = first_of(self._own_properties, *_URIS)
        base = (signer_uri or first_of(properties, *_URIS) or uri).rstrip("/")
        path = first_of(self._own_properties, *_ENDPOINTS) or first_of(properties, *_ENDPOINTS)
        if path is None:
            offers = e.SIGN_REQUEST in self._connection.endpoints
            path = self._connection.paths.sign(identifier) if offers else _OLD_ENDPOINT
        address = path if "://" in path else f"{base}/{path.lstrip('/')}"
        trusted_origins = {_origin(uri), *(() if signer_uri is None else (_origin(signer_uri),))}
        if _origin(address) not in trusted_origins or urlsplit(address).username is not None:
            raise CatalogError(
                f"catalog '{self._catalog}': its server has requests of table {identifier} signed "
                f"by another server, {redact_uri(address)}, which would get the catalog's "
                "credentials; set s3.signer.uri yourself if you trust that server"
            )
        return address


def _origin(address: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port or {"http": 80}.get(parts.scheme, 443)
    except ValueError:
        return "", None, None
