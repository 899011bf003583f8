"""How the REST client authenticates: tokens fetched, renewed and exchanged, and other ways."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest

from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.changes.outcomes import Refused
from iceberg_pyspark.errors import (
    CatalogUnavailableError,
    IcebergError,
    InvalidRequestError,
    NotAuthorizedError,
    UnsupportedFeatureError,
)
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, TABLE, configured, error, table_reply

BASIC = {
    "rest.auth.type": "basic",
    "rest.auth.basic.username": "me",
    "rest.auth.basic.password": "my-password",
}
TOKENS = "/v1/oauth/tokens"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT = "urn:ietf:params:oauth:token-type:jwt"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class Tokens:
    """Replies that issue tokens 1, 2, ... and accept the tokens in `valid`, or all if None."""

    def __init__(self, **more: Any) -> None:
        self.more = more
        self.valid: set[str] | None = None
        self.number = 0
        self.forms: list[Mapping[str, str]] = []

    def __call__(self, request: Request) -> Reply:
        if request.path == TOKENS:
            self.number += 1
            self.forms.append({k: v[0] for k, v in parse_qs(request.body.decode()).items()})
            token = {"access_token": f"token-{self.number}", "token_type": "bearer"}
            return Reply(200, {**token, **self.more})
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.valid is not None and sent not in self.valid:
            return error(401, "NotAuthorizedException", f"not {sent}")
        return table_reply()


@contextmanager
def catalog_of(answer: Any, **properties: str) -> Iterator[tuple[RestCatalog, TestServer]]:
    with http_server(configured(answer)) as server:
        yield RestCatalog("rest", {"uri": server.uri, **properties}), server


def sent_with(server: TestServer) -> list[str | None]:
    return [r.headers.get("authorization") for r in server.requests if r.path != TOKENS]


def jwt(expires_at: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(expires_at)}).encode()).decode()
    return f"e30.{claims.rstrip('=')}.c2ln"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list of one number: the seconds that are added to the tokens' monotonic clock."""
    ahead, monotonic = [0.0], time.monotonic
    monkeypatch.setattr(
        "iceberg_pyspark.catalogs.rest.oauth2._now_s", lambda: monotonic() + ahead[0]
    )
    return ahead


def test_without_any_property_nothing_is_sent() -> None:
    with catalog_of(lambda _: table_reply()) as (catalog, server):
        catalog.load_table(EVENTS)
        assert sent_with(server) == [None, None]


def test_a_token_is_sent_as_it_is() -> None:
    with catalog_of(lambda _: table_reply(), token="abcdefgh") as (catalog, server):
        catalog.load_table(EVENTS)
        assert sent_with(server) == ["Bearer abcdefgh"] * 2


def test_a_user_and_password() -> None:
    login = {
        "rest.auth.type": "basic",
        "rest.auth.basic.username": "me",
        "rest.auth.basic.password": "p:w",
    }
    with catalog_of(lambda _: table_reply(), **login) as (catalog, server):
        catalog.load_table(EVENTS)
        expected = "Basic " + base64.b64encode(b"me:p:w").decode()
        assert sent_with(server) == [expected] * 2


@pytest.mark.parametrize("lifetime", [1000, "1000", 1000.0])
def test_client_credentials_become_a_token_that_is_used_until_it_expires(
    clock: list[float], lifetime: object
) -> None:
    tokens = Tokens(expires_in=lifetime)
    properties = {"credential": "me:sec:ret", "scope": "a b", "audience": "lake"}
    with catalog_of(tokens, **properties) as (catalog, server):
        catalog.load_table(EVENTS)
        catalog.load_table(EVENTS)
        clock[0] = 890
        catalog.load_table(EVENTS)
        assert set(sent_with(server)) == {"Bearer token-1"}
        clock[0] = 910
        catalog.load_table(EVENTS)
        assert sent_with(server)[-1] == "Bearer token-2"
        assert tokens.number == 2
    form = tokens.forms[0]
    assert form == {
        "grant_type": "client_credentials",
        "client_id": "me",
        "client_secret": "sec:ret",
        "scope": "a b",
        "audience": "lake",
    }


def test_a_credential_without_a_user_is_a_secret_alone() -> None:
    tokens = Tokens()
    with catalog_of(tokens, credential="only-secret") as (catalog, _):
        catalog.load_table(EVENTS)
    assert tokens.forms[0]["client_secret"] == "only-secret"
    assert "client_id" not in tokens.forms[0]
    assert tokens.forms[0]["scope"] == "catalog"


def test_a_token_that_the_server_refuses_is_replaced_once() -> None:
    tokens = Tokens()
    with catalog_of(tokens, credential="me:secret") as (catalog, server):
        catalog.load_table(EVENTS)
        tokens.valid = {f"token-{tokens.number + 1}"}
        catalog.load_table(EVENTS)
        tokens.valid = set()
        with pytest.raises(NotAuthorizedError):
            catalog.load_table(EVENTS)
        assert len(sent_with(server)) == 1 + 1 + 2 + 2


