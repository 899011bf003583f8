"""The way to a REST server: its certificate and the client's, a proxy with a login, timeouts."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import CatalogUnavailableError
from tests.support.http_server import LOOPBACK, Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, TABLE, configured, table_reply
from tests.support.tls import Certificates, new_certificates

NOWHERE = "lake.invalid"
"""A host that does not exist: only a proxy can pass a request on."""
TOKENS = "/v1/oauth/tokens"
LOGIN = "Basic " + base64.b64encode(b"p@xy:s:ret/").decode()


def answer(request: Request) -> Reply:
    if request.path == TOKENS:
        return Reply(200, {"access_token": "issued", "token_type": "bearer"})
    return table_reply()


def load(properties: Mapping[str, str]) -> None:
    """Load a table, and close the connections, which would otherwise be left to the collector."""
    catalog = RestCatalog("lake", properties)
    try:
        catalog.load_table(EVENTS)
    finally:
        catalog._connection._client.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return new_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def client_certificate(certificates: Certificates) -> dict[str, str]:
    certificate, key = certificates.client
    return {"ssl.client.cert": str(certificate), "ssl.client.key": str(key)}


def proxy_at(proxy: TestServer) -> dict[str, str]:
    prefix = "rest.client.proxy"
    return {
        f"{prefix}.hostname": LOOPBACK,
        f"{prefix}.port": proxy.uri.rpartition(":")[2],
        f"{prefix}.username": "p@xy",
        f"{prefix}.password": "s:ret/",
    }


def test_the_server_needs_a_certificate_that_the_bundle_knows(
    certificates: Certificates,
) -> None:
    with http_server(configured(answer), tls=certificates.of_server()) as server:
        trusted = {"uri": server.uri, "ssl.cabundle": str(certificates.authority)}
        load({**trusted, "credential": "me:secret"})
        assert server.paths("POST") == [TOKENS]
        assert server.paths("GET") == ["/v1/config", TABLE]
        server.requests.clear()
        with pytest.raises(CatalogUnavailableError, match=r"set ssl\.cabundle"):
            load({"uri": server.uri})
        with pytest.raises(CatalogUnavailableError, match=r"OAuth2 server.*set ssl\.cabundle"):
            load({"uri": server.uri, "credential": "me:secret"})
        assert server.requests == []


def test_an_untrusted_certificate_is_not_asked_for_again(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.rest_session._sleep", waits.append)
    with (
        http_server(configured(answer), tls=certificates.of_server()) as server,
        pytest.raises(CatalogUnavailableError, match="certificate"),
    ):
        load({"uri": server.uri})
    assert waits == []


def test_the_server_may_ask_for_the_clients_certificate(certificates: Certificates) -> None:
    context = certificates.of_server(asks_clients=True)
    with http_server(configured(answer), tls=context) as server:
        properties = {"uri": server.uri, "ssl.cabundle": str(certificates.authority)}
        properties["rest.client.max-retries"] = "0"
        with pytest.raises(CatalogUnavailableError):
            load(properties)
        assert server.requests == []
        own = {**properties, **client_certificate(certificates), "credential": "me:secret"}
        load(own)
        assert server.paths("POST") == [TOKENS]


def test_a_proxy_gets_its_login_and_reaches_the_server() -> None:
    with http_server(configured(answer)) as proxy:
        properties = {"uri": f"http://{NOWHERE}/", "credential": "me:secret", **proxy_at(proxy)}
        load(properties)
        assert [r.path for r in proxy.requests] == [TOKENS, "/v1/config", TABLE]
        assert {r.headers["host"] for r in proxy.requests} == {NOWHERE}
        assert {r.headers["proxy-authorization"] for r in proxy.requests} == {LOGIN}
        assert proxy.requests[-1].headers["authorization"] == "Bearer issued"


def test_a_proxy_between_the_client_and_tls_sees_no_credentials(
    certificates: Certificates,
) -> None:
    context = certificates.of_server(asks_clients=True)
    with http_server(configured(answer), tls=context) as server:
        port = server.uri.rpartition(":")[2]
        with http_server(lambda _: Reply(200), tunnel=int(port)) as proxy:
            # the certificate is for the address, so the proxy's destination is named by it
            properties = {
                "uri": f"https://{LOOPBACK}:1",
                "credential": "me:secret",
                "ssl.cabundle": str(certificates.authority),
                **client_certificate(certificates),
                **proxy_at(proxy),
            }
            load(properties)
        assert [r.path for r in server.requests] == [TOKENS, "/v1/config", TABLE]
        assert all("proxy-authorization" not in r.headers for r in server.requests)
        assert {(r.method, r.path) for r in proxy.requests} == {("CONNECT", f"{LOOPBACK}:1")}
        assert {r.headers["proxy-authorization"] for r in proxy.requests} == {LOGIN}
        assert all("authorization" not in r.headers for r in proxy.requests)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_its_login_is_an_error_without_the_login(scheme: str) -> None:
    with http_server(lambda _: Reply(407)) as proxy:
        properties = {"uri": f"{scheme}://{NOWHERE}", **proxy_at(proxy)}
        with pytest.raises(CatalogUnavailableError, match=r"407.*proxy\.username") as raised:
            load(properties)
        assert len(proxy.requests) == 1
    assert "s:ret" not in str(raised.value)


@contextmanager
def full_queue() -> Iterator[str]:
    """Listen without accepting, with a full queue: the next connection waits, at most 5 seconds.

    When the wait ends, the connection is refused, which is another error than a timeout.
    """
    listener = socket.socket()
    listener.bind((LOOPBACK, 0))
    listener.listen(0)
    waiting = [socket.socket() for _ in range(3)]
    for client in waiting:
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
    timer = threading.Timer(5, listener.close)
    timer.start()
    try:
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    finally:
        timer.cancel()
        for open_socket in (*waiting, listener):
            open_socket.close()


def test_a_connection_that_is_not_made_in_time() -> None:
    with full_queue() as uri:
        properties = {"uri": uri, "rest.client.max-retries": "0"}
        properties["rest.client.connection-timeout-ms"] = "100"
        with pytest.raises(CatalogUnavailableError, match="ConnectTimeout"):
            load(properties)


@pytest.mark.parametrize("asked", ["server", "login"])
def test_an_answer_that_does_not_come_in_time(asked: str) -> None:
    over = threading.Event()

    def late(request: Request) -> Reply:
        if (request.path == TOKENS) == (asked == "login"):
            over.wait(5)
        return answer(request)

    with http_server(late) as server:
        properties = {"uri": server.uri, "credential": "me:secret", "rest.client.max-retries": "0"}
        properties["rest.client.socket-timeout-ms"] = "100"
        with pytest.raises(CatalogUnavailableError, match="ReadTimeout"):
            load(properties)
        over.set()
