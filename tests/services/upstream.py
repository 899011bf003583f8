"""A server behind a front that passes requests on to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection
from urllib.parse import urlencode

from tests.support.http_server import Reply, Request
from tests.support.ports import LOOPBACK

_OF_CONNECTION = ("connection", "transfer-encoding", "content-length", "keep-alive")


@dataclass(frozen=True)
class Upstream:
    """A server on loopback; each thread has its own connection to it."""

    port: int
    _local: threading.local = field(default_factory=threading.local, repr=False)

    def ask(self, request: Request) -> Reply:
        """Return the server's reply to a request."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = HTTPConnection(LOOPBACK, self.port)
        headers = {k: v for k, v in request.headers.items() if k not in _OF_CONNECTION}
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        connection.request(
            request.method, f"{request.path}{query}", body=request.body, headers=headers
        )
        with connection.getresponse() as answer:
            content = answer.read()
            sent = {k: v for k, v in answer.getheaders() if k.lower() not in _OF_CONNECTION}
            if request.method == "HEAD":
                sent["Content-Length"] = answer.headers.get("Content-Length", "0")
        return Reply(answer.status, content, sent)
