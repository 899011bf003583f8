"""Renews the storage credentials of a table before they expire.

Open API specification of the REST catalog, `loadCredentials` and, in a table's `config`,
`client.refresh-credentials-endpoint` and `client.refresh-credentials-enabled` (for Google and Azure
with the prefixes `gcs.oauth2.` and `adls.`). A server without this endpoint sends credentials with
the table. Renewal in other processes is in `storage/credentials/credential_renewal.py`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.rest import endpoints as e
from iceberg_pyspark.catalogs.rest.connection import Connection, TableSessions
from iceberg_pyspark.catalogs.rest.server_properties import vended_credentials
from iceberg_pyspark.spec.table_properties import bool_property
from iceberg_pyspark.storage.credentials.credential_renewal import (
    RENEWAL,
    SOURCES,
    Renewal,
    Renewed,
    end_of,
    with_credentials_of,
)
from iceberg_pyspark.storage.credentials.vended_credentials import (
    VENDED_CREDENTIALS,
    prefix_at,
    vended_entries,
)
from iceberg_pyspark.storage.lru_map import LruMap

_PREFIXES = ("client.", "gcs.oauth2.", "adls.")
_MOST = 1000
_now_s = time.time


class CredentialRenewals:
    """The renewal of the credentials of a catalog's tables; thread-safe."""

    def __init__(
        self,
        catalog: str,
        connection: Connection,
        sessions: TableSessions,
        load: Callable[[TableIdentifier], LoadedTable],
    ) -> None:
        """`load` loads the table from the server and bypasses the cache."""
        self._catalog = catalog
        self._connection = connection
        self._sessions = sessions
        self._load = load
        self._name = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._sources: LruMap[TableIdentifier, _TableCredentials] = LruMap(_MOST)

    def of(self, table: LoadedTable) -> LoadedTable:
        """Return the table, with the property that renews its credentials if they expire."""
        if end_of(table.config) is None or not _is_enabled(table.config):
            return table
        name = f"{self._name}/{table.identifier}"
        with self._lock:
            source = self._sources.get(table.identifier) or _TableCredentials(
                self._catalog, self._connection, self._sessions, self._load, table
            )
            self._sources.put(table.identifier, source)
        SOURCES.register(name, source)
        token = self._sessions.token(table.identifier)
        endpoint = endpoint_of(table.config, self._connection.session.uri)
        # a task can renew by itself only with the table's token or at an anonymous catalog
        if token is None and not self._connection.is_anonymous:
            endpoint = None
        renewal = Renewal(source=name, endpoint=endpoint, token=token if endpoint else None)
        return replace(table, config={**table.config, RENEWAL: renewal.to_text()})


class _TableCredentials:
    """A source of one table's credentials; it asks the server only when they need renewal."""

    def __init__(
        self,
        catalog: str,
        connection: Connection,
        sessions: TableSessions,
        load: Callable[[TableIdentifier], LoadedTable],
        table: LoadedTable,
    ) -> None:
        self._catalog = catalog
        self._connection = connection
        self._sessions = sessions
        self._load = load
        self._identifier = table.identifier
        self._location = table.metadata_location or table.metadata.location
        self._latest = Renewed[Mapping[str, str]](f"credentials of {table.identifier}", _now_s)

    def renew(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties with new credentials."""
        latest = self._latest.get(lambda _: self._renewed(properties))
        return with_credentials_of(properties, latest)

    def _renewed(self, properties: Mapping[str, str]) -> tuple[Mapping[str, str], float | None]:
        latest = self._from_endpoint(properties) or self._load(self._identifier).config
        return latest, end_of(latest)

    def _from_endpoint(self, properties: Mapping[str, str]) -> Mapping[str, str] | None:
        c = self._connection
        uri = c.session.uri
        endpoint = endpoint_of(properties, uri)
        if endpoint is not None:
            path = endpoint[len(uri) + 1 :]
        elif e.LOAD_CREDENTIALS in c.endpoints:
            path = c.paths.credentials(self._identifier)
        else:
            return None
        answer = self._sessions.of(self._identifier).ask("GET", path)
        if answer.status in (404, 405, 406, 501):
            # some servers name the endpoint, but send credentials only with the table
            return None
        credentials = c.require_success(answer).read(
            lambda content: vended_credentials(
                content, catalog=self._catalog, uri=uri, properties=c.properties
            )
        )
        if credentials is None:
            return None
        new_properties = {**properties, VENDED_CREDENTIALS: credentials}
        return None if prefix_at(self._location, new_properties) is None else new_properties


def endpoint_of(config: Mapping[str, str], uri: str) -> str | None:
    """Return the address where the server renews a table's credentials, if it is the server's own.

    >>> endpoint_of({"client.refresh-credentials-endpoint": "/v1/t/credentials"}, "https://h/api")
    'https://h/api/v1/t/credentials'
    >>> endpoint_of({"client.refresh-credentials-endpoint": "https://other/t"}, "https://h/api")
    """
    names = [f"{prefix}refresh-credentials-endpoint" for prefix in _PREFIXES]
    credential_configs = [dict(c) for _, c in vended_entries(config.get(VENDED_CREDENTIALS, "[]"))]
    addresses = (c[name] for c in (config, *credential_configs) for name in names if c.get(name))
    address = next(addresses, None)
    if address is None:
        return None
    if "://" not in address:
        address = f"{uri}/{address.lstrip('/')}"
    # the endpoint receives a token, so another server must not be used
    return address if address.startswith(f"{uri}/") and "/../" not in address else None


def _is_enabled(config: Mapping[str, str]) -> bool:
    return all(
        bool_property(config, f"{prefix}refresh-credentials-enabled", True) for prefix in _PREFIXES
    )
