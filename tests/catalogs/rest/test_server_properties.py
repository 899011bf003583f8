"""Properties from a server's configuration that a catalog accepts, ignores or refuses."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import asdict
from typing import Any

import pytest

from iceberg_pyspark.catalogs.rest import server_properties
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.catalogs.rest.server_properties import (
    table_storage_properties,
    taken_properties,
)
from iceberg_pyspark.catalogs.table_folders import own_folders
from iceberg_pyspark.errors import (
    CatalogError,
    InvalidRequestError,
    LocationRefusedError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.table_metadata import metadata_from_bytes
from iceberg_pyspark.storage.credentials.vended_credentials import properties_at
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO
from iceberg_pyspark.table.table_storage import table_io
from tests.support.catalog_contract import first_metadata
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import EVENTS, configured, table_reply

PUBLIC = "https://catalog.example.com/api"
ADDRESSES = {
    "inner.example.com": ["192.0.2.1", "127.0.0.1"],
    "inner6.example.com": ["::1"],
    "mapped.example.com": ["::ffff:169.254.169.254"],
    "link.example.com": ["fe80::1%eth0"],
    "all.example.com": ["0.0.0.0"],
    "service.example.com": ["fd00:ec2::254"],
    "bucket": ["127.0.0.1"],
    "s3.example.com": ["192.0.2.1", "2001:db8::1"],
    "private.example.com": ["10.0.0.1"],
}


@pytest.fixture(autouse=True)
def asked_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the resolver; return the list of names that it is asked for."""
    names: list[str] = []

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        names.append(host)
        if host not in ADDRESSES:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(None, None, 6, "", (address, 0)) for address in ADDRESSES[host]]

    server_properties._resolved_inner_address.cache_clear()
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *a, **k: (real if host == "127.0.0.1" else getaddrinfo)(host, *a, **k),
    )
    return names


def taken(
    offered: dict[str, str], *, uri: str = PUBLIC, own: dict[str, str] | None = None
) -> dict[str, str]:
    return taken_properties("rest", uri, offered, own or {})


def test_defaults_give_way_and_overrides_do_not() -> None:
    config = {
        "defaults": {"s3.region": "default", "s3.endpoint": "https://default"},
        "overrides": {"prefix": "my/lake", "namespace-separator": "%2E", "s3.sse.type": "s3"},
    }
    properties = {"s3.region": "given", "s3.sse.type": "none", "warehouse": "my lake"}
    with http_server(configured(lambda _: table_reply(), config)) as server:
        catalog = RestCatalog("rest", {"uri": f"{server.uri}/", **properties})
        catalog.load_table(EVENTS)
        assert server.requests[0].query == {"warehouse": ["my lake"]}
        assert server.paths("GET")[1] == "/v1/my/lake/namespaces/db/tables/events"
    assert catalog.properties["s3.region"] == "given"
    assert catalog.properties["s3.endpoint"] == "https://default"
    assert catalog.properties["s3.sse.type"] == "s3"


@pytest.mark.parametrize("separator", [None, "%2E", "%1F"])
def test_namespaces_are_joined_as_the_server_says(separator: str | None) -> None:
    overrides = {} if separator is None else {"namespace-separator": separator}

    def answer(request: Request) -> Reply:
        return Reply(200, {"namespaces": [["a b", "ü/", "c"]]})

    with http_server(configured(answer, {"overrides": overrides})) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        assert catalog.list_namespaces(("a b", "ü/")) == [("a b", "ü/", "c")]
        catalog.namespace_exists(("a b", "ü/"))
        joined = "." if separator == "%2E" else "\x1f"
        assert server.requests[1].query["parent"] == [f"a b{joined}ü/"]
        between = separator or "%1F"
        assert server.requests[2].path == f"/v1/namespaces/a%20b{between}%C3%BC%2F"


