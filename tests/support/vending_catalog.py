"""A REST catalog that vends keys for a few seconds: the fixture behind a proxy, and a store."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.support.expiring_keys import LIFETIME_S, REFUSAL, ExpiringKeys
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import error
from tests.support.rest_front import forwarded
from tests.support.s3_double import S3Double, access_key

LOGIN_TOKEN = "Zq3-of-the-catalog"
TABLE_TOKEN = "Zq6-of-the-table"
"""A token for the table `portable` alone, with which its tasks ask for new keys."""
_CREDENTIALS = "/v1/namespaces/db/tables/portable/credentials"
_OWNER = {"s3.access-key-id": "owner", "s3.secret-access-key": "s", "s3.path-style-access": "true"}


@dataclass
class VendingCatalog:
    """The catalog and the store; a program begins a phase by a request to `/phase/<name>`."""

    keys: ExpiringKeys
    store: S3Double
    uri: str = ""
    behind: str = ""
    issued: Iterator[int] = field(default_factory=count)
    asked_by: set[str] = field(default_factory=set)
    """The `Authorization` headers of requests to the catalog."""

    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))

    @property
    def properties(self) -> dict[str, str]:
        """Properties of a catalog that logs in with a token; they contain no key of the store."""
        return {"type": "rest", "uri": self.uri, "token": LOGIN_TOKEN}

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/phase/"):
            self.keys.begin(unquote(request.path.removeprefix("/phase/")))
            return Reply(200)
        if request.path.startswith("/v1/"):
            return self._answer(request)
        reply = self.store(request)
        kind = {"GET": "read", "PUT": "write"}.get(request.method, "")
        if kind and request.path.endswith(".parquet") and reply.status < 300:
            self.keys.serve(kind, access_key(request))
        return reply

    def _answer(self, request: Request) -> Reply:
        said = request.headers.get("authorization", "")
        if said not in (f"Bearer {LOGIN_TOKEN}", f"Bearer {TABLE_TOKEN}"):
            return error(401, "NotAuthorizedException", "no token")
        self.asked_by.add(said)
        try:
            if request.path == _CREDENTIALS:
                return Reply(200, {"storage-credentials": self._vended()})
            return forwarded(
                self.client, self.behind, request, ("content-type", "accept"), self._vend
            )
        except PermissionError as e:
            return error(403, "ForbiddenException", str(e))

    def _vend(self, table: dict[str, Any]) -> None:
        table["config"] = {"s3.endpoint": self.uri, "s3.region": "us-east-1"}
        if table["metadata"]["location"].endswith("/portable"):
            table["config"]["token"] = TABLE_TOKEN
            table["config"]["client.refresh-credentials-endpoint"] = _CREDENTIALS
        table["storage-credentials"] = self._vended()

    def _vended(self) -> list[dict[str, Any]]:
        if not self.keys.vends:
            raise PermissionError(REFUSAL)
        return [{"prefix": "s3://bucket/lake", "config": self._keys()}]

    def _keys(self) -> dict[str, Any]:
        key, end_s = f"key-{next(self.issued)}", time.time() + LIFETIME_S
        self.keys.add(key, end_s)
        return {
            "s3.access-key-id": key,
            "s3.secret-access-key": f"Zq4-secret-of-{key}",
            "s3.session-token": f"Zq5-session-of-{key}",
            "s3.session-token-expires-at-ms": str(int(end_s * 1000)),
        }


@contextlib.contextmanager
def vending_catalog(folder: Path) -> Iterator[VendingCatalog]:
    """Yield a running catalog, whose tables are in its own store."""
    keys = ExpiringKeys({"owner"})
    catalog = VendingCatalog(keys, S3Double(keys.accepted))
    with http_server(catalog) as front:
        catalog.uri = front.uri
        own = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "warehouse": "s3://bucket/lake",
            **_OWNER,
            "s3.endpoint": front.uri,
            "client.region": "us-east-1",
        }
        jars = s3_file_io_jars(rest_fixture.VERSION)
        with rest_fixture.rest_server(folder, own, jars) as server:
            catalog.behind = server.endpoint
            yield catalog
