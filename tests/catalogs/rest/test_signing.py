"""Tables whose S3 requests the server signs: the address and the content of signing requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import CatalogError, StorageError
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.storage.credentials.table_services import SIGNING, RemoteSigning, signing_of
from iceberg_pyspark.table.table_catalog import TableCatalog
from iceberg_pyspark.table.table_storage import table_io
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, TABLE, error

SIGN = f"{TABLE}/sign"
OFFERED = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
ON = {"s3.remote-signing-enabled": "true"}


class Server:
    """A catalog of one table in S3; it refuses to sign."""

    def __init__(self, folder: str) -> None:
        self.config: dict[str, str] = dict(ON)
        self.more: dict[str, Any] = {}
        self.endpoints: list[str] = ["GET /v1/{prefix}/namespaces"]
        lake = TableCatalog(MemoryCatalog("own", {"warehouse": folder}))
        lake.create_namespace("db")
        lake.create_table("db.events", schema="id BIGINT")
        self.table: LoadedTable = lake.catalog.load_table(EVENTS)

    def __call__(self, request: Request) -> Reply:
        if request.path == "/v1/config":
            return Reply(200, {"defaults": {}, "overrides": {}, "endpoints": self.endpoints})
        if request.method == "POST":
            return error(403)
        content = {
            "metadata-location": "s3://b/t/metadata/v1.metadata.json",
            "metadata": {**metadata_to_json(self.table.metadata), "location": "s3://b/t"},
            "config": self.config,
            **self.more,
        }
        return Reply(200, content)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, TestServer]]:
    server = Server(str(tmp_path))
    with http_server(server) as http:
        yield server, http


def loaded(http: TestServer, **properties: str) -> tuple[RestCatalog, Mapping[str, str]]:
    catalog = RestCatalog("rest", {"uri": http.uri, **properties})
    return catalog, catalog.load_table(EVENTS).config


def signing(http: TestServer, **properties: str) -> RemoteSigning:
    return signing_of(loaded(http, **properties)[1])


def test_the_address_that_signs(served: tuple[Server, TestServer]) -> None:
    server, http = served
    assert signing(http).endpoint == f"{http.uri}/v1/aws/s3/sign"
    server.endpoints.append(OFFERED)
    assert signing(http).endpoint == f"{http.uri}{SIGN}"
    for name in ("s3.signer.endpoint", "signer.endpoint"):
        server.config = {**ON, name: "v1/sign/x?y=1"}
        assert signing(http).endpoint == f"{http.uri}/v1/sign/x?y=1"
    server.config = {**ON, "signer.endpoint": f"{http.uri}/absolute"}
    assert signing(http).endpoint == f"{http.uri}/absolute"
    server.config = {**ON, "s3.signer.uri": f"{http.uri}/base/", "s3.signer.endpoint": "s"}
    assert signing(http).endpoint == f"{http.uri}/base/s"


@pytest.mark.parametrize(
    "config",
    [
        {"s3.signer.uri": "https://other.example"},
        {"signer.endpoint": "https://other.example/sign"},
        {"signer.uri": "ftp://x"},
        {"s3.signer.endpoint": "http://me:pw@127.0.0.1/sign"},
    ],
)
def test_another_server_is_refused_unless_the_user_names_it(
    served: tuple[Server, TestServer], config: dict[str, str]
) -> None:
    server, http = served
    server.config = {**ON, **config}
    with pytest.raises(CatalogError, match=r"another server.*set s3\.signer\.uri yourself"):
        loaded(http)
    options = {"s3.signer.uri": "https://other.example", "s3.signer.endpoint": "sign"}
    assert signing(http, **options).endpoint == "https://other.example/sign"


def test_server_cannot_send_signing_settings_of_others(served: tuple[Server, TestServer]) -> None:
    server, http = served
    server.config = {SIGNING: json.dumps({"endpoint": "https://other.example"})}
    assert SIGNING not in loaded(http)[1]
    keys = {"s3.access-key-id": "k", "s3.secret-access-key": "a-long-secret"}
    server.config = dict(ON)
    assert not set(keys) & set(loaded(http, **keys)[1])


@pytest.mark.parametrize(
    ("properties", "token", "may_ask"),
    [
        ({}, None, True),
        ({"token": "of-the-catalog"}, None, False),
        ({"token": "of-the-catalog"}, "of-the-table", True),
    ],
)
def test_tasks_ask_with_the_tables_token_alone(
    served: tuple[Server, TestServer],
    properties: dict[str, str],
    token: str | None,
    may_ask: bool,
) -> None:
    server, http = served
    server.config = {**ON, **({} if token is None else {"token": token})}
    actual = signing(http, **properties)
    assert (actual.for_tasks, actual.token) == (may_ask, token)
    assert "of-the" not in repr(actual)


def test_a_request_for_a_signature(served: tuple[Server, TestServer]) -> None:
    server, http = served
    server.config = {**ON, "s3.region": "r-2", "s3.endpoint": "http://store.example:1"}
    server.more["remote-signing-config"] = {
        "properties": {"opaque": "1"},
        "headers": {"X-Routed": ["a", "b"]},
    }
    server.endpoints.append(OFFERED)
    catalog = RestCatalog("rest", {"uri": http.uri, "token": "of-the-catalog"})
    io = table_io(catalog.load_table(EVENTS))
    with pytest.raises(StorageError, match=r"cannot read s3://b/t/f: .*not signed.*403") as caught:
        io.read_range("s3://b/t/f", 0, 1)
    assert "of-the-catalog" not in str(caught.value)
    requests = http.requests[-1]
    assert (requests.method, requests.path) == ("POST", SIGN)
    assert requests.headers["authorization"] == "Bearer of-the-catalog"
    assert requests.headers["x-routed"] == "a, b"
    assert requests.json() == {
        "method": "GET",
        "region": "r-2",
        "uri": "http://store.example:1/b/t/f",
        "headers": {},
        "properties": {"opaque": "1"},
    }


def test_only_prefixes_with_remote_signing_ask_the_signer(
    served: tuple[Server, TestServer],
) -> None:
    server, http = served
    server.config = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}
    server.more["storage-credentials"] = [{"prefix": "s3://b/t/data", "config": ON}]
    config = loaded(http)[1]
    assert SIGNING in config
    # Files with other prefixes use the table's keys.
    assert config["s3.access-key-id"] == "k"
