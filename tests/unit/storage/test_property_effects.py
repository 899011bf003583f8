"""Storage properties whose effect only the requests, or the client's arguments, show."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.storage import hdfs_client
from iceberg_pyspark.storage.hdfs_io import HdfsFileIO
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.store_properties import azure_settings, s3_settings
from tests.support.http_server import Reply, Request, http_server
from tests.support.object_stores import SECRET
from tests.support.s3_double import access_key

HOST = "acc.dfs.core.windows.net"


def sent(location: str, properties: dict[str, str]) -> Request:
    """Read a file, and return the request; `{uri}` and `{authority}` in values are the server's."""
    headers = {"ETag": '"x"', "Last-Modified": "Mon, 23 Nov 2026 09:00:00 GMT"}
    with http_server(lambda _: Reply(200, b"bytes", headers)) as server:
        authority = server.uri.removeprefix("http://")
        own = {k: v.format(uri=server.uri, authority=authority) for k, v in properties.items()}
        assert ObjectStoreFileIO(own).read_bytes(location) == b"bytes"
    (request,) = server.requests
    return request


def test_the_shared_key_of_azure_signs() -> None:
    properties = {
        "adls.auth.shared-key.account.name": "acc",
        "adls.auth.shared-key.account.key": SECRET,
        "adls.blob-storage-authority": "{authority}",
        "adls.blob-storage-scheme": "http",
    }
    request = sent("abfss://box@acc.dfs.core.windows.net/file", properties)
    assert request.headers["authorization"].startswith("SharedKey acc:")
    assert request.path == "/acc/box/file"
    named = azure_settings(None, properties)
    assert named.config["account_name"] == "acc"
    assert named.credentials == {"access_key": SECRET, "expires_at": None}


def test_the_connection_string_of_an_account_is_for_that_account_only() -> None:
    text = f"AccountName=acc;AccountKey={SECRET};BlobEndpoint={{uri}}/acc"
    request = sent(f"abfss://box@{HOST}/file", {"adls.connection-string.acc": text})
    assert request.headers["authorization"].startswith("SharedKey acc:")
    assert request.path == "/acc/box/file"
    by_host = azure_settings(HOST, {f"adls.connection-string.{HOST}": text})
    assert by_host.credentials == {"access_key": SECRET, "expires_at": None}
    other = azure_settings(HOST, {"adls.connection-string.other": text})
    assert (other.config, other.credentials) == ({"account_name": "acc"}, None)


def test_the_keys_of_azure_that_properties_name_exclude_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_TOKEN", "of-the-environment")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", SECRET)
    own = {"adls.blob-storage-authority": "{authority}", "adls.blob-storage-scheme": "http"}
    for key, authorization in (
        ({"adls.sas-token.acc": "sv=1&sig=2"}, ""),
        ({"adls.account-key": SECRET}, "SharedKey acc:"),
        ({"adls.token": "of-the-table"}, "Bearer of-the-table"),
    ):
        request = sent(f"abfss://box@{HOST}/file", {**own, **key})
        assert request.headers.get("authorization", "")[: len(authorization)] == authorization
        assert ("sig" in request.query) == (not authorization)


def test_the_proxy_of_s3_gets_the_requests() -> None:
    properties = {
        "s3.endpoint": "http://store.example",
        "s3.region": "eu-1",
        "s3.access-key-id": "key",
        "s3.secret-access-key": SECRET,
        "s3.proxy-uri": "{uri}",
    }
    request = sent("s3://bucket/file", properties)
    assert (request.headers["host"], request.path) == ("store.example", "/bucket/file")
    assert s3_settings("bucket", properties).client_options["proxy_url"] == "{uri}"


@pytest.mark.parametrize("name", ["s3.profile-name", "client.profile-name"])
def test_a_profile_has_the_keys(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "credentials"
    keys.write_text(f"[lake]\naws_access_key_id = profile-key\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(keys))
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    request = sent("s3://bucket/file", {"s3.endpoint": "{uri}", "s3.region": "eu-1", name: "lake"})
    assert access_key(request) == "profile-key"


def test_the_kerberos_ticket_goes_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[tuple[str, dict[str, Any]]] = []

    class Client:
        def __init__(self, url: str, settings: dict[str, str], **arguments: Any) -> None:
            clients.append((url, arguments))

    monkeypatch.setattr(hdfs_client, "AsyncClient", Client)
    # one client per host is kept
    host = f"{uuid.uuid4()}:8020"
    HdfsFileIO({"hdfs.kerberos_ticket": "/tmp/ticket"}).check_scheme(f"hdfs://{host}/t")
    HdfsFileIO({}).check_scheme(f"hdfs://{host}/t")
    assert clients == [
        (f"hdfs://{host}", {"kerberos_cache": "/tmp/ticket"}),
        (f"hdfs://{host}", {}),
    ]
