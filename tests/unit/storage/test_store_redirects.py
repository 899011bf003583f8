"""Redirects of an object store's server, and credentials from another host than the bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from tests.support.http_server import Reply, http_server
from tests.support.object_stores import SECRET, s3_store
from tests.support.s3_double import access_key

HEADERS = {"ETag": '"x"', "Last-Modified": "Mon, 23 Nov 2026 09:00:00 GMT"}


def test_a_bucket_of_another_region_fails_at_once_and_names_the_setting() -> None:
    """AWS answers 301 without an address to move to."""
    body = b"<Error><Code>PermanentRedirect</Code></Error>"
    with http_server(lambda _: Reply(301, body)) as server:
        location, properties = s3_store(server.uri)
        io = ObjectStoreFileIO(properties)
        for action in (
            lambda: io.read_bytes(location),
            lambda: io.size(location),
            lambda: io.write_bytes(location, b"our bytes"),
            lambda: io.create_exclusive(location, b"our bytes"),
            lambda: io.list_folder(location),
            lambda: io.delete(location),
        ):
            before = len(server.requests)
            with pytest.raises(StorageError, match=r"redirects without an address.*s3\.region"):
                action()
            assert len(server.requests) == before + 1
        with pytest.raises(StorageError, match=r"redirects without an address.*s3\.region"):
            io.open_input(location)


def test_credentials_come_from_another_host_than_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a pod, whose credentials an agent on the machine has."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        monkeypatch.delenv(name)
    keys = {"AccessKeyId": "agent-key", "SecretAccessKey": SECRET, "Token": SECRET}
    token = tmp_path / "token"
    token.write_text("token")
    with (
        http_server(lambda _: Reply(200, {**keys, "Expiration": "2100-01-01T00:00:00Z"})) as agent,
        http_server(lambda _: Reply(200, b"bytes", HEADERS)) as server,
    ):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{agent.uri}/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
        io = ObjectStoreFileIO({"s3.endpoint": server.uri, "s3.region": "eu-1"})
        assert io.read_bytes("s3://bucket/file") == b"bytes"
        assert access_key(server.requests[0]) == "agent-key"
