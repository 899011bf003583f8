"""A server may set a store's address, but the address then gets credentials of the server only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

import iceberg_pyspark
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import LocationRefusedError, StorageError
from iceberg_pyspark.spark.bridge.features import JvmFileSystem
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage
from iceberg_pyspark.storage.credentials.credential_renewal import with_credentials_of
from iceberg_pyspark.storage.credentials.server_endpoints import (
    ADDRESSES,
    CREDENTIALS,
    SERVER_PROPERTIES,
    with_users_properties,
)
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS, properties_at
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.store_properties import STORAGE_PREFIXES
from tests.support.http_server import Reply, Request, RequestHandler, http_server
from tests.support.rest_answers import EVENTS, configured, table_reply

LOCATIONS = {
    "s3": "s3a://b/t/f",
    "gs": "gs://b/t/f",
    "abfs": "abfss://b@acc.dfs.core.windows.net/t/f",
}
SERVERS: Mapping[str, Mapping[str, str]] = {
    "s3": {"s3.access-key-id": "servers-id", "s3.secret-access-key": "servers-secret"},
    "gs": {"gcs.oauth2.token": "servers-token"},
    "abfs": {"adls.sas-token.acc": "sv=1&sig=servers"},
}
PLACES = ("defaults", "overrides", "config", "storage-credentials")
KEY = "a2V5"
VALUES = {
    "adls.blob-storage-scheme": "http",
    "adls.connection-string": "BlobEndpoint=http://example.invalid/acc",
}
# the storage properties that neither say where requests go nor authorise them
OTHERS = {
    "adls": (*("account-name", "auth.shared-key.account.name"),),
    "client": (
        *("region", "refresh-credentials-endpoint", "factory", "credentials-provider"),
        *("assume-role.arn", "role-arn"),
    ),
    "s3": (
        *("region", "force-virtual-addressing", "path-style-access", "anonymous"),
        *("remote-signing-enabled", "signer", "signer.endpoint", "signer.uri", "role-arn"),
        *("proxy-uri", "connect-timeout", "request-timeout", "retry.max-wait-ms"),
        *("retry.min-wait-ms", "retry.num-retries", "server-side-encryption", "sse-kms-key-id"),
        *("sse.key", "sse.type"),
    ),
    "gcs": (
        *("project-id", "no-auth", "requester-pays", "user-project", "encryption-key"),
        *("decryption-key",),
    ),
    "hdfs": (*("user", "kerberos_ticket"),),
    "io": (
        *("manifest.cache-enabled", "manifest.cache.max-content-length"),
        *("manifest.cache.max-total-bytes",),
    ),
}


def loaded(sent: Mapping[str, Mapping[str, str]], own: Mapping[str, str]) -> Mapping[str, str]:
    """Return the configuration of a table; `sent` has the properties by the place in answers."""
    credentials = [
        {"prefix": location.rpartition("/")[0], "config": sent["storage-credentials"]}
        for location in LOCATIONS.values()
        if "storage-credentials" in sent
    ]
    more: dict[str, Any] = {"config": sent.get("config", {}), "storage-credentials": credentials}
    config = {place: sent[place] for place in ("defaults", "overrides") if place in sent}
    answer = configured(lambda _: table_reply(more=more), config)
    client = RestCatalog("rest", {"uri": "http://127.0.0.1:1", **own})
    client._connection._client = httpx.Client(transport=httpx.MockTransport(_mock(answer)))
    return client.load_table(EVENTS).config


def _mock(answer: RequestHandler) -> Callable[[httpx.Request], httpx.Response]:
    def handle(request: httpx.Request) -> httpx.Response:
        reply = answer(Request(request.method, request.url.path, {}, {}, b""))
        # a body that is not read yet, as from a real server
        stream = httpx.ByteStream(json.dumps(reply.content).encode())
        return httpx.Response(reply.status, stream=stream)

    return handle


def opened_by_jvm(location: str, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options with which the JVM opens a file."""
    storage = NativeStorage(lambda _: JvmFileSystem("x"), config)
    storage.location(location)
    return storage.options


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("store", "address"), [(store, name) for store in ADDRESSES for name in ADDRESSES[store]]
)
def test_an_address_of_the_server_gets_no_credentials_of_the_user(
    store: str, address: str, place: str
) -> None:
    location = LOCATIONS[store]
    sent = {address: VALUES.get(address, "http://example.invalid")}
    own = {name: f"users-{KEY}" for name in CREDENTIALS[store] if name != address}
    for users in ({}, own):
        config = loaded({place: sent}, users)
        for opened in (properties_at, lambda at, c: ObjectStoreFileIO(c).exists(at), opened_by_jvm):
            with pytest.raises(LocationRefusedError, match=re.escape(address)) as caught:
                opened(location, config)
            assert f"users-{KEY}" not in str(caught.value)
    # With credentials of the server, in whatever part of the answers, nothing of the user is left.
    for other_place in PLACES:
        servers = {**SERVERS[store], **(sent if other_place == place else {})}
        # A server's default gives way to the user's property.
        users = {k: v for k, v in own.items() if other_place != "defaults" or k not in servers}
        config = loaded({place: sent, other_place: servers}, users)
        used = properties_at(location, config)
        assert used[address] == sent[address]
        assert not any("users" in value for value in used.values())
        assert "users" not in str(opened_by_jvm(location, config))
    # The user trusts the address.
    used = properties_at(location, loaded({place: sent}, {**own, **sent}))
    assert {k: used[k] for k in own} == own


