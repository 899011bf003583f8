"""A REST catalog that vends keys for a few seconds: Iceberg's fixture behind a proxy, and a store.

The store holds back one request for a data file until all keys have expired, and refuses these keys
from then on. So a job lives longer than its keys, however fast the machine is.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.support.http_server import Reply, Request, http_server
from tests.support.rest_answers import error
from tests.support.rest_front import forwarded
from tests.support.s3_double import S3Double, access_key

LOGIN_TOKEN = "Zq3-of-the-catalog"
TABLE_TOKEN = "Zq6-of-the-table"
"""A token for the table `portable` alone, with which its tasks ask for new keys."""
_CREDENTIALS = "/v1/namespaces/db/tables/portable/credentials"
LIFETIME_S = 5.0
_OWNER = {"s3.access-key-id": "owner", "s3.secret-access-key": "s", "s3.path-style-access": "true"}


@dataclass
class VendingCatalog:
    """The catalog and the store; a program selects a phase by a request to `/phase/<name>`.

    In the phases `GET` and `PUT`, and in phases whose names begin so, keys expire during the first
    such request for a data file. In the phase `refuse` they expire during the first GET, and the
    catalog vends no others.
    """

    store: S3Double
    uri: str = ""
    behind: str = ""
    phase: str = ""
    vends: bool = True
    ends: dict[str, float] = field(default_factory=dict)
    keys_by_phase: dict[str, list[str]] = field(default_factory=dict)
    """The keys of the requests in a phase that the phase waits for."""

    asked_by: set[str] = field(default_factory=set)
    """The `Authorization` headers of requests to the catalog."""

    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=60))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def properties(self) -> dict[str, str]:
        """Properties of a catalog that logs in with a token; they contain no key of the store."""
        return {"type": "rest", "uri": self.uri, "token": LOGIN_TOKEN}

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/phase/"):
            self.phase = unquote(request.path.removeprefix("/phase/"))
            return Reply(200)
        if request.path.startswith("/v1/"):
            return self._answer(request)
        reply = self.store(request)
        if request.path.endswith(".parquet") and request.method in ("GET", "PUT"):
            self._expire_keys(request)
        return reply

    def _expire_keys(self, request: Request) -> None:
        awaited = "GET" if self.phase == "refuse" else self.phase.partition(" ")[0]
        if request.method != awaited:
            return
        with self.lock:
            keys = self.keys_by_phase.setdefault(self.phase, [])
            keys.append(access_key(request))
            if len(keys) > 1:
                return
            issued = dict(self.ends)
            self.vends = self.phase != "refuse"
        time.sleep(max(max(issued.values()) - time.time(), 0))
        self.store.keys -= set(issued)

    def _answer(self, request: Request) -> Reply:
        self.asked_by.add(request.headers.get("authorization", ""))
        if request.path == _CREDENTIALS:
            return Reply(200, {"storage-credentials": self._vended()})
        try:
            return forwarded(
                self.client, self.behind, request, ("content-type", "accept"), self._vend
            )
        except PermissionError as e:
            return error(403, "ForbiddenException", str(e))

    def _vend(self, table: dict[str, Any]) -> None:
        if not self.vends:
            raise PermissionError("no more keys for you")
        table["config"] = {"s3.endpoint": self.uri, "s3.region": "us-east-1"}
        if table["metadata"]["location"].endswith("/portable"):
            table["config"]["token"] = TABLE_TOKEN
            table["config"]["client.refresh-credentials-endpoint"] = _CREDENTIALS
        table["storage-credentials"] = self._vended()

    def _vended(self) -> list[dict[str, Any]]:
        return [{"prefix": "s3://bucket/lake", "config": self._keys()}]

    def _keys(self) -> dict[str, Any]:
        with self.lock:
            key, end_s = f"key-{len(self.ends) + 1}", time.time() + LIFETIME_S
            self.ends[key] = end_s
            self.store.keys.add(key)
        return {
            "s3.access-key-id": key,
            "s3.secret-access-key": f"Zq4-secret-of-{key}",
            "s3.session-token": f"Zq5-session-of-{key}",
            "s3.session-token-expires-at-ms": str(int(end_s * 1000)),
        }


@contextlib.contextmanager
def vending_catalog(folder: Path) -> Iterator[VendingCatalog]:
    """Yield a running catalog, whose tables are in its own store."""
    catalog = VendingCatalog(S3Double({"owner"}))
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
