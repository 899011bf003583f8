"""A small double of S3 that accepts only requests signed with a currently valid key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.support.http_server import Reply, Request

_DATE = "Mon, 23 Nov 2026 09:00:00 GMT"


@dataclass
class S3Double:
    """Objects by path; `keys` are the currently valid access keys."""

    keys: set[str] = field(default_factory=set)
    objects: dict[str, bytes] = field(default_factory=dict)
    gets: list[tuple[str, str]] = field(default_factory=list)
    """Path and access key of each GET request for an object."""
    protected: set[str] = field(default_factory=set)
    """The paths of objects that a delete of several objects reports as refused."""

    def __call__(self, request: Request) -> Reply:
        key = access_key(request)
        if key not in self.keys:
            return Reply(403, b"<Error><Code>ExpiredToken</Code></Error>")
        match request.method:
            case "PUT":
                if request.path in self.objects and "if-none-match" in request.headers:
                    return Reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                self.objects[request.path] = content(request)
                return Reply(200, b"", {"ETag": '"x"'})
            case "DELETE":
                self.objects.pop(request.path, None)
                return Reply(204)
            case "POST" if "delete" in request.query:
                return self._delete_several(request)
        data = self.objects.get(request.path)
        if data is None:
            return Reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        headers = {"ETag": '"x"', "Last-Modified": _DATE}
        if request.method == "HEAD":
            return Reply(200, data, headers)
        self.gets.append((request.path, key))
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if span is None:
            return Reply(200, data, headers)
        size = len(data)
        if span[1]:
            start, end = int(span[1]), min(int(span[2]) if span[2] else size - 1, size - 1)
        else:
            start, end = max(size - int(span[2]), 0), size - 1
        where = {"Content-Range": f"bytes {start}-{end}/{size}"}
        return Reply(206, data[start : end + 1], {**headers, **where})

    def _delete_several(self, request: Request) -> Reply:
        answer = ""
        for key in re.findall("<Key>(.*?)</Key>", content(request).decode()):
            path = f"{request.path.rstrip('/')}/{key}"
            if path in self.protected:
                refusal = "<Code>AccessDenied</Code><Message>protected</Message>"
                answer += f"<Error><Key>{key}</Key>{refusal}</Error>"
            else:
                self.objects.pop(path, None)
                answer += f"<Deleted><Key>{key}</Key></Deleted>"
        return Reply(200, f"<DeleteResult>{answer}</DeleteResult>".encode())


def content(request: Request) -> bytes:
    """Return the body of a request, without the signatures between the parts of a signed stream."""
    if not request.headers.get("x-amz-content-sha256", "").startswith("STREAMING-"):
        return request.body
    parts, rest = [], request.body
    while rest:
        head, _, rest = rest.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if size == 0:
            break
        parts.append(rest[:size])
        rest = rest[size + 2 :]
    return b"".join(parts)


def access_key(request: Request) -> str:
    """Return the access key that signed a request, or an empty text if it is unsigned."""
    signed = re.search(r"Credential=([^/]+)/", request.headers.get("authorization", ""))
    return signed[1] if signed else ""
