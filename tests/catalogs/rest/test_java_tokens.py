"""Tokens that Java's fixture issues, behind a relay that refuses tokens which it has not issued.

A token lives 2 seconds on a clock that the test sets, so that it expires within a job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx
import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.errors import NotAuthorizedError
from tests.services.server import Server
from tests.support.catalog_contract import create
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import error
from tests.support.rest_front import forwarded

pytestmark = pytest.mark.nightly

TOKENS = "/v1/oauth/tokens"
LIFETIME_S = 2.0
JWT = "urn:ietf:params:oauth:token-type:jwt"
_HEADERS = ("authorization", "content-type", "accept")


@dataclass
class Relay:
    """The relay; `now_s` is the time of its clock, and each request but a login takes `step_s`."""

    behind: str
    uri: str = ""
    now_s: float = 0.0
    step_s: float = 0.0
    shows_expiry: bool = True
    ends: dict[str, float] = field(default_factory=dict)
    """When each issued token expires."""

    used: list[str] = field(default_factory=list)
    refused: int = 0
    forms: list[dict[str, str]] = field(default_factory=list)
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    def __call__(self, request: Request) -> Reply:
        if request.path == TOKENS:
            return self._issue(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.ends.get(token, -1.0) <= self.now_s:
            self.refused += 1
            return error(401, "NotAuthorizedException", "not issued, or expired")
        self.used.append(token)
        reply = forwarded(self.client, self.behind, request, _HEADERS, lambda _: None)
        self.now_s += self.step_s
        return reply

    def _issue(self, request: Request) -> Reply:
        """Let Java issue a token, which gets a number: Java's own are the same at each login."""
        self.forms.append({k: v[0] for k, v in parse_qs(request.body.decode()).items()})
        reply = forwarded(self.client, self.behind, request, _HEADERS, lambda _: None)
        if reply.status != 200:
            return reply
        content: dict[str, Any] = json.loads(reply.content)
        content["access_token"] += f"/{len(self.ends) + 1}"
        if self.shows_expiry:
            content["expires_in"] = int(LIFETIME_S)
        self.ends[content["access_token"]] = self.now_s + LIFETIME_S
        return Reply(200, content)


@pytest.fixture
def relay(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    new_relay = Relay(server.endpoint)
    # renewals of the client follow the relay's clock
    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.oauth2._now_s", lambda: new_relay.now_s)
    with http_server(new_relay) as front:
        new_relay.uri = front.uri
        yield new_relay
    new_relay.client.close()


@pytest.fixture(scope="module")
def tables(server: Server) -> list[TableIdentifier]:
    """Create a namespace with four tables."""
    catalog = RestCatalog("rest", {"uri": server.endpoint})
    catalog.create_namespace(("tokens",))
    identifiers = [TableIdentifier(namespace=("tokens",), name=f"t{i}") for i in range(4)]
    for identifier in identifiers:
        create(catalog, identifier)
    return identifiers


def job(catalog: RestCatalog, tables: list[TableIdentifier]) -> None:
    """List the tables in pages of one, and change one of them."""
    assert catalog.list_tables(("tokens",)) == tables
    catalog.commit_table(tables[0], (), (SetProperties({"team": "blue"}),)).result()
    assert catalog.load_table(tables[0]).metadata.properties["team"] == "blue"


@pytest.mark.parametrize("shows_expiry", [True, False])
def test_a_token_that_expires_between_pages_is_replaced(
    relay: Relay, tables: list[TableIdentifier], shows_expiry: bool
) -> None:
    relay.step_s, relay.shows_expiry = 0.7, shows_expiry
    properties = {"uri": relay.uri, "credential": "me:my-secret", "rest-page-size": "1"}
    job(RestCatalog("rest", properties), tables)
    assert len(relay.ends) > 2
    # an expiry that the server does not send is learned from its refusal
    assert (relay.refused > 0) == (not shows_expiry)
    assert list(dict.fromkeys(relay.used)) == list(relay.ends)
    assert all(t.startswith("client-credentials-token:sub=me/") for t in relay.ends)


def test_an_exchanged_token_is_exchanged_again(relay: Relay, tables: list[TableIdentifier]) -> None:
    relay.step_s = 0.7
    relay.ends["of-the-user"] = float("inf")
    properties = {"uri": relay.uri, "token": "of-the-user", JWT: "subject", "rest-page-size": "1"}
    job(RestCatalog("rest", properties), tables)
    assert {(f["subject_token"], f["actor_token"]) for f in relay.forms} == {
        ("subject", "of-the-user")
    }
    assert len(relay.forms) > 2
    assert relay.refused == 0
    assert all(t.startswith("token-exchange-token:") for t in relay.used)


def test_a_token_that_was_not_issued_is_refused(relay: Relay) -> None:
    with pytest.raises(NotAuthorizedError, match="not issued"):
        RestCatalog("rest", {"uri": relay.uri, "token": "invented"}).list_namespaces()
    assert (relay.used, relay.forms) == ([], [])


def test_java_server_refuses_a_wrong_grant_type(relay: Relay) -> None:
    form = urlencode({"grant_type": "password", "client_secret": "x"})
    answer = httpx.post(
        f"{relay.uri}{TOKENS}",
        content=form,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code >= 400
    assert relay.ends == {}
