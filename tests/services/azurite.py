"""Azurite, a server of Azure's blob storage, on loopback."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode

from tests.services.npm import npm_program
from tests.services.server import Server, running
from tests.services.upstream import Upstream
from tests.support.http_server import BreakConnection, Reply, Request, TestServer, http_server
from tests.support.ports import LOOPBACK, free_port

VERSION = "3.35.0"
ACCOUNT = "icebergtest"
_API_VERSION = "2021-08-06"


@dataclass
class AzureFront:
    """A front that passes requests on, and loses some."""

    upstream: Upstream
    loses: Callable[[Request, bool], bool] | None = None
    """Whether the connection breaks before (False) or after (True) the server serves a request."""

    def __call__(self, request: Request) -> Reply:
        if self.loses is not None and self.loses(request, False):
            raise BreakConnection
        reply = self.upstream.ask(request)
        if self.loses is not None and self.loses(request, True):
            raise BreakConnection
        return reply


@dataclass(frozen=True)
class AzureServer:
    """A running server with one account and a new key, and its front."""

    server: Server
    front: AzureFront
    _served: TestServer
    key: str

    @property
    def endpoint(self) -> str:
        return f"{self._served.uri}/{ACCOUNT}"

    @property
    def requests(self) -> list[Request]:
        """All requests so far."""
        return self._served.requests

    def properties(self) -> dict[str, str]:
        """Return the Iceberg properties that connect to this server."""
        parts = (f"AccountName={ACCOUNT}", f"AccountKey={self.key}")
        return {"adls.connection-string": ";".join((*parts, f"BlobEndpoint={self.endpoint}"))}

    def sas_token(self, container: str, end_s: int) -> str:
        """Return a token with all rights to the blobs of a container until an epoch second."""
        end = datetime.fromtimestamp(end_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        rights = "racwdl"
        # a service SAS: rights, start, end, resource, policy, address, protocol, version, kind of
        # resource, and seven empty parts
        resource = f"/blob/{ACCOUNT}/{container}"
        parts = (rights, "", end, resource, "", "", "", _API_VERSION, "c", *([""] * 7))
        signature = self._signed("\n".join(parts))
        return urlencode({"sv": _API_VERSION, "sr": "c", "sp": rights, "se": end, "sig": signature})

    def _signed(self, text: str) -> str:
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def new_root(self) -> str:
        """Create a container and return its location."""
        return f"abfss://{self.new_container()}@{ACCOUNT}.dfs.core.windows.net"

    def new_container(self) -> str:
        """Create a container with a request signed by the account's key; return its name."""
        container = f"c-{uuid.uuid4().hex[:12]}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _API_VERSION}
        # Azure's "Shared Key": the method, eleven empty headers, Azure's own headers, the path
        signed = "PUT" + "\n" * 12 + "".join(f"{k}:{v}\n" for k, v in headers.items())
        signed += f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{self._signed(signed)}"
        request = urllib.request.Request(
            f"{self.endpoint}/{container}?restype=container", headers=headers, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            reply.read()
        return container


def program() -> Path:
    """Return the server's program, installed from npm if necessary."""
    return npm_program("Azurite", "azurite", VERSION, "azurite-blob")


@contextlib.contextmanager
def azure_server(folder: Path) -> Iterator[AzureServer]:
    """Yield a server that keeps its blobs in `folder`."""
    port, key = free_port(), base64.b64encode(os.urandom(32)).decode()
    command = [
        *(str(program()), "--blobHost", LOOPBACK, "--blobPort", str(port)),
        *("--location", str(folder / "blobs"), "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"}
    log = folder / "azurite.log"
    front = AzureFront(Upstream(port))
    with (
        running("azurite", command, port=port, log=log, environment=accounts) as server,
        http_server(front) as served,
    ):
        yield AzureServer(server, front, served, key)