@pytest.mark.parametrize(
    "key",
    [
        *("io-impl", "py-io-impl", "catalog-impl", "client.factory", "s3.signer"),
        *("client.credentials-provider", "rest.auth.type", "metrics-reporter-impl"),
        *("header.Authorization", "token", "credential", "oauth2-server-uri", "ssl.cabundle"),
        *("auth.type", "auth.impl", "auth.custom.key"),
        *("rest.client.proxy.hostname", "s3.proxy-uri", "type"),
        *("read.allow-outside-locations", "read.restrict-locations"),
        # The server must not choose which of the user's own identities is used.
        *("s3.profile-name", "client.profile-name", "hdfs.kerberos_ticket"),
        *("storage.credentials", "storage.remote-signing", "storage.server-properties"),
        *("fsspec.sftp.key_filename", "fsspec.webdav.base_url", "hf.endpoint"),
    ],
)
def test_properties_that_a_server_may_not_send_are_ignored(key: str) -> None:
    assert taken({key: "x", "s3.region": "eu"}) == {"s3.region": "eu"}


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://127.0.0.1:9000",
            "http://localhost",
            "http://169.254.169.254/latest",
            "http://0/",
        ),
        *("http://[::1]:80", "http://[fe80::1]", "http://[::ffff:127.0.0.1]", "http://2130706433"),
        *("https://0x7f.1", "http://metadata.google.internal/x", "http://[fd00:ec2::254]", "127.1"),
        # Other spellings that URL parsers accept too.
        *("http://169.254.169.254./", "http://localhost./", "http:169.254.169.254", "//127.0.0.1"),
        *(
            "http:\\\\127.0.0.1/",
            "http:///127.0.0.1",
            "http://%31%32%37.0.0.1",
            "http://a@127.0.0.1",
        ),
        *(
            "http://\uff11\uff12\uff17.0.0.1",
            " http://127.0.0.1",
            "http://127.\t0.0.1",
            "localhost:80",
        ),
        *("HTTP:127.0.0.1", "http://[fe80::1%25eth0]/", "127.0.0.1:9000/path"),
    ],
)
def test_addresses_of_this_machine_and_its_network_are_refused(address: str) -> None:
    with pytest.raises(CatalogError, match=r"s3\.endpoint"):
        taken({"s3.endpoint": address})
    # A server on this machine may name another address on this machine.
    assert taken({"s3.endpoint": address}, uri="http://localhost:8181")


@pytest.mark.parametrize(
    "connection",
    [
        "AccountName=x;AccountKey=eA==;BlobEndpoint=http://169.254.169.254/x",
        "BlobEndpoint=https://store.example.com/x;QueueEndpoint=https://127.0.0.1/x",
        "AccountName=x;EndpointSuffix=localhost",
    ],
)
def test_addresses_in_a_connection_string_are_refused(connection: str) -> None:
    with pytest.raises(CatalogError, match=r"adls\.connection-string"):
        taken({"adls.connection-string": connection})


@pytest.mark.parametrize(
    "key",
    [
        *("s3.region", "client.region", "adls.tenant-id"),
        *("adls.account-name", "adls.auth.shared-key.account.name", "adls.blob-storage-scheme"),
    ],
)
def test_property_of_an_address_cannot_end_its_host(key: str) -> None:
    for value in ("example.com/", "example.com?x", "a@example.com", "example.com#", "a\\b", "a b"):
        with pytest.raises(CatalogError, match=rf"{key}.* part of a store's address"):
            taken({key: value})
        assert taken({key: value}, own={key: value}) == {key: value}
    assert taken({key: "eu-central-1"}) == {key: "eu-central-1"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AccountName", "2130706433#"),
        ("accountname", " x@127.0.0.1/"),
        ("DefaultEndpointsProtocol", "http:169.254.169.254/x?"),
    ],
)
def test_parts_of_a_connection_string_must_not_end_its_host(name: str, value: str) -> None:
    text = f"AccountKey=c2VjcmV0;{name}={value};EndpointSuffix=store.example.com"
    with pytest.raises(CatalogError, match="part of a store's address") as caught:
        taken({"adls.connection-string.x": text})
    assert "c2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("adls.blob-storage-authority", "169.254.169.254"),
        ("adls.blob-storage-authority", "localhost:10000"),
        ("adls.blob-storage-authority", "inner.example.com"),
        # a bucket or an account before it makes the address whole
        *(
            ("adls.blob-storage-authority", v)
            for v in (".0.0.1", ".:80", ".localhost", ".internal")
        ),
        *(("s3.endpoint", f"http://{v}") for v in ("0.0.1", "254.169.254:80", "0xfe", "a.1")),
        *(
            ("s3.endpoint", f"http://{v}/")
            for v in ("google.internal", "EC2.internal.", "internal")
        ),
    ],
)
def test_addresses_that_a_bucket_or_account_completes_are_refused(key: str, value: str) -> None:
    with pytest.raises(CatalogError, match=rf"{key}.* an address of this machine"):
        taken({key: value})
    assert taken({key: value}, uri="http://localhost:8181")


def test_a_connection_string_to_elsewhere_is_taken() -> None:
    account = "AccountName=x;AccountKey=e//0/A=="
    offered = {
        "adls.connection-string": f"{account};EndpointSuffix=core.windows.net",
        "s3.sse.key": "arn:aws:kms:eu-west-1:123:key/127.0.0.1",
    }
    assert taken(offered) == offered


