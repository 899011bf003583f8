"""fake-gcs-server, a server of Google Cloud Storage, on loopback.

It decides which one of several puts on condition wins. A front (`tests/support/google_front.py`)
adds the requests of the XML interface that the server lacks; both interfaces are at the front.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.go import go_binary
from tests.services.server import Server, running
from tests.support.google_front import GoogleFront
from tests.support.http_server import Request, TestServer, http_server
from tests.support.ports import LOOPBACK, free_port
from tests.support.upstream import Upstream

VERSION = "1.56.1"


@dataclass(frozen=True)
class GoogleServer:
    """A running server and its front."""

    server: Server
    front: GoogleFront
    _served: TestServer

    @property
    def endpoint(self) -> str:
        return self._served.uri

    @property
    def requests(self) -> list[Request]:
        """All requests so far."""
        return self._served.requests

    def properties(self) -> dict[str, str]:
        """Return the Iceberg properties that connect to this server without a token."""
        return {"gcs.service.host": self.endpoint, "gcs.no-auth": "true"}

    def new_root(self) -> str:
        """Create a bucket and return its location."""
        return f"gs://{self.new_bucket()}"

    def new_bucket(self) -> str:
        """Create a bucket and return its name."""
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        request = urllib.request.Request(
            f"{self.server.endpoint}/storage/v1/b",
            json.dumps({"name": bucket}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            reply.read()
        return bucket


def program() -> Path:
    """Return the server's program, built if necessary."""
    return go_binary("fake-gcs-server", "github.com/fsouza/fake-gcs-server", VERSION)


@contextlib.contextmanager
def google_server(folder: Path) -> Iterator[GoogleServer]:
    """Yield a server that keeps its objects in memory and logs into `folder`."""
    port = free_port()
    front = GoogleFront(Upstream(port))
    log = folder / "fake-gcs-server.log"
    with http_server(front) as served:
        command = [
            *(str(program()), "-scheme", "http", "-host", LOOPBACK, "-port", str(port)),
            # clients name the front as their host
            *("-backend", "memory", "-public-host", served.uri.removeprefix("http://")),
        ]
        with running("fake-gcs-server", command, port=port, log=log) as server:
            yield GoogleServer(server, front, served)