def test_an_address_of_the_server_gets_no_request_of_an_authorised_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-environment")
    headers = {"ETag": '"x"', "Last-Modified": "Mon, 23 Nov 2026 09:00:00 GMT"}
    with http_server(lambda _: Reply(200, b"bytes", headers)) as other:
        sent = {"s3.endpoint": other.uri, "s3.region": "eu"}
        with pytest.raises(LocationRefusedError, match=r"s3\.anonymous to true"):
            ObjectStoreFileIO(loaded({"config": sent}, {})).read_bytes("s3://b/t/f")
        assert other.requests == []
        for free in ({"s3.anonymous": "true"}, SERVERS["s3"]):
            io = ObjectStoreFileIO(
                loaded({"config": {**sent, **free}}, {"client.session-token": KEY})
            )
            assert io.read_bytes("s3://b/t/f") == b"bytes"
            assert "of-the-environment" not in str(other.requests[-1].headers)
            assert KEY not in str(other.requests[-1].headers)


@pytest.mark.parametrize(
    "host", ["acc.dfs.example.com", "acc.example.com", "acc.dfs.core.windows.net.example.com"]
)
def test_a_host_in_a_location_that_is_not_azures_is_an_address_of_the_server(host: str) -> None:
    location, own = f"abfss://b@{host}/t/f", {"adls.account-key": KEY}
    for users in (own, {"adls.connection-string": f"AccountKey={KEY}"}, {}):
        config = loaded({}, users)
        for opened in (properties_at, opened_by_jvm):
            with pytest.raises(LocationRefusedError, match=f"adls.account-host = {host}"):
                opened(location, config)
    vended = loaded({"config": {f"adls.sas-token.{host}": "sv=1"}}, own)
    assert "adls.account-key" not in properties_at(location, vended)
    for address in ("adls.account-host", "adls.blob-storage-authority"):
        trusted = loaded({}, {**own, address: host})
        assert properties_at(location, trusted)["adls.account-key"] == KEY
    for azures in ("acc.dfs.core.windows.net", "acc.dfs.core.usgovcloudapi.net"):
        assert properties_at(f"abfss://b@{azures}/t", loaded({}, own))["adls.account-key"] == KEY
    # Of other catalogs, the user has set the warehouse.
    assert properties_at(location, own) == own


def test_renewal_keeps_properties_of_the_user() -> None:
    first = {"s3.endpoint": "http://example.invalid", **SERVERS["s3"]}
    own = {"s3.access-key-id": "users-id", "s3.secret-access-key": "users-secret"}
    config = loaded({"config": first}, own)
    for later in ({}, {"s3.endpoint": "http://example.invalid"}, {"s3.session-token": "new"}):
        renewed = with_credentials_of(config, loaded({"config": later}, own))
        used = properties_at("s3://b/t", renewed)
        assert used["s3.endpoint"] == "http://example.invalid"
        assert not any("users" in value for value in used.values())
    entries = json.dumps([{"prefix": "s3://b/t", "config": first}])
    config = {**loaded({}, own), VENDED_CREDENTIALS: entries}
    bare = json.dumps([{"prefix": "s3://b/t", "config": {"s3.endpoint": "http://other.invalid"}}])
    with pytest.raises(LocationRefusedError, match=r"http://other\.invalid"):
        properties_at(
            "s3://b/t/f", with_credentials_of(config, {**config, VENDED_CREDENTIALS: bare})
        )


def test_option_of_one_read_overrides_the_server() -> None:
    sent, own = {"s3.endpoint": "http://example.invalid"}, {"s3.access-key-id": "users-id"}
    own |= {"s3.secret-access-key": "users-secret"}
    config = loaded({"config": sent}, own)
    used = properties_at("s3://b/t", with_users_properties(config, {"s3.endpoint": "http://mine"}))
    assert used == {"s3.endpoint": "http://mine", **own}
    with pytest.raises(LocationRefusedError, match=r"s3\.endpoint"):
        properties_at("s3://b/t", with_users_properties(loaded({"config": sent}, {}), own))


@pytest.mark.parametrize("character", list("?#%\\ &=;,\n"))
def test_a_bucket_must_not_end_the_host_of_an_address(character: str) -> None:
    for location in ("s3://a{}b/t", "gs://a{}b/t", "abfss://a{}b@acc.dfs.core.windows.net/t"):
        with pytest.raises(StorageError, match="not a name of a bucket"):
            ObjectStoreFileIO({}).read_bytes(location.format(character))
    with pytest.raises(StorageError, match="not a name of a bucket"):
        ObjectStoreFileIO({}).read_bytes(f"abfss://a@acc.dfs.example.com{character}.windows.net/t")


def test_each_storage_property_says_whether_it_is_an_address_or_a_credential() -> None:
    """A new one fails here: add it to `ADDRESSES` or `CREDENTIALS`, or to `OTHERS` above.

    Those that a server cannot send (`test_server_properties.py`) are neither.
    """
    unsent = ("storage.", "fsspec.", "hf.", "encryption.", "kms.")
    prefixes = "|".join(re.escape(p) for p in STORAGE_PREFIXES if p not in unsent)
    names = {
        name.rstrip(".")
        for file in Path(iceberg_pyspark.__file__).parent.rglob("*.py")
        for name in re.findall(rf'"((?:{prefixes})[\w.-]*)"', file.read_text())
    }
    known = (*sum(ADDRESSES.values(), ()), *sum(CREDENTIALS.values(), ()))
    others = {f"{store}.{name}" for store, of_store in OTHERS.items() for name in of_store}
    assert {n for n in names if not n.startswith(known)} - {*OTHERS, "gcs.oauth2"} == others
    assert SERVER_PROPERTIES.startswith("storage.")