def test_public_and_numeric_endpoints_are_accepted() -> None:
    offered = {"s3.endpoint": "https://s3.example.com:9000", "gcs.service.host": "http://10.0.0.1"}
    assert taken(offered) == offered
    azure = {"adls.blob-storage-authority": ".blob.example.com", "adls.blob-storage-scheme": "http"}
    assert taken(azure) == azure
    corporate = {
        "s3.endpoint": "http://store.corp.internal",
        "gcs.service.host": "http://[fd00::1]",
    }
    assert taken(corporate) == corporate
    by_name = {"gcs.service.host": "http://private.example.com"}
    assert taken(by_name) == by_name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("s3.endpoint", "https://inner.example.com:9000/x"),
        ("s3.endpoint", "inner.example.com:9000"),
        ("s3.endpoint", "HTTP://a@INNER.example.com./"),
        ("gcs.service.host", "http://inner6.example.com"),
        ("s3.signer.uri", "http://mapped.example.com"),
        ("s3.endpoint", "http://link.example.com"),
        ("s3.endpoint", "http://all.example.com"),
        ("s3.endpoint", "http://service.example.com"),
        ("adls.connection-string", "AccountName=x;BlobEndpoint=http://inner.example.com/x"),
        ("adls.connection-string", "AccountName=x;EndpointSuffix=inner.example.com"),
    ],
)
def test_names_that_resolve_to_addresses_of_this_machine_and_its_network_are_refused(
    key: str, value: str
) -> None:
    with pytest.raises(CatalogError, match=rf"{key}.* by name, an address of this machine"):
        taken({key: value})
    assert taken({key: value}, uri="http://localhost:8181")


def test_a_name_that_does_not_resolve_is_left_to_the_store(asked_names: list[str]) -> None:
    offered = {"s3.endpoint": "https://nowhere.example.com", "gcs.service.host": "a" * 64}
    assert taken(offered) == offered
    assert asked_names == ["nowhere.example.com", "a" * 64]


def test_names_of_buckets_are_not_resolved(asked_names: list[str]) -> None:
    offered = {"warehouse": "s3://bucket/wh", "s3.region": "inner.example.com", "s3.endpoint": ""}
    assert taken(offered) == offered
    assert asked_names == []


