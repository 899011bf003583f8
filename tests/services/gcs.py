"""fake-gcs-server, a server of Google Cloud Storage, on loopback.

It decides which one of several puts on condition wins. A front adds the
requests of the XML interface that the server lacks; both interfaces are at the front.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.services.go import go_binary
from tests.services.server import Server, running
from tests.services.upstream import Upstream
from tests.support.http_server import BreakConnection, Reply, Request, TestServer, http_server
from tests.support.ports import LOOPBACK, free_port

_JSON_FOLDERS = ("/storage/v1/", "/upload/", "/download/", "/batch", "/_internal/")
_PASSED_ON_PUT = ("content-type", "cache-control")


@dataclass
class GoogleFront:
    """The answers of the front of `upstream`."""

    upstream: Upstream
    tokens: set[str] | None = None
    """The valid tokens; None accepts requests without a token too."""

    heeds_conditions: bool = True
    """Whether the condition of a put is passed on; without it, each put replaces."""

    page_size: int = 1000
    """The most names in one page of a listing."""

    loses: Callable[[Request, bool], bool] | None = None
    """Whether the connection breaks before (False) or after (True) the server serves a request."""

    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """The parts of unfinished uploads by the upload's id."""

    def __call__(self, request: Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            return Reply(401, b"<Error><Code>AuthenticationRequired</Code></Error>")
        self._break(request, False)
        reply = self._served(request)
        self._break(request, True)
        return reply

    def _break(self, request: Request, is_served: bool) -> None:
        if self.loses is not None and self.loses(request, is_served):
            raise BreakConnection

    def _served(self, request: Request) -> Reply:
        if request.path.startswith(_JSON_FOLDERS):
            return self.upstream.ask(request)
        bucket, _, name = request.path.lstrip("/").partition("/")
        if not name and request.method == "GET":
            return self._list(bucket, request)
        if "uploads" in request.query and request.method == "POST":
            upload = uuid.uuid4().hex
            self.uploads[upload] = {}
            return _xml(f"<InitiateMultipartUploadResult>{_tag('UploadId', upload)}"
                        "</InitiateMultipartUploadResult>")  # fmt: skip
        if "uploadId" in request.query:
            return self._upload(bucket, unquote(name), request)
        if request.method == "PUT":
            return self._put(bucket, unquote(name), request, request.body)
        return self.upstream.ask(request)

    def _put(self, bucket: str, name: str, request: Request, body: bytes) -> Reply:
        query = {"uploadType": ["media"], "name": [name]}
        generation = request.headers.get("x-goog-if-generation-match")
        if generation is not None and self.heeds_conditions:
            query["ifGenerationMatch"] = [generation]
        headers = {k: v for k, v in request.headers.items() if k in _PASSED_ON_PUT}
        put = Request("POST", f"/upload/storage/v1/b/{bucket}/o", query, headers, body)
        reply = self.upstream.ask(put)
        if reply.status != 200:
            return reply
        stored = json.loads(reply.content)
        tags = {"ETag": f'"{stored["etag"]}"', "x-goog-generation": stored["generation"]}
        return Reply(200, b"", tags)

    def _upload(self, bucket: str, name: str, request: Request) -> Reply:
        [upload] = request.query["uploadId"]
        if upload not in self.uploads:
            return Reply(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        if request.method == "DELETE":
            del self.uploads[upload]
            return Reply(204)
        if request.method == "PUT":
            [number] = request.query["partNumber"]
            self.uploads[upload][int(number)] = request.body
            return Reply(200, b"", {"ETag": f'"{number}-{len(request.body)}"'})
        numbers = [int(str(e.text)) for e in ElementTree.fromstring(request.body).iter()
                   if e.tag.endswith("PartNumber")]  # fmt: skip
        parts = self.uploads.pop(upload)
        reply = self._put(bucket, name, request, b"".join(parts[n] for n in numbers))
        if reply.status != 200:
            return reply
        return _xml(f"<CompleteMultipartUploadResult>{_tag('ETag', reply.headers['ETag'])}"
                    "</CompleteMultipartUploadResult>")  # fmt: skip

    def _list(self, bucket: str, request: Request) -> Reply:
        names = {
            "prefix": "prefix",
            "delimiter": "delimiter",
            "max-keys": "maxResults",
            "start-after": "startOffset",
            "continuation-token": "pageToken",
        }
        query = {names[k]: v for k, v in request.query.items() if k in names}
        query.setdefault("maxResults", [str(self.page_size)])
        reply = self.upstream.ask(replace(request, path=f"/storage/v1/b/{bucket}/o", query=query))
        if reply.status != 200:
            return reply
        page: dict[str, Any] = json.loads(reply.content)
        objects = "".join(
            f"<Contents>{_tag('Key', o['name'])}{_tag('LastModified', o['updated'])}"
            f"{_tag('ETag', o['etag'])}{_tag('Size', o['size'])}</Contents>"
            for o in page.get("items", ())
        )
        folders = "".join(
            f"<CommonPrefixes>{_tag('Prefix', p)}</CommonPrefixes>"
            for p in page.get("prefixes", ())
        )
        token = page.get("nextPageToken")
        more = _tag("NextContinuationToken", token) if token else ""
        return _xml(f"<ListBucketResult>{objects}{folders}{more}</ListBucketResult>")


def _xml(content: str) -> Reply:
    return Reply(200, content.encode(), {"Content-Type": "application/xml"})


def _tag(name: str, value: str) -> str:
    return f"<{name}>{escape(value)}</{name}>"


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
