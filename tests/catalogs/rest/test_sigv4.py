"""Requests signed with AWS's Signature Version 4, verified as AWS's documentation describes it.

"Create a signed AWS API request": the server computes the signature anew from the request that
arrived, with `hmac` alone.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.rest.rest_catalog import RestCatalog
from iceberg_pyspark.changes.changes import SetProperties
from iceberg_pyspark.errors import NotAuthorizedError
from tests.support.http_server import Reply, Request, TestServer, http_server
from tests.support.rest_answers import error, table_reply

SECRET = "hunter22"
NESTED = TableIdentifier(namespace=("a b", "ü/*~"), name="t+1")
KEYS = {"rest.access-key-id": "AKID", "rest.secret-access-key": SECRET}
SIGNED = {"rest.auth.type": "sigv4", "rest.signing-region": "eu-west-1"}


def mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_of(request: Request, secret: str, scope: list[str], names: list[str]) -> str:
    """Return the signature that a request needs: canonical request, string to sign, four keys."""
    pairs = [(k, v) for k, values in request.query.items() for v in values]
    encoded = sorted((quote(k, safe="~"), quote(v, safe="~")) for k, v in pairs)
    canonical = [
        request.method,
        # services other than S3 encode the encoded path once more
        quote(request.path, safe="/~"),
        "&".join(f"{k}={v}" for k, v in encoded),
        *(f"{name}:{request.headers[name].strip()}" for name in names),
        "",
        ";".join(names),
        hashlib.sha256(request.body).hexdigest(),
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = mac(key, part)
    text = "\n".join(("AWS4-HMAC-SHA256", request.headers["x-amz-date"], "/".join(scope), digest))
    return mac(key, text).hex()


def verified(request: Request) -> Reply:
    """Answer a request only if its signature is that of `SECRET`; 403 otherwise."""
    algorithm, _, rest = request.headers.get("authorization", "").partition(" ")
    if algorithm != "AWS4-HMAC-SHA256":
        return error(403, "ForbiddenException", "not signed")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    _, *scope = fields["Credential"].split("/")
    names = fields["SignedHeaders"].split(";")
    wants = {"host", "x-amz-date", *(n for n in request.headers if n.startswith("x-amz-"))}
    if scope[0] != request.headers["x-amz-date"][:8] or not wants <= set(names):
        return error(403, "ForbiddenException", "wrong scope or headers")
    if fields["Signature"] != signature_of(request, SECRET, scope, names):
        return error(403, "ForbiddenException", "wrong signature")
    if request.path == "/v1/config":
        return Reply(200, {"defaults": {}, "overrides": {}})
    return Reply(200, {"namespaces": []}) if "parent" in request.query else table_reply()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestServer]:
    """Serve with verification, in an environment without credentials of AWS."""
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with http_server(verified) as running:
        yield running


def credential_of(request: Request) -> str:
    return request.headers["authorization"].partition("Credential=")[2].partition(",")[0]


def test_every_request_has_the_signature_that_a_server_computes(server: TestServer) -> None:
    properties = {
        "uri": f"{server.uri}/",
        # a query with characters that forms and signatures encode differently
        "warehouse": "arn:aws:s3tables:eu-west-1:1:bucket/my lake+ü~*",
        "rest.signing-name": "glue",
        "rest.session-token": "of-the-session",
        **SIGNED,
        **KEYS,
    }
    catalog = RestCatalog("lake", properties)
    catalog.load_table(NESTED)
    catalog.list_namespaces(NESTED.namespace)
    catalog.commit_table(NESTED, (), (SetProperties({"a": "ü"}),)).result()
    config, load, children, commit = server.requests
    assert config.query["warehouse"] == [properties["warehouse"]]
    assert load.path == "/v1/namespaces/a%20b%1F%C3%BC%2F%2A~/tables/t%2B1"
    assert children.query["parent"] == ["a b\x1fü/*~"]
    assert (commit.method, b"set-properties" in commit.body) == ("POST", True)
    for request in server.requests:
        assert request.headers["x-amz-security-token"] == "of-the-session"
        date = request.headers["x-amz-date"][:8]
        assert credential_of(request) == f"AKID/{date}/eu-west-1/glue/aws4_request"


def test_a_wrong_key_is_refused(server: TestServer) -> None:
    wrong = {"uri": server.uri, **SIGNED, **KEYS, "rest.secret-access-key": "other-secret"}
    with pytest.raises(NotAuthorizedError, match="wrong signature"):
        RestCatalog("lake", wrong).load_table(NESTED)


def test_keys_and_region_of_the_environment(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = RestCatalog("lake", {"uri": server.uri, "rest.sigv4-enabled": "true", **KEYS})
    with pytest.raises(Exception, match=r"rest\.signing-region"):
        catalog.load_table(NESTED)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
    properties = {"uri": server.uri, "rest.sigv4-enabled": "true"}
    with pytest.raises(NotAuthorizedError, match=r"no AWS credentials"):
        RestCatalog("lake", properties).load_table(NESTED)
    assert server.requests == []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OF-THE-ENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-environment")
    RestCatalog("lake", properties).load_table(NESTED)
    last = server.requests[-1]
    assert last.headers["x-amz-security-token"] == "of-the-environment"
    date = last.headers["x-amz-date"][:8]
    expected = f"OF-THE-ENVIRONMENT/{date}/us-east-2/execute-api/aws4_request"
    assert credential_of(last) == expected