def test_a_token_of_the_user_is_exchanged_before_it_expires(clock: list[float]) -> None:
    tokens = Tokens(expires_in=3600)
    first = jwt(time.time() + 1000)
    with catalog_of(tokens, token=first) as (catalog, server):
        catalog.load_table(EVENTS)
        assert tokens.number == 0
        clock[0] = 950
        catalog.load_table(EVENTS)
        assert sent_with(server)[-1] == "Bearer token-1"
    assert tokens.forms[0] == {
        "grant_type": EXCHANGE,
        "subject_token": first,
        "subject_token_type": ACCESS_TOKEN,
        "scope": "catalog",
    }


def test_exchange_and_renewal_can_be_turned_off(clock: list[float]) -> None:
    for off in ("token-exchange-enabled", "token-refresh-enabled"):
        clock[0] = 0
        tokens = Tokens()
        token = jwt(time.time() + 100)
        with catalog_of(tokens, token=token, **{off: "false"}) as (catalog, server):
            catalog.load_table(EVENTS)
            clock[0] = 95
            catalog.load_table(EVENTS)
            assert tokens.number == 0
            assert sent_with(server)[-1] == f"Bearer {token}"


def test_a_subject_is_exchanged_for_a_token_with_the_catalogs_as_actor() -> None:
    tokens = Tokens()
    with catalog_of(tokens, token="of-the-catalog", **{JWT: "of-the-user"}) as (catalog, server):
        catalog.load_table(EVENTS)
        assert sent_with(server)[-1] == f"Bearer token-{tokens.number}"
        requests = next(r for r in server.requests if r.path == TOKENS)
    assert requests.headers["authorization"] == "Bearer of-the-catalog"
    assert tokens.forms[0] == {
        "grant_type": EXCHANGE,
        "subject_token": "of-the-user",
        "subject_token_type": JWT,
        "actor_token": "of-the-catalog",
        "actor_token_type": ACCESS_TOKEN,
        "scope": "catalog",
    }


def committed_with(catalog: RestCatalog, server: TestServer) -> str | None:
    catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),))
    sent = [r for r in server.requests if (r.method, r.path) == ("POST", TABLE)]
    return sent[-1].headers.get("authorization")


def test_a_table_with_a_token_of_its_own_is_committed_with_it() -> None:
    options = {"token": "of-the-table"}

    def answer(request: Request) -> Reply:
        if request.method == "DELETE":
            return Reply(204)
        return table_reply(more={"config": options} if request.method == "GET" else None)

    for own in ({}, {"token": "of-the-catalog"}):
        options["token"] = "of-the-table"
        catalogs = own.get("token")
        with catalog_of(answer, **own) as (catalog, server):
            loaded = catalog.load_table(EVENTS)
            assert "of-the-table" not in repr(loaded) + repr(dict(loaded.config))
            assert committed_with(catalog, server) == "Bearer of-the-table"
            # A commit's response does not change the token; a load may replace or remove it.
            assert committed_with(catalog, server) == "Bearer of-the-table"
            options["token"] = "the-second"
            catalog.load_table(EVENTS)
            assert sent_with(server)[-1] == (catalogs and f"Bearer {catalogs}")
            assert committed_with(catalog, server) == "Bearer the-second"
            del options["token"]
            catalog.load_table(EVENTS)
            assert committed_with(catalog, server) == (catalogs and f"Bearer {catalogs}")
    with catalog_of(answer, **BASIC) as (catalog, server):
        options["token"] = "of-the-table"
        catalog.load_table(EVENTS)
        assert (committed_with(catalog, server) or "").startswith("Basic ")


def test_a_table_with_a_token_to_exchange_has_the_catalogs_as_actor() -> None:
    tokens = Tokens()

    def answer(request: Request) -> Reply:
        reply = tokens(request)
        config = {"config": {JWT: "of-the-table"}}
        return reply if request.path == TOKENS else table_reply(more=config)

    with catalog_of(answer, credential="me:my-secret") as (catalog, server):
        catalog.load_table(EVENTS)
        assert committed_with(catalog, server) == "Bearer token-2"
        assert committed_with(catalog, server) == "Bearer token-2"
    first, second = tokens.forms
    assert first["grant_type"] == "client_credentials"
    assert second == {
        "grant_type": EXCHANGE,
        "subject_token": "of-the-table",
        "subject_token_type": JWT,
        "actor_token": "token-1",
        "actor_token_type": ACCESS_TOKEN,
        "scope": "catalog",
    }


def test_a_tables_token_that_a_server_repeats_is_not_shown() -> None:
    def answer(request: Request) -> Reply:
        if request.method == "POST":
            return error(400, "ValidationException", "wrong: of-the-table")
        return table_reply(more={"config": {"token": "of-the-table"}})

    with catalog_of(answer) as (catalog, _):
        catalog.load_table(EVENTS)
        outcome = catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),))
        assert isinstance(outcome, Refused)
        assert "of-the-table" not in str(outcome.error)
        assert "wrong: ***" in str(outcome.error)


