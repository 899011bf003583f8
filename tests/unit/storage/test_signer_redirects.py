"""Requests of tasks that carry a secret follow no redirect: no other server gets the secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.credentials.credential_renewal import RENEWAL, Renewal, source_of
from iceberg_pyspark.storage.credentials.table_services import SIGNING, RemoteSigning, signer_of
from iceberg_pyspark.storage.objects import signed_requests
from iceberg_pyspark.storage.open_storage import open_storage
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.signer_double import SignerDouble, signing_text

TOKEN = "of-the-table"


@pytest.fixture
def other() -> Iterator[TestServer]:
    """Serve an answer that every sender here would accept."""
    config = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}
    vended = {"storage-credentials": [{"prefix": "s3://b", "config": config}]}
    with http_server(lambda _: Reply(200, {**vended, "uri": "http://x", "headers": {}})) as server:
        yield server


@pytest.fixture(params=[301, 302, 303, 307, 308])
def redirect(request: pytest.FixtureRequest, other: TestServer) -> Reply:
    return Reply(request.param, b"", {"Location": f"{other.uri}/elsewhere"})


def test_the_renewal_of_credentials(redirect: Reply, other: TestServer) -> None:
    with http_server(lambda _: redirect) as server:
        renewal = Renewal(source="of-no-process", endpoint=f"{server.uri}/renew", token=TOKEN)
        properties = {RENEWAL: renewal.to_text()}
        source = source_of(properties)
        assert source is not None
        with pytest.raises(StorageError, match=str(redirect.status)):
            source.renew(properties)
        assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {TOKEN}"]
    assert other.requests == []


def test_a_request_for_a_signature(redirect: Reply, other: TestServer) -> None:
    with http_server(lambda _: redirect) as server:
        signing = RemoteSigning(
            source="of-no-process",
            namespace=("db",),
            name="events",
            endpoint=f"{server.uri}/sign",
            for_tasks=True,
            token=TOKEN,
        )
        answer = signer_of(signing).sign(signing, {"method": "GET"})
        assert answer.status == redirect.status
        assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {TOKEN}"]
    assert other.requests == []


def test_a_signed_request_to_the_store(
    redirect: Reply, other: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_requests, "_sleep", lambda _: None)
    signer = SignerDouble("AKIASIGNER", "the-signers-own-secret", tokens={TOKEN})

    def answer(request: Request) -> Reply:
        return signer(request) if request.path == "/sign" else redirect

    with http_server(answer) as server:
        properties = {
            "s3.remote-signing-enabled": "true",
            "s3.endpoint": server.uri,
            "s3.region": "r-1",
            SIGNING: signing_text(f"{server.uri}/sign", token=TOKEN),
        }
        with pytest.raises(StorageError, match=str(redirect.status)):
            open_storage("s3://bucket/t", properties).read_range("s3://bucket/t/f", 0, 1)
        assert any("authorization" in r.headers for r in server.requests if r.path != "/sign")
    assert other.requests == []
