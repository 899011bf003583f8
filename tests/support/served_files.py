"""Files that a web server has, with ranges, for tests that read them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.support.http_server import Reply, Request


@dataclass
class ServedFiles:
    """Answers GET and HEAD of files by path; `supports_ranges` False sends whole files always."""

    files: dict[str, bytes] = field(default_factory=dict)
    supports_ranges: bool = True

    def __call__(self, request: Request) -> Reply:
        data = self.files.get(request.path)
        if data is None:
            return Reply(404, b"no such file")
        if request.method == "HEAD":
            return Reply(200, b"", {"Content-Length": str(len(data))})
        span = re.fullmatch(r"bytes=(\d*)-(\d+)", request.headers.get("range", ""))
        if span is None or not self.supports_ranges:
            return Reply(200, data)
        start = int(span[1]) if span[1] else max(len(data) - int(span[2]), 0)
        end = min(int(span[2]) if span[1] else len(data), len(data) - 1)
        if start >= len(data):
            return Reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        content_range = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        return Reply(206, data[start : end + 1], content_range)
