"""Stores of Google and Azure whose credentials expire, and the endpoints that vend them."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

from tests.services.azurite import ACCOUNT, azure_server
from tests.services.gcs import google_server
from tests.support.expiring_keys import LIFETIME_S, REFUSAL, ExpiringKeys
from tests.support.http_server import Reply, Request, http_server


@dataclass
class VendingStore:
    """A store; `/vend` at `source` returns new properties, `/phase/<name>` begins a phase."""

    warehouse: str
    issue: Callable[[int], tuple[str, dict[str, str]]]
    """Return a credential that is valid until an epoch second, and the properties with it."""

    keys: ExpiringKeys = field(default_factory=ExpiringKeys)
    source: str = ""

    def __call__(self, request: Request) -> Reply:
        if request.path.startswith("/phase/"):
            self.keys.begin(request.path.removeprefix("/phase/"))
            return Reply(200, {})
        if not self.keys.vends:
            return Reply(403, REFUSAL)
        end_s = math.ceil(time.time()) + LIFETIME_S - 1
        credential, properties = self.issue(end_s)
        self.keys.add(credential, end_s)
        return Reply(200, properties)


@contextlib.contextmanager
def google_store(folder: Path) -> Iterator[VendingStore]:
    """Yield a store with tokens, which reports the requests of Google's connector for Hadoop."""
    with google_server(folder) as google:

        def issue(end_s: int) -> tuple[str, dict[str, str]]:
            token = f"ya29.Zq-{uuid.uuid4().hex}"
            return token, {
                "gcs.service.host": google.endpoint,
                "gcs.oauth2.token": token,
                "gcs.oauth2.token-expires-at": f"{end_s}000",
            }

        store = VendingStore(f"gs://{google.new_bucket()}/lake", issue)
        google.front.tokens = store.keys.accepted

        def report(request: Request, is_served: bool) -> bool:
            name = f"{request.path} {request.query} {request.body[:1000]!r}"
            if is_served and ".parquet" in name and "GHFS" in request.headers["user-agent"]:
                kind = "read" if request.query.get("alt") == ["media"] else "write"
                token = request.headers["authorization"].removeprefix("Bearer ")
                store.keys.serve(kind, token)
            return False

        google.front.loses = report
        with http_server(store) as source:
            store.source = source.uri
            yield store


@contextlib.contextmanager
def azure_store(folder: Path) -> Iterator[VendingStore]:
    """Yield a store with SAS tokens, which reports the requests of Hadoop's file system."""
    with azure_server(folder) as azure:
        container = azure.new_container()

        def issue(end_s: int) -> tuple[str, dict[str, str]]:
            authority = azure.endpoint.removeprefix("http://").removesuffix(f"/{ACCOUNT}")
            # The server would refuse requests that are under way; `keys.late` has later ones.
            token = azure.sas_token(container, end_s + 60)
            return parse_qs(token)["sig"][0], {
                "adls.blob-storage-authority": authority,
                "adls.blob-storage-scheme": "http",
                f"adls.sas-token.{ACCOUNT}": token,
                f"adls.sas-token-expires-at-ms.{ACCOUNT}": f"{end_s}000",
            }

        place = f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/lake"
        store = VendingStore(place, issue)

        def report(request: Request, is_served: bool) -> bool:
            is_jvm = "Azure Blob FS" in request.headers.get("user-agent", "")
            if is_served and is_jvm and ".parquet" in request.path:
                kind = {"GET": "read", "PUT": "write"}.get(request.method, "")
                store.keys.serve(kind, request.query["sig"][0])
            return False

        azure.front.loses = report
        with http_server(store) as source:
            store.source = source.uri
            yield store