def test_tokens_come_from_the_server_that_the_user_names() -> None:
    tokens = Tokens()
    with http_server(tokens) as login:
        properties = {"oauth2-server-uri": f"{login.uri}{TOKENS}", "credential": "me:secret"}
        with catalog_of(tokens, **properties) as (catalog, server):
            catalog.load_table(EVENTS)
            assert TOKENS not in server.paths("POST")
        assert set(login.paths("POST")) == {TOKENS}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            Reply(401, {"error": "invalid_client", "error_description": "hunter22"}),
            "invalid_client",
        ),
        (Reply(503, b"away with hunter22"), "503"),
        (Reply(200, {"token": "hunter22"}), "no access_token"),
        (Reply(200, b"<hunter22>"), "no access_token"),
        (Reply(302, None, {"Location": "http://127.0.0.1:1/"}), "302"),
    ],
)
def test_error_of_a_failed_login_hides_the_secret(reply: Reply, expected: str) -> None:
    with (
        catalog_of(lambda _: reply, credential="me:hunter22") as (catalog, _),
        pytest.raises((NotAuthorizedError, CatalogUnavailableError), match=expected) as raised,
    ):
        catalog.load_table(EVENTS)
    error: BaseException | None = raised.value
    while error is not None:
        assert "hunter22" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_secrets_that_a_server_repeats_are_not_shown() -> None:
    repeated = error(400, "BadRequestException", "your token abcdefgh is no good")
    with (
        catalog_of(lambda _: repeated, token="abcdefgh") as (catalog, _),
        pytest.raises(IcebergError) as raised,
    ):
        catalog.load_table(EVENTS)
    assert "abcdefgh" not in str(raised.value)
    assert "abcdefgh" not in repr(catalog)
    assert "abcdefgh" not in repr(catalog.properties)


def test_an_authentication_of_the_users_own() -> None:
    with http_server(configured(lambda _: table_reply())) as server:
        catalog = RestCatalog("rest", {"uri": server.uri}, authentication=Own())
        catalog.load_table(EVENTS)
        copied = pickle.loads(pickle.dumps(catalog))
        copied.load_table(EVENTS)
        assert {r.headers["x-own"] for r in server.requests} == {"1"}


class Own:
    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        return {"X-Own": "1"}

    def renew(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("properties", "error_type", "message"),
    [
        ({"rest.auth.type": "my.Manager"}, UnsupportedFeatureError, "never loaded"),
        ({"rest.auth.type": "basic"}, InvalidRequestError, "username"),
        ({"rest.auth.type": "oauth2"}, InvalidRequestError, "credential"),
        ({"ssl.client.cert": "a"}, InvalidRequestError, "ssl.client.key"),
        ({"ssl.cabundle": "/nowhere.pem"}, InvalidRequestError, "ssl.cabundle"),
        ({"rest.client.proxy.hostname": "a"}, InvalidRequestError, "port"),
        ({"rest.client.max-retries": "-1"}, InvalidRequestError, "max-retries"),
    ],
)
def test_properties_that_make_no_sense_are_refused_by_name(
    properties: dict[str, str], error_type: type[IcebergError], message: str
) -> None:
    catalog = RestCatalog("rest", {"uri": "http://127.0.0.1:1", **properties})
    with pytest.raises(error_type, match=message):
        catalog.load_table(EVENTS)


@pytest.mark.parametrize("token", ["hunter22\u00fc", "hunter22\n", "hunter22\r\nX-Other: 1"])
def test_token_invalid_in_a_header_is_refused_without_showing_it(token: str) -> None:
    with (
        catalog_of(lambda _: table_reply(), token=token) as (catalog, server),
        pytest.raises(IcebergError) as raised,
    ):
        catalog.load_table(EVENTS)
    assert "hunter22" not in "".join(traceback.format_exception(raised.value))
    assert server.requests == []


@pytest.mark.parametrize("uri", ["", "ftp://host", "http://", "http://me:hunter22@host", "host:80"])
def test_addresses_that_are_none_are_refused(uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="uri") as raised:
        RestCatalog("rest", {"uri": uri}).load_table(EVENTS)
    assert "hunter22" not in str(raised.value)


def test_nothing_that_is_logged_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "iceberg_pyspark")
    tokens = Tokens()
    with catalog_of(tokens, credential="me:hunter22", **{"header.X-Api-Key": "opensesame"}) as (
        catalog,
        _,
    ):
        catalog.load_table(EVENTS)
        tokens.valid = set()
        with pytest.raises(NotAuthorizedError):
            catalog.load_table(EVENTS)
    for secret in ("hunter22", "token-1", "token-2", "opensesame"):
        assert secret not in caplog.text
