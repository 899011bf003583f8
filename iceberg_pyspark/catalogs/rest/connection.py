"""A catalog's connection to its server: the merged configuration, requests, and tokens of tables.

Open API specification of the REST catalog, `GET /v1/config`: the catalog's properties replace the
server's defaults, and the server's overrides replace both; the answer also lists the endpoints.
`LoadTableResult`: `token` of a table's `config` is for the requests of this table. Loads by name
are requests of the catalog.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import urljoin

import httpx

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.catalog_properties import CatalogProperties
from iceberg_pyspark.catalogs.rest.answers import Answer, config_of, error_of
from iceberg_pyspark.catalogs.rest.authentication import Authentication, NoAuthentication
from iceberg_pyspark.catalogs.rest.authentication_settings import (
    TABLE_TOKENS,
    authentication_of,
    table_authentication_of,
)
from iceberg_pyspark.catalogs.rest.commits import new_idempotency_key
from iceberg_pyspark.catalogs.rest.endpoints import (
    DEFAULT_SEPARATOR,
    Endpoints,
    Paths,
    offered_endpoints,
)
from iceberg_pyspark.catalogs.rest.rest_session import (
    HttpSettings,
    LostAnswer,
    Session,
    http_client,
    http_settings,
)
from iceberg_pyspark.catalogs.rest.server_properties import taken_properties
from iceberg_pyspark.errors import (
    CatalogError,
    InvalidRequestError,
    NoSuchNamespaceError,
    NotFoundError,
)
from iceberg_pyspark.redaction import secret_values
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.table_properties import bool_property, int_property
from iceberg_pyspark.storage.credentials.server_endpoints import (
    SERVER_PROPERTIES,
    server_property_names,
)
from iceberg_pyspark.storage.lru_map import LruMap

_WAREHOUSE = "warehouse"
_PAGE_SIZE = "rest-page-size"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configuration:
    """The answer to `GET /v1/config`; `endpoints` is None if the server sent none."""

    defaults: Mapping[str, str] = field(repr=False)
    overrides: Mapping[str, str] = field(repr=False)
    endpoints: tuple[str, ...] | None
    knows_repetitions: bool


def _configuration_from_json(content: JsonObject) -> _Configuration:
    return _Configuration(
        defaults=config_of(content, "defaults"),
        overrides=config_of(content, "overrides"),
        endpoints=content.strings("endpoints") if content.has("endpoints") else None,
        knows_repetitions=content.has("idempotency-key-lifetime"),
    )


@dataclass(frozen=True, slots=True)
class _Page:
    items: Sequence[Any]
    following: str


def _page_from_json(content: JsonObject, key: str) -> _Page:
    items = content.array(key) if content.has(key) else ()
    return _Page(items, content.optional_string("next-page-token") or "")


class Connection:
    """A connection to one server with one configuration; the first use sends the first request.

    The server's properties cannot change how the server is reached or how the client authenticates.
    """

    def __init__(
        self, catalog: str, properties: Mapping[str, str], authentication: Authentication | None
    ) -> None:
        self._catalog = catalog
        self._own_properties = properties
        self._given_authentication = authentication

    @cached_property
    def _settings(self) -> HttpSettings:
        return http_settings(self._catalog, self._own_properties)

    @cached_property
    def _client(self) -> httpx.Client:
        return http_client(self._catalog, self._settings)

    @cached_property
    def _authentication(self) -> Authentication:
        return self._given_authentication or authentication_of(
            self._catalog, self._own_properties, self._settings, self._client
        )

    @cached_property
    def _configuration(self) -> _Configuration:
        warehouse = self._own_properties.get(_WAREHOUSE)
        query = {_WAREHOUSE: warehouse} if warehouse else None
        answer = self._session(self._settings).ask("GET", "v1/config", query=query)
        return self.require_success(answer).read(_configuration_from_json)

    @cached_property
    def properties(self) -> CatalogProperties:
        """The catalog's properties merged with the server's."""
        own, server_configuration = self._own_properties, self._configuration
        # a default that the user replaces is used nowhere
        unset = {k: v for k, v in server_configuration.defaults.items() if k not in own}
        defaults, overrides = (
            taken_properties(self._catalog, self._settings.uri, properties, own)
            for properties in (unset, server_configuration.overrides)
        )
        servers = server_property_names({**defaults, **overrides}, own)
        return CatalogProperties({**defaults, **own, **overrides, SERVER_PROPERTIES: servers})

    @cached_property
    def paths(self) -> Paths:
        """The URL paths of the server's resources."""
        separator = self.properties.get("namespace-separator", DEFAULT_SEPARATOR)
        if not separator:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': the property 'namespace-separator' is empty, so the "
                "levels of a namespace could not be told apart; set it to the server's separator, "
                f"or leave it out for {DEFAULT_SEPARATOR}"
            )
        return Paths(prefix=self.properties.get("prefix", ""), separator=separator)

    @cached_property
    def endpoints(self) -> Endpoints:
        """The endpoints that the server supports."""
        return offered_endpoints(
            self._configuration.endpoints,
            views=bool_property(self.properties, "view-endpoints-supported", False),
        )

    @cached_property
    def session(self) -> Session:
        """The session that sends the catalog's requests."""
        return self._session(self._server_settings)

    @property
    def _server_settings(self) -> HttpSettings:
        # an address that the server sends may be relative
        uri = urljoin(f"{self._settings.uri}/", self.properties["uri"])
        return replace(self._settings, uri=uri.rstrip("/"))

    @property
    def is_anonymous(self) -> bool:
        """Whether the requests carry no authentication."""
        return isinstance(self._authentication, NoAuthentication)

    def table_session(self, tokens: Mapping[str, str]) -> Session:
        """Return the session for a table's requests with the tokens that the server sent."""
        own = table_authentication_of(
            self._catalog,
            self._own_properties,
            tokens,
            self._authentication,
            self._server_settings,
            self._client,
        )
        return self.session if own is None else self._session(self._server_settings, own, tokens)

    def _session(
        self,
        settings: HttpSettings,
        authentication: Authentication | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Session:
        return Session(
            self._catalog,
            settings,
            self._client,
            authentication or self._authentication,
            secrets=secret_values({**self._own_properties, **(secrets or {})}),
        )

    def pages(
        self, path: str, key: str, query: Mapping[str, str], missing: type[NotFoundError]
    ) -> Iterator[Any]:
        """Yield the items of a list from all its pages."""
        token, used_tokens = "", set[str]()
        page_size = int_property(self.properties, _PAGE_SIZE, 0)
        while True:
            sizes = {"pageSize": str(page_size)} if page_size > 0 else {}
            answer = self.session.ask("GET", path, query={**query, **sizes, "pageToken": token})
            page = self.require_success(answer, missing).read(lambda o: _page_from_json(o, key))
            yield from page.items
            token = page.following
            if not token:
                return
            if token in used_tokens:
                raise CatalogError(
                    f"catalog '{self._catalog}': {answer.request} names the same next page twice; "
                    "its list would never end"
                )
            used_tokens.add(token)

    def identifiers(self, path: str) -> list[TableIdentifier]:
        """Return the names in a list of tables or views, sorted; raise `NoSuchNamespaceError`."""
        items = self.pages(path, "identifiers", {}, NoSuchNamespaceError)
        entries = [JsonObject(item, "identifiers") for item in items]
        return sorted(
            (
                TableIdentifier(namespace=o.strings("namespace"), name=o.string("name"))
                for o in entries
            ),
            key=lambda identifier: identifier.name,
        )

    def exists(self, path: str, endpoint: str) -> bool:
        """Return whether a resource exists, by a HEAD request if the server offers `endpoint`."""
        method = "HEAD" if endpoint in self.endpoints else "GET"
        answer = self.session.ask(method, path)
        if answer.status == 404:
            return False
        self.require_success(answer)
        return True

    def change(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a change and return the answer; raise `CatalogUnavailableError` if none arrived."""
        answer = self.send(path, body, headers)
        if isinstance(answer, LostAnswer):
            raise answer.error
        return answer

    def send(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        session: Session | None = None,
    ) -> Answer | LostAnswer:
        """Send a change and return the answer, or `LostAnswer` if no answer arrived.

        The request is retried only if the server recognizes repeated requests. `session` is the
        session of the changed table, if the table has its own.
        """
        return (session or self.session).try_to_ask(
            "POST",
            path,
            body=body,
            headers={**(headers or {}), **self._repetition_key()},
            is_repeatable=self._configuration.knows_repetitions,
        )

    def send_deletion(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> Answer | LostAnswer:
        """Send a deletion and return the answer or `LostAnswer`; it is retried as in `send`."""
        return self.session.try_to_ask(
            "DELETE",
            path,
            query=query,
            headers=self._repetition_key(),
            is_repeatable=self._configuration.knows_repetitions,
        )

    def _repetition_key(self) -> dict[str, str]:
        knows = self._configuration.knows_repetitions
        return {"Idempotency-Key": new_idempotency_key()} if knows else {}

    def require_success(
        self, answer: Answer, missing: type[NotFoundError] = NotFoundError
    ) -> Answer:
        """Return the answer if it is a success; otherwise raise the error that the answer means."""
        if not answer.is_success:
            raise error_of(answer, self._catalog, missing=missing)
        return answer


_MOST = 1000


def table_tokens(answer: JsonObject) -> dict[str, str]:
    """Return the tokens in an answer that contains a table; they are not storage properties."""
    return {k: v for k, v in config_of(answer, "config").items() if k in TABLE_TOKENS}


class TableSessions:
    """The tables' sessions that differ from the catalog's session; thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._sessions: LruMap[TableIdentifier, tuple[Mapping[str, str], Session]] = LruMap(_MOST)

    def of(self, identifier: TableIdentifier) -> Session:
        """Return the session for a table's requests."""
        tokens_and_session = self._sessions.get(identifier)
        return self._connection.session if tokens_and_session is None else tokens_and_session[1]

    def token(self, identifier: TableIdentifier) -> str | None:
        """Return the token that the server sent for the table, or None if there is none."""
        tokens_and_session = self._sessions.get(identifier)
        return None if tokens_and_session is None else tokens_and_session[0].get("token")

    def set_tokens(self, identifier: TableIdentifier, tokens: Mapping[str, str]) -> None:
        """Set the tokens of a loaded table; keep the session if its tokens are the same."""
        with self._lock:
            tokens_and_session = self._sessions.get(identifier)
            if tokens_and_session is not None and tokens_and_session[0] == tokens:
                return
            self._sessions.pop(identifier)
            session = self._connection.table_session(tokens) if tokens else None
            if session is not None and session is not self._connection.session:
                self._sessions.put(identifier, (tokens, session))

    def forget(self, identifier: TableIdentifier) -> None:
        """Drop the table's own session; later requests use the catalog's session."""
        with self._lock:
            self._sessions.pop(identifier)
