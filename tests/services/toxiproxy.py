"""toxiproxy, a proxy on loopback that drops, cuts and delays traffic."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tests.services.go import go_binary
from tests.services.server import Server, running
from tests.support.ports import LOOPBACK, free_port

VERSION = "2.5.0"


@dataclass(frozen=True)
class Proxy:
    """One listening port of the proxy, which forwards to one server."""

    server: Server
    name: str
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @contextlib.contextmanager
    def toxic(
        self, kind: str, stream: Literal["upstream", "downstream"], **attributes: int
    ) -> Iterator[None]:
        """Disturb traffic to the server (upstream) or to the client; `kind` as in toxiproxy."""
        toxics = f"{self.server.endpoint}/proxies/{self.name}/toxics"
        toxic = {"name": kind, "type": kind, "stream": stream, "attributes": attributes}
        _ask("POST", toxics, toxic)
        try:
            yield
        finally:
            _ask("DELETE", f"{toxics}/{kind}")


@dataclass(frozen=True)
class Toxiproxy:
    """The running proxy process."""

    server: Server

    def proxy(self, name: str, endpoint: str) -> Proxy:
        """Open a proxy port for the server at `http://<host>:<port>`."""
        port = free_port()
        upstream = urlsplit(endpoint).netloc
        _ask(
            "POST",
            f"{self.server.endpoint}/proxies",
            {"name": name, "listen": f"{LOOPBACK}:{port}", "upstream": upstream, "enabled": True},
        )
        return Proxy(self.server, name, port)


def program() -> Path:
    """Return the proxy's program, built if necessary."""
    return go_binary("toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server", VERSION)


@contextlib.contextmanager
def toxiproxy(folder: Path) -> Iterator[Toxiproxy]:
    """Yield a proxy that logs into `folder`."""
    port = free_port()
    command = [str(program()), "-host", LOOPBACK, "-port", str(port)]
    with running("toxiproxy", command, port=port, log=folder / "toxiproxy.log") as server:
        yield Toxiproxy(server)


def _ask(method: str, url: str, body: object = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)
    with urllib.request.urlopen(request, timeout=10) as reply:
        reply.read()
