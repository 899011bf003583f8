"""An HTTP server on loopback whose test decides each answer: wrong, late, repeated or none."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Request:
    """A client's request; `path` is without the query and still percent-encoded."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """The server's answer; `content` is sent as JSON, or unchanged if it is bytes.

    A `Content-Length` in `headers` is sent as it is, because that of HEAD is the object's size.
    """

    status: int = 200
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class BreakConnection(Exception):  # noqa: N818 - an order, not an error
    """An exception with which a test's answer function closes the connection without an answer."""


RequestHandler = Callable[[Request], Reply]


@dataclass
class TestServer:
    """A running server; `requests` holds the received requests in order."""

    __test__ = False
    uri: str
    requests: list[Request] = field(default_factory=list)

    def paths(self, method: str) -> list[str]:
        return [r.path for r in self.requests if r.method == method]


@contextlib.contextmanager
def http_server(
    answer: RequestHandler, *, tls: ssl.SSLContext | None = None, tunnel: int | None = None
) -> Iterator[TestServer]:
    """Serve `answer` on a free port of loopback, by HTTPS if there is `tls`.

    As a proxy, the server also accepts CONNECT and connects to the port `tunnel` of loopback,
    whatever host was asked for, if `answer` replies 200.
    """
    server = TestServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two packets, and the second would wait for the client's receipt.
        disable_nagle_algorithm = True

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            chunks = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(chunks)

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            request = Request(
                method=self.command,
                path=parts.path,
                query=parse_qs(parts.query, keep_blank_values=True),
                headers={k.lower(): v for k, v in self.headers.items()},
                body=self._body(),
            )
            server.requests.append(request)
            try:
                reply = answer(request)
            except BreakConnection:
                self.close_connection = True
                return
            content = reply.content
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            body = b"" if content is None else body
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status not in (204, 304) and "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_CONNECT(self) -> None:
            headers = {k.lower(): v for k, v in self.headers.items()}
            request = Request(method="CONNECT", path=self.path, query={}, headers=headers, body=b"")
            server.requests.append(request)
            reply = answer(request)
            self.send_response(reply.status)
            self.end_headers()
            self.close_connection = True
            if reply.status == 200 and tunnel is not None:
                _relay(self.connection, tunnel)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Threads(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            # a client that refuses the certificate or goes away is what a test is about
            if not isinstance(sys.exc_info()[1], ssl.SSLError | ConnectionError):
                super().handle_error(request, client_address)

    http = Threads((LOOPBACK, 0), Handler)
    http.daemon_threads = True
    if tls is not None:
        # the handshake is the handler's, so that a client that refuses it does not stop the server
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    server.uri = f"http{'' if tls is None else 's'}://{LOOPBACK}:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _relay(client: socket.socket, port: int) -> None:
    """Pass bytes between a client and a port of loopback until one of them closes."""
    with socket.create_connection((LOOPBACK, port)) as server:
        others = {client: server, server: client}
        while True:
            for ready in select.select(list(others), [], [])[0]:
                if not (content := ready.recv(65536)):
                    return
                others[ready].sendall(content)
