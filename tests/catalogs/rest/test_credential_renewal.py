"""Credentials that expire while a table is read are renewed, or an error reports the expiry."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import iceberg_pyspark as ice
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.errors import InvalidMetadataError, StorageError
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.storage.credentials import credential_renewal
from iceberg_pyspark.storage.credentials.credential_renewal import RENEWAL, source_of, with_new_keys
from iceberg_pyspark.storage.credentials.table_services import RegisteredServices
from iceberg_pyspark.storage.credentials.vended_credentials import VENDED_CREDENTIALS
from iceberg_pyspark.storage.objects import object_stores
from iceberg_pyspark.storage.store_properties import azure_settings
from iceberg_pyspark.table.table_catalog import TableCatalog
from iceberg_pyspark.table.table_storage import table_io
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import EVENTS, TABLE, error
from tests.support.s3_double import S3Double

LIFETIME_S = 100
CREDENTIALS = f"{TABLE}/credentials"
ENDPOINT = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
LOGIN = {"credential": "me:my-client-secret"}


class Vending:
    """A catalog of one table, and its store: each request for credentials gets new credentials.

    `way`: "config" (in the table's config), "list" (by prefix), "endpoint" (also at the server's
    own endpoint), "named" (at the endpoint that the table's config names).
    """

    def __init__(self, way: str, token: str | None = None) -> None:
        self.way = way
        self.token = token
        self.store = S3Double({"owner"})
        self.number = 0
        self.works = True
        self.ends_after: int | None = None
        self.ahead_s = 0.0
        self.table: LoadedTable | None = None

    def now_s(self) -> float:
        return time.time() + self.ahead_s

    def end(self) -> None:
        """Expire all credentials that have been issued."""
        self.pass_time(0.95)
        self.store.keys &= {"owner"}

    def pass_time(self, part: float) -> None:
        """Let a fraction of the credentials' lifetime pass; obstore asks again after 0.1 s."""
        self.ahead_s += LIFETIME_S * part
        time.sleep(0.15)

    def keys(self) -> dict[str, str]:
        self.number += 1
        self.store.keys.add(f"key-{self.number}")
        return {
            "s3.access-key-id": f"key-{self.number}",
            "s3.secret-access-key": f"vended-secret-{self.number}",
            # The expiry is within obstore's five minutes, so obstore asks for new credentials.
            "s3.session-token-expires-at-ms": str(int((self.now_s() + LIFETIME_S) * 1000)),
        }

    def __call__(self, request: Request) -> Reply:
        if not request.path.startswith("/v1/"):
            reply = self.store(request)
            reads = [g for g in self.store.gets if g[0].endswith(".parquet")]
            if self.ends_after is not None and len(reads) >= self.ends_after:
                self.ends_after = None
                self.end()
            return reply
        if request.path == "/v1/config":
            offered = ["GET /v1/{prefix}/namespaces"]
            offered += [ENDPOINT] if self.way in ("endpoint",) else []
            return Reply(200, {"defaults": {}, "overrides": {}, "endpoints": offered})
        if request.path.endswith("/tokens"):
            return Reply(200, {"access_token": "of-the-catalog", "token_type": "bearer"})
        if not self.works:
            said = request.headers.get("authorization", "")
            return error(403, message=f"no more keys for you, {said}")
        vended = [{"prefix": "s3://bucket/lake", "config": self.keys()}]
        if request.path == CREDENTIALS:
            return Reply(200, {"storage-credentials": vended})
        assert self.table is not None
        assert request.path == TABLE
        config = {"s3.endpoint": f"http://{request.headers['host']}", "s3.region": "r"}
        config |= {} if self.token is None else {"token": self.token}
        if self.way == "config":
            config |= vended.pop()["config"]  # type: ignore[arg-type]
        if self.way == "named":
            config["client.refresh-credentials-endpoint"] = CREDENTIALS
        if self.way == "off":
            config["client.refresh-credentials-enabled"] = "false"
        content = {
            "metadata-location": self.table.metadata_location,
            "metadata": metadata_to_json(self.table.metadata),
            "config": config,
            "storage-credentials": vended,
        }
        return Reply(200, content)


@pytest.fixture
def vending(request: pytest.FixtureRequest) -> Iterator[tuple[Vending, TestServer]]:
    """Yield a server of a table with eight data files; the parameters are those of `Vending`."""
    way, *token = request.param
    vending = Vending(way, *token)
    owner = {"s3.access-key-id": "owner", "s3.secret-access-key": "s", "s3.region": "r"}
    with http_server(vending) as server:
        owner["s3.endpoint"] = server.uri
        lake = ice.load_catalog("own", type="memory", warehouse="s3://bucket/lake", **owner)
        lake.create_namespace("db")
        table = lake.create_table("db.events", schema="id BIGINT")
        for n in range(8):
            table.append(pa.table({"id": [n]}))
        vending.table = lake.catalog.load_table(EVENTS)
        vending.store.gets.clear()
        yield vending, server


@pytest.fixture(autouse=True)
def clock(vending: tuple[Vending, TestServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_renewal, "_now_s", vending[0].now_s)
    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.renewal._now_s", vending[0].now_s)
    monkeypatch.setattr("iceberg_pyspark.catalogs.rest.rest_session._sleep", lambda _: None)


def rest(server: TestServer, **properties: str) -> RestCatalog:
    return RestCatalog("rest", {"uri": server.uri, **properties})


def without_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the sources of credentials, as in another process."""
    monkeypatch.setattr(credential_renewal, "SOURCES", RegisteredServices())
    object_stores._store.cache_clear()


def a_file(vending: Vending) -> str:
    return next(f"s3:/{p}" for p in vending.store.objects if p.endswith(".parquet"))


ALL = pytest.mark.parametrize(
    "vending", [("config",), ("list",), ("endpoint",), ("named",)], indirect=True
)


@ALL
def test_scan_continues_after_its_credentials_expire(vending: tuple[Vending, TestServer]) -> None:
    catalog, server = vending
    table = TableCatalog(rest(server)).load_table("db.events")
    catalog.ends_after = 3
    batches = list(table.scan().to_batches())
    assert sorted(v for b in batches for v in b["id"].to_pylist()) == list(range(8))
    keys = [key for _, key in catalog.store.gets]
    assert {"key-1", "key-2"} <= set(keys)
    requests = [p for p in server.paths("GET") if p.startswith(TABLE)]
    assert requests[0] == TABLE
    assert set(requests[1:]) == {CREDENTIALS if catalog.way in ("endpoint", "named") else TABLE}


@pytest.mark.parametrize("vending", [("off",)], indirect=True)
def test_expired_credentials_without_renewal_raise_storage_error(
    vending: tuple[Vending, TestServer],
) -> None:
    catalog, server = vending
    table = TableCatalog(rest(server)).load_table("db.events")
    catalog.ends_after = 3
    with pytest.raises(StorageError, match=r"cannot read s3://bucket/lake.*PermissionDenied"):
        list(table.scan().to_batches())
    assert RENEWAL not in rest(server).load_table(EVENTS).config


@pytest.mark.parametrize("vending", [("list",)], indirect=True)
def test_old_ones_are_used_to_their_end_where_no_new_ones_come(
    vending: tuple[Vending, TestServer], caplog: pytest.LogCaptureFixture
) -> None:
    catalog, server = vending
    own = rest(server, **LOGIN)
    loaded = own.load_table(EVENTS)
    io, location = table_io(loaded), a_file(catalog)
    with io.open_input(location) as stream:
        assert stream.read(4) == b"PAR1"
        catalog.works = False
        catalog.pass_time(0.95)
        assert io.read_range(location, 0, 4) == b"PAR1"
        assert "could not be renewed" in caplog.text
        catalog.pass_time(0.5)
        with pytest.raises(StorageError, match="have expired and could not be renewed"):
            io.read_range(location, 0, 4)
        catalog.works = True
        catalog.pass_time(0)
        assert io.read_range(location, 0, 4) == b"PAR1"
    assert "secret" not in caplog.text


@pytest.mark.parametrize("vending", [("named", "of-the-table")], indirect=True)
def test_a_task_renews_with_the_tables_own_token_alone(
    vending: tuple[Vending, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, server = vending
    own = rest(server, **LOGIN)
    sent = pickle.dumps(table_io(own.load_table(EVENTS)))
    assert b"my-client-secret" not in sent
    assert b"of-the-catalog" not in sent
    without_the_catalog(monkeypatch)
    io, location = pickle.loads(sent), a_file(catalog)
    assert "of-the-table" not in repr(io)
    assert io.read_range(location, 0, 4) == b"PAR1"
    catalog.end()
    assert io.read_range(location, 0, 4) == b"PAR1"
    assert [key for _, key in catalog.store.gets] == ["key-1", "key-2"]
    requests = [r for r in server.requests if r.path == CREDENTIALS]
    assert [r.headers["authorization"] for r in requests] == ["Bearer of-the-table"]
    catalog.works = False
    catalog.pass_time(1.1)
    with pytest.raises(StorageError, match="answered with 403: no more keys for you") as caught:
        io.read_range(location, 0, 4)
    assert "of-the-table" not in str(caught.value)


@pytest.mark.parametrize("vending", [("named",), ("list", "of-the-table")], indirect=True)
def test_a_task_has_the_drivers_credentials_where_it_may_not_ask(
    vending: tuple[Vending, TestServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, server = vending
    own = rest(server, **LOGIN)
    sent = pickle.dumps(table_io(own.load_table(EVENTS)))
    assert b"of-the" not in sent
    without_the_catalog(monkeypatch)
    io, location = pickle.loads(sent), a_file(catalog)
    assert io.read_range(location, 0, 4) == b"PAR1"
    before = len(server.requests)
    catalog.end()
    with pytest.raises(StorageError, match="PermissionDenied") as caught:
        io.read_range(location, 0, 4)
    assert "expired" not in str(caught.value)
    catalog.pass_time(0.1)
    with pytest.raises(StorageError, match=r"(?s)PermissionDenied.*credentials expired at 20"):
        io.read_range(location, 0, 4)
    assert all(not r.path.startswith("/v1/") for r in server.requests[before:])


VENDED = [{"prefix": "s3://b", "config": {"s3.region": "r", "s3.session-token": "1"}}]


@pytest.mark.parametrize("vending", [("list",)], indirect=True)
def test_an_address_renews_keys_and_changes_nothing_else(
    vending: tuple[Vending, TestServer],
) -> None:
    config = {"s3.session-token": "2", "s3.endpoint": "http://evil", "storage.x": "y"}
    answer = {"storage-credentials": [{"prefix": "s3://b", "config": config}]}
    old: dict[str, str] = {"s3.region": "q", VENDED_CREDENTIALS: json.dumps(VENDED)}
    new = with_new_keys(old, json.dumps(answer).encode())
    entry: Any = json.loads(new.pop(VENDED_CREDENTIALS))
    assert new == {"s3.region": "q"}
    assert entry == [{"prefix": "s3://b", "config": {"s3.region": "r", "s3.session-token": "2"}}]
    for wrong in (b"", b"[]", b"{}", b'{"storage-credentials": []}', b'{"storage-credentials": 1}'):
        with pytest.raises(StorageError, match="storage-credentials"):
            with_new_keys(old, wrong)
    with pytest.raises(InvalidMetadataError, match="leave it out") as caught:
        source_of({RENEWAL: '{"token": "a-secret"'})
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize("vending", [("list",)], indirect=True)
def test_a_signature_of_azure_has_its_end(vending: tuple[Vending, TestServer]) -> None:
    host = "acc.dfs.core.windows.net"
    options = {
        f"adls.sas-token.{host}": "sv=1&sig=2",
        f"adls.sas-token-expires-at-ms.{host}": "5000",
    }
    settings = azure_settings(host, options)
    assert settings.credentials is not None
    assert settings.credentials["sas_token"] == "sv=1&sig=2"
    assert settings.credentials["expires_at"].timestamp() == 5
    assert "sas_key" not in settings.config