def test_a_name_is_resolved_once_in_a_while(
    asked_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setitem(ADDRESSES, "s3.example.com", ["192.0.2.1"])
    offered = {"s3.endpoint": "https://s3.example.com"}
    assert taken(offered) == taken(offered) == offered
    assert asked_names == ["s3.example.com"]
    # The name's owner may give the name another address later.
    monkeypatch.setitem(ADDRESSES, "s3.example.com", ["127.0.0.1"])
    now = 60.0
    with pytest.raises(CatalogError, match=r"127\.0\.0\.1 by name"):
        taken(offered)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9000", "http://inner.example.com"])
def test_address_that_the_user_configured_is_accepted(address: str) -> None:
    offered = {"s3.endpoint": address}
    assert taken(offered, own=offered) == offered
    with pytest.raises(CatalogError, match="to the same value yourself"):
        taken(offered, own={"s3.endpoint": "http://127.0.0.1:9001"})


@pytest.mark.parametrize("kind", ["defaults", "overrides", "table", "credentials"])
def test_the_users_value_counts_wherever_the_server_sends_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, public = "http://169.254.1.1", "https://s3.example.com"

    def load(value: str, own: str) -> str:
        sent = {"s3.endpoint": value}
        more: dict[str, Any] = {}
        if kind == "table":
            more = {"config": sent}
        elif kind == "credentials":
            more = {"storage-credentials": [{"prefix": "s3://b", "config": sent}]}
        config = {kind: sent} if kind in ("defaults", "overrides") else {}
        with http_server(configured(lambda _: table_reply(more=more), config)) as server:
            catalog = RestCatalog("rest", {"uri": server.uri, "s3.endpoint": own})
            return properties_at("s3://b/t", catalog.load_table(EVENTS).config)["s3.endpoint"]

    is_inner = server_properties._is_inner
    # The server of this test is on this machine; judge it as a server elsewhere.
    monkeypatch.setattr(
        server_properties, "_is_inner", lambda host: host != "127.0.0.1" and is_inner(host)
    )
    assert load(inner, own=inner) == inner
    if kind == "defaults":
        assert load(inner, own=public) == public
        return
    with pytest.raises(CatalogError, match=r"s3\.endpoint"):
        load(inner, own=public)


def test_a_server_may_not_send_its_clients_to_another() -> None:
    for uri in ("https://other.example.com/api", "http://catalog.example.com/api"):
        with pytest.raises(CatalogError, match="another server"):
            taken({"uri": uri})
    same = {"uri": "https://catalog.example.com/other"}
    assert taken(same) == same


def test_a_feature_that_the_server_does_not_list_is_refused_by_name() -> None:
    config: dict[str, Any] = {"endpoints": ["GET /v1/{prefix}/namespaces"]}
    with http_server(configured(lambda _: table_reply(), config)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        with pytest.raises(UnsupportedFeatureError, match="does not offer renaming"):
            catalog.rename_table(EVENTS, EVENTS)
        with pytest.raises(UnsupportedFeatureError, match="several tables"):
            catalog.commit_transaction([(EVENTS, (), ())])
        assert catalog.table_exists(EVENTS)
        assert [r.method for r in server.requests] == ["GET", "GET"]


# Storage properties of a table.


def test_vended_credentials_go_over_the_tables_config_over_the_catalogs() -> None:
    reply = table_reply(
        more={
            "config": {"s3.region": "table", "s3.access-key-id": "table", "io-impl": "x.Y"},
            "storage-credentials": [
                {"prefix": "s3://b/t", "config": {"s3.access-key-id": "vended"}},
                {"prefix": "s3://other", "config": {"s3.access-key-id": "other"}},
            ],
        }
    )
    with http_server(configured(lambda _: reply)) as server:
        properties = {"s3.region": "given", "s3.endpoint": "http://given", "token": "abcdefgh"}
        catalog = RestCatalog("rest", {"uri": server.uri, **properties})
        loaded = catalog.load_table(EVENTS)
        assert server.requests[-1].headers["x-iceberg-access-delegation"] == "vended-credentials"
    assert dict(loaded.config) == {
        "s3.region": "table",
        "s3.access-key-id": "table",
        "s3.endpoint": "http://given",
        "storage.server-properties": '["s3.access-key-id"]',
        "storage.credentials": (
            '[{"prefix":"s3://b/t","config":{"s3.access-key-id":"vended"}},'
            '{"prefix":"s3://other","config":{"s3.access-key-id":"other"}}]'
        ),
    }
    assert properties_at("s3://b/t/data/f", loaded.config)["s3.access-key-id"] == "vended"
    assert "vended" not in repr(loaded)
    assert "vended" not in repr(loaded.config)


def test_addresses_in_storage_credentials_are_checked() -> None:
    inner = {"prefix": "s3://b", "config": {"s3.endpoint": "http://169.254.169.254"}}
    answer = JsonObject({"storage-credentials": [inner]})
    with pytest.raises(CatalogError, match=r"s3\.endpoint"):
        table_storage_properties(answer, catalog="rest", uri=PUBLIC, properties={})


def test_storage_credentials_are_not_a_property_of_the_table() -> None:
    answer = JsonObject({"config": {"storage.credentials": "[]", "s3.region": "eu"}})
    properties = table_storage_properties(answer, catalog="rest", uri=PUBLIC, properties={})
    assert dict(properties) == {"s3.region": "eu", "storage.server-properties": "[]"}


def test_a_header_of_the_user_asks_for_other_delegation() -> None:
    with http_server(configured(lambda _: table_reply())) as server:
        header = {"header.x-iceberg-access-delegation": "remote-signing"}
        RestCatalog("rest", {"uri": server.uri, **header}).load_table(EVENTS)
        assert server.requests[-1].headers["x-iceberg-access-delegation"] == "remote-signing"


def test_a_table_that_its_server_must_plan_and_cannot_is_refused() -> None:
    modes = ("server", "SERVER", "catalog", "client", "CLIENT")
    for mode in modes:
        refused = mode.lower() != "client"
        for of_table in (True, False):
            mode_config = {"scan-planning-mode": mode}
            reply = table_reply(more={"config": mode_config} if of_table else None)
            config = {} if of_table else {"overrides": mode_config}
            with http_server(configured(lambda _, reply=reply: reply, config)) as server:  # type: ignore[misc]
                catalog = RestCatalog("rest", {"uri": server.uri})
                if refused:
                    with pytest.raises(UnsupportedFeatureError, match=f"planning-mode = {mode}"):
                        catalog.load_table(EVENTS)
                else:
                    assert catalog.load_table(EVENTS).identifier == EVENTS


@pytest.mark.parametrize(
    ("properties", "is_known"),
    [
        ({"warehouse": "s3://lake/wh"}, True),
        ({"warehouse": "lake"}, False),
        ({"warehouse": "s3://other/wh"}, False),
        ({}, False),
        ({"read.allow-outside-locations": "true"}, True),
    ],
)
@pytest.mark.parametrize("pointer", ["http://127.0.0.1:1/trees/main/snapshot/events", None])
def test_store_without_a_metadata_location_is_that_of_the_warehouse(
    properties: dict[str, str], is_known: bool, pointer: str | None
) -> None:
    """Nessie's `metadata-location` is a URL of the server; other servers send none."""
    location = "s3://lake/wh/db/events_5f3a"
    more = {"metadata-location": pointer}
    reply = table_reply(first_metadata(location), more=more)
    with http_server(configured(lambda _: reply)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri, **properties})
        if not is_known:
            with pytest.raises(LocationRefusedError, match="allow-outside-locations"):
                catalog.load_table(EVENTS)
            return
        table = catalog.load_table(EVENTS)
    assert table.store_location == location
    io = table_io(table, catalog)
    assert isinstance(io, RestrictedFileIO)
    assert io.known_location == location
    state = json.loads(json.dumps(asdict(PinnedTable.of(table))))
    pinned = PinnedTable.from_json(state)
    assert pinned.store_location == location
    assert metadata_from_bytes((pinned.metadata or "").encode(), "x") == table.metadata


def test_table_without_metadata_location_owns_no_folder_and_changes_its_pointer() -> None:
    versions = [first_metadata("s3://lake/wh/t", properties={"v": str(i)}) for i in range(2)]
    replies = iter(table_reply(m, more={"metadata-location": None}) for m in versions)
    with http_server(configured(lambda _: next(replies))) as server:
        catalog = RestCatalog("rest", {"uri": server.uri, "warehouse": "s3://lake/wh"})
        tables = [catalog.load_table(EVENTS) for _ in versions]
        assert len({t.metadata_location for t in tables}) == 2
        owned = own_folders(catalog, tables[0])
    assert not owned.owns("s3://lake/wh/t/data/f.parquet")
    assert not owned.owns("s3://lake/wh/t/metadata/v1.metadata.json")


def test_nulls_numbers_and_booleans_of_a_configuration_are_read_as_in_java() -> None:
    sent = {"s3.region": None, "s3.path-style-access": True, "s3.connect-timeout": 7, "x.f": 1.0}
    config = {"defaults": sent, "overrides": None}
    reply = table_reply(more={"config": sent})
    with http_server(configured(lambda _: reply, config)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        table = catalog.load_table(EVENTS)
    for properties in (catalog.properties, table.config):
        assert properties["s3.path-style-access"] == "true"
        assert properties["s3.connect-timeout"] == "7"
        assert "s3.region" not in properties
    assert catalog.properties["x.f"] == "1.0"


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("arn%3Aaws%3As3tables%3Aus-east-1%3A1%3Abucket%2Flake", None),
        ("a/b c", "a/b%20c"),
        ("100%", "100%25"),
    ],
)
def test_prefix_is_sent_with_the_escapes_that_it_has(prefix: str, path: str | None) -> None:
    with http_server(configured(lambda _: table_reply(), {"overrides": {"prefix": prefix}})) as s:
        RestCatalog("rest", {"uri": s.uri}).load_table(EVENTS)
        assert s.requests[-1].path.startswith(f"/v1/{path or prefix}/namespaces/")


