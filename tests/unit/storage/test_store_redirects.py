"""Redirects of an object store's server: no other host gets a request, and the error says why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage import store_properties
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.objects.redirects import without_redirects
from tests.support.http_server import Reply, RequestHandler, TestServer, http_server
from tests.support.object_stores import SECRET, STORES, StoreAt, s3_store
from tests.support.s3_double import access_key

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
DATE = "Mon, 23 Nov 2026 09:00:00 GMT"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies, and no retries, whose pauses would only cost time here."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(store_properties, "_RETRIES", 0)


@pytest.fixture
def serve() -> Iterator[Callable[[RequestHandler], TestServer]]:
    with ExitStack() as servers:
        yield lambda answer: servers.enter_context(http_server(answer))


def at_localhost(server: TestServer) -> str:
    """Return a server's address with another host name than `LOOPBACK`."""
    return server.uri.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_host_gets_no_request(
    serve: Callable[[RequestHandler], TestServer],
    store: StoreAt,
    scheme: str,
) -> None:
    other = serve(lambda _: Reply(200, b"other bytes", {"ETag": '"x"', "Last-Modified": DATE}))
    target = other.uri.replace("http", scheme)
    server = serve(lambda request: Reply(307, b"", {"Location": f"{target}{request.path}"}))
    location, properties = store(at_localhost(server))
    io = ObjectStoreFileIO(properties)
    for action in (
        lambda: io.read_bytes(location),
        lambda: io.read_range(location, 0, 5),
        lambda: io.open_input(location),
        lambda: io.size(location),
        lambda: io.write_bytes(location, b"our bytes"),
        lambda: list(io.list_files(location)),
        lambda: io.delete(location),
    ):
        requests_before = len(server.requests)
        with pytest.raises(StorageError, match=r"redirects are not followed.*s3\.region"):
            action()
        assert len(server.requests) > requests_before
    assert other.requests == []


@pytest.mark.parametrize("store", STORES)
def test_a_redirect_is_refused_without_retries(
    serve: Callable[[RequestHandler], TestServer], monkeypatch: pytest.MonkeyPatch, store: StoreAt
) -> None:
    monkeypatch.setattr(store_properties, "_RETRIES", 2)
    server = serve(lambda _: Reply(307, b"", {"Location": "https://other.example/"}))
    location, properties = store(at_localhost(server))
    io = ObjectStoreFileIO(properties)
    for action in (
        lambda: io.read_bytes(location),
        lambda: io.open_input(location),
        lambda: io.size(location),
        lambda: io.write_bytes(location, b"our bytes"),
        lambda: io.list_folder(location),
        lambda: io.delete(location),
    ):
        requests_before = len(server.requests)
        with pytest.raises(StorageError, match="redirects are not followed"):
            action()
        assert len(server.requests) == requests_before + 1


@pytest.mark.parametrize("store", STORES)
def test_the_endpoint_itself_is_reached(
    serve: Callable[[RequestHandler], TestServer],
    store: StoreAt,
) -> None:
    server = serve(lambda _: Reply(200, b"bytes", {"ETag": '"x"', "Last-Modified": DATE}))
    for uri in (server.uri, at_localhost(server)):
        location, properties = store(uri)
        assert ObjectStoreFileIO(properties).read_bytes(location) == b"bytes"


def test_a_bucket_of_another_region_names_the_setting(
    serve: Callable[[RequestHandler], TestServer],
) -> None:
    """AWS answers 301 without an address to move to."""
    body = b"<Error><Code>PermanentRedirect</Code></Error>"
    location, properties = s3_store(serve(lambda _: Reply(301, body)).uri)
    with pytest.raises(StorageError, match=r"redirects are not followed.*s3\.region"):
        ObjectStoreFileIO(properties).read_bytes(location)


def options(endpoint: str | None, kind: str = "s3", **more: Any) -> dict[str, Any]:
    arguments = {"region": None, "environment_credentials": False, **more}
    return without_redirects(kind, endpoint, {"timeout": 1}, **arguments)


def test_only_the_host_of_the_endpoint_is_reachable() -> None:
    assert options("https://S3.example.com:9000/x")["proxy_excludes"] == "s3.example.com"
    assert options("http://[::1]:9000")["proxy_excludes"] == "::1"
    assert options("http://bücher.example")["proxy_excludes"] == "xn--bcher-kva.example"


def test_the_clouds_own_address_needs_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert options(None) == {"timeout": 1}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://of.environment")
    assert options(None)["proxy_excludes"] == "of.environment"
    assert options("https://h")["proxy_excludes"] == "h"


def test_hosts_of_the_environments_credentials_are_reachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://pod.example:80/x")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "https://login.example")
    monkeypatch.setenv("GCE_METADATA_HOST", "metadata.example:80")

    def hosts(kind: str) -> list[str]:
        more = {"region": "eu-1", "environment_credentials": True}
        return str(options("https://h", kind, **more)["proxy_excludes"]).split(",")

    assert {"h", "sts.eu-1.amazonaws.com", "169.254.169.254", "pod.example"} <= set(hosts("s3"))
    assert {"h", "metadata.google.internal", "metadata.example"} <= set(hosts("gs"))
    assert {"h", "login.microsoftonline.com", "login.example"} <= set(hosts("abfs"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert hosts("s3") == ["h"]


def test_credentials_come_from_another_host_than_the_bytes(
    serve: Callable[[RequestHandler], TestServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a pod, whose credentials an agent on the machine has."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    keys = {"AccessKeyId": "agent-key", "SecretAccessKey": SECRET, "Token": SECRET}
    agent = serve(lambda _: Reply(200, {**keys, "Expiration": "2100-01-01T00:00:00Z"}))
    server = serve(lambda _: Reply(200, b"bytes", {"ETag": '"x"', "Last-Modified": DATE}))
    token = tmp_path / "token"
    token.write_text("token")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.uri}/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    io = ObjectStoreFileIO({"s3.endpoint": at_localhost(server), "s3.region": "eu-1"})
    assert io.read_bytes("s3://bucket/file") == b"bytes"
    assert access_key(server.requests[0]) == "agent-key"


def test_a_proxy_stays_the_only_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"proxy_url": "http://proxy"}
    assert (
        without_redirects("s3", "https://h", own, region=None, environment_credentials=False) == own
    )
    monkeypatch.setenv("no_proxy", "other")
    assert options("https://h")["proxy_excludes"] == "h"
    monkeypatch.setenv("https_proxy", "http://proxy")
    assert options("https://h") == {"timeout": 1}
    monkeypatch.setenv("no_proxy", "h")
    assert options("https://h")["proxy_excludes"] == "h"
    # the address of the credentials may be behind the proxy
    assert options("https://h", environment_credentials=True) == {"timeout": 1}
