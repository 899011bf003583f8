"""An S3 store that accepts the conditions of a put and ignores them, as some servers do.

Two writers can both create the same file, so no commit may rely on this store. It runs in the
test's process on loopback and implements only what such a test needs: put, get, head and delete of
whole objects.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import unescape

from tests.support.ports import LOOPBACK


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.objects[self._key] = body
        self._answer(200, b"")

    def do_GET(self) -> None:
        data = self.objects.get(self._key)
        self._answer(404, b"") if data is None else self._answer(200, data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        # a delete of several objects: `<Delete><Object><Key>a</Key></Object>...`
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        for key in re.findall("<Key>(.*?)</Key>", body):
            self.objects.pop(f"{self._key.rstrip('/')}/{unescape(key)}", None)
        self._answer(200, b"<DeleteResult></DeleteResult>")

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def heedless_s3() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the server's address, and its objects by `/<bucket>/<name>`."""
    objects: dict[str, bytes] = {}
    handler = type("_Objects", (_Handler,), {"objects": objects})
    server = ThreadingHTTPServer((LOOPBACK, 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}", objects
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