def test_an_empty_separator_of_namespaces_is_refused_by_name() -> None:
    config = {"overrides": {"namespace-separator": ""}}
    with http_server(configured(lambda _: table_reply(), config)) as server:
        catalog = RestCatalog("rest", {"uri": server.uri})
        with pytest.raises(InvalidRequestError, match="namespace-separator"):
            catalog.load_table(EVENTS)


def test_values_of_headers_and_unknown_keys_are_not_shown() -> None:
    properties = {
        "uri": "https://c.example.com",
        "type": "rest",
        "s3.region": "eu-west-1",
        "header.X-Tenant": "hidden-1",
        "my-gateway-pin": "hidden-2",
    }
    shown = repr(RestCatalog("rest", properties))
    assert "hidden-" not in shown
    assert "eu-west-1" in shown


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/other", "/other"),
        ("deeper", "/api/deeper"),
        ("http:/a.example.com/x", "/a.example.com/x"),
    ],
)
def test_an_address_of_the_server_without_a_host_is_on_this_server(uri: str, path: str) -> None:
    def answer(request: Request) -> Reply:
        is_config = request.path.endswith("/config")
        return Reply(200, {"overrides": {"uri": uri}}) if is_config else table_reply()

    with http_server(answer) as server:
        RestCatalog("rest", {"uri": f"{server.uri}/api"}).load_table(EVENTS)
        assert server.requests[-1].path == f"{path}/v1/namespaces/db/tables/events"
